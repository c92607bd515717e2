"""Transactions and disputes after an event: their part of the evolution."""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.entities import Dispute, Entity, Intent, NetworkNotice, SavedCard
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law import events
from tollgate.actors.ledger.law.accounts import balance_of
from tollgate.actors.ledger.law.lots import Lot
from tollgate.actors.ledger.law.transaction import Action, ActionKind, Transaction
from tollgate.actors.ledger.law.values import EntityId, Notice

Changed = dict[EntityId, Entity | None]
"""Entities after an event; None: it is gone."""


def after_move(
    entities: Entities, event: events.Captured | events.Refunded | events.Voided, at_ms: int
) -> Changed:
    """By its merchant."""
    before = _transaction(entities, event.transaction)
    match event:
        case events.Captured():
            action = Action(
                kind=ActionKind.CAPTURE,
                at_ms=at_ms,
                amount=event.sum.amount,
                balance=balance_of(event),
                descriptor=event.descriptor,
                line=event.line,
                fee=event.fee,
            )
            rate = None if event.exchange is None else event.exchange.rate
            after = before.with_capture(action, Lot(event.sum.amount, event.sum.worth, rate))
        case events.Refunded():
            action = Action(
                kind=ActionKind.REFUND,
                at_ms=at_ms,
                amount=event.sum.amount,
                balance=balance_of(event),
                descriptor=event.descriptor,
                line=event.line,
            )
            after = before.with_refund(action, event.takings)
        case events.Voided():
            action = Action(ActionKind.VOID, at_ms, event.amount, 0, before.descriptor)
            after = before.with_void(action)
    if event.intent is UNSET:
        return {after.id: after}
    return {after.id: replace(after, intent=UNSET), event.intent: None}


def after_intent(
    head: Head, entities: Entities, event: events.Intended | events.NetworkRefused, at_ms: int
) -> Changed:
    """A move waits for a card network, and the transaction that it is about allows nothing else; or
    it waits no more."""
    if isinstance(event, events.NetworkRefused):
        freed = replace(_transaction(entities, event.transaction), intent=UNSET)
        return {freed.id: freed, event.intent: None}
    intent = Intent(
        id=event.intent,
        book=head.book,
        is_test=head.is_test,
        created_ms=at_ms,
        network=event.network,
        transaction=event.transaction,
        follows=event.follows,
        exponent=event.exponent,
        then=event.then,
        has_key=event.has_key,
    )
    if event.transaction is None:
        return {intent.id: intent}
    about = replace(_transaction(entities, event.transaction), intent=intent.id)
    return {about.id: about, intent.id: intent}


def after_authorisation(
    head: Head, entities: Entities, event: events.TransactionCreated, at_ms: int
) -> Changed:
    """Of itself, or from a source, which counts the attempts that fail."""
    changed: Changed = {}
    transaction = Transaction(
        id=event.transaction,
        book=head.book,
        is_test=head.is_test,
        created_ms=at_ms,
        currency=event.currency,
        exponent=event.exponent,
        amount=event.amount,
        descriptor=event.descriptor,
        card=event.card,
        custom=event.custom,
        error=event.error,
        tds=event.tds,
        source=event.source,
        pending=0 if event.error else event.amount,
        failures=event.failures,
        network=event.network,
    )
    if event.source is not None:
        source = entities[event.source]
        assert isinstance(source, Transaction | SavedCard), "a source can be charged"
        if source.failures != event.failures:
            changed[source.id] = replace(source, failures=event.failures)
    changed[transaction.id] = transaction
    if event.intent is not UNSET:
        changed[event.intent] = None
    return changed


def after_dispute(
    head: Head,
    entities: Entities,
    event: events.DisputeOpened | events.DisputeWon | events.DisputeLost,
    at_ms: int,
) -> Changed:
    """By its cardholder: with the dispute, which keeps what goes back when it is won."""
    transaction = _transaction(entities, event.transaction)
    action = Action(
        kind=_DISPUTE_ACTIONS[type(event)],
        at_ms=at_ms,
        amount=event.sum.amount,
        balance=balance_of(event),
        descriptor=transaction.descriptor,
        line=event.line,
        dispute=event.dispute,
    )
    if isinstance(event, events.DisputeOpened):
        dispute = Dispute(
            id=event.dispute,
            book=head.book,
            is_test=head.is_test,
            created_ms=at_ms,
            transaction=transaction.id,
            amount=event.sum.amount,
            takings=event.takings,
            reason_code=event.reason_code,
            reason_title=event.reason_title,
            due_ms=event.due_ms,
        )
        after = transaction.with_dispute(replace(action, fee=event.fee), event.takings)
    else:
        found = entities[event.dispute]
        assert isinstance(found, Dispute), "a dispute was opened before it is decided"
        dispute = replace(found, is_won=isinstance(event, events.DisputeWon))
        if dispute.is_won:
            after = transaction.with_dispute_won(action, dispute.takings)
        else:
            after = transaction.with_dispute_lost(action)
    return {transaction.id: after, dispute.id: dispute}


def after_notice(head: Head, notice: Notice | UnsetType, subject: EntityId) -> Changed:
    """By the network, in a file: the notice, which is known from now on by its reference."""
    if notice is UNSET:
        return {}
    known = NetworkNotice(
        id=notice.id,
        book=head.book,
        is_test=head.is_test,
        network=notice.network,
        reference=notice.reference,
        content=notice.content,
        subject=subject,
    )
    return {known.id: known}


_DISPUTE_ACTIONS = {
    events.DisputeOpened: ActionKind.DISPUTE,
    events.DisputeWon: ActionKind.DISPUTE_WON,
    events.DisputeLost: ActionKind.DISPUTE_LOST,
}


def _transaction(entities: Entities, transaction: EntityId) -> Transaction:
    found = entities[transaction]
    assert isinstance(found, Transaction), "an event is about a transaction that is there"
    return found
