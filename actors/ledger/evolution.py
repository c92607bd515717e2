"""What a book is after an event. This cannot refuse: what has happened, has happened.

`decide` looked at the state and made the event; `evolve` looks at the event and makes the state,
now and at every replay, with the same result. Nothing is computed here that a later version of
the program could compute otherwise: amounts, conversions and fees are the event's.
"""

from typing import assert_never

from msgspec.structs import replace

from actors.ledger.accounts import balance_of, posted
from actors.ledger.case import Entities
from actors.ledger.directory import rotated
from actors.ledger.entities import App, AppKey, Dispute, Entity, SavedCard, Webhook
from actors.ledger.events import (
    AppAdded,
    AppCreated,
    AppRevoked,
    Captured,
    CardSaved,
    DisputeLost,
    DisputeOpened,
    DisputeWon,
    DuplicateSuspected,
    Event,
    FraudReported,
    KeyRotated,
    MerchantChanged,
    MerchantOpened,
    MerchantReserved,
    PaidOut,
    Refunded,
    TransactionCreated,
    UserInvited,
    UserRevoked,
    Voided,
    WebhookAdded,
    WebhookRemoved,
)
from actors.ledger.head import Head, Member, Merchant, User
from actors.ledger.lots import Lot
from actors.ledger.rows import Entry
from actors.ledger.transaction import Action, ActionKind, Transaction
from actors.ledger.values import EntityId

Changed = dict[EntityId, Entity | None]
"""Entities after an event; None: it is gone."""


def evolve(head: Head, entities: Entities, event: Event, entry: Entry) -> tuple[Head, Changed]:
    """The head after the entry of an event, and the entities that it changed."""
    after = replace(
        head,
        seq=entry.seq,
        hash=entry.hash,
        at_ms=entry.at_ms,
        last_id=event.id,
        merchant=_merchant_after(head.merchant, event, entry.at_ms),
        accounts=posted(head.accounts, entry.postings),
        books=head.books + isinstance(event, MerchantReserved),
    )
    return after, _entities_after(head, entities, event, entry.at_ms)


def _merchant_after(merchant: Merchant | None, event: Event, at_ms: int) -> Merchant | None:
    if isinstance(event, MerchantOpened):
        return _opened(event, at_ms)
    if merchant is None:
        return None
    match event:
        case MerchantChanged():
            return replace(
                merchant,
                name=_or(event.name, merchant.name),
                email=_or(event.email, merchant.email),
                descriptor=_or(event.descriptor, merchant.descriptor),
            )
        case AppAdded():
            app = Member(event.app, event.name, event.created_ms)
            return replace(merchant, apps=(*merchant.apps, app))
        case AppRevoked():
            apps = tuple(member for member in merchant.apps if member.app != event.app)
            return replace(merchant, apps=apps)
        case UserInvited():
            user = User(event.user, event.email, at_ms)
            return replace(merchant, users=(*merchant.users, user))
        case UserRevoked():
            users = tuple(user for user in merchant.users if user.id != event.user)
            return replace(merchant, users=users)
        case WebhookAdded():
            return replace(merchant, webhooks=(*merchant.webhooks, event.webhook))
        case WebhookRemoved():
            webhooks = tuple(hook for hook in merchant.webhooks if hook != event.webhook)
            return replace(merchant, webhooks=webhooks)
        case _:
            return merchant


def _or(changed: str | None, before: str) -> str:
    return before if changed is None else changed


def _opened(event: MerchantOpened, at_ms: int) -> Merchant:
    return Merchant(
        public_key=event.public_key,
        name=event.name,
        currency=event.currency,
        is_test=event.is_test,
        email=event.email,
        website=event.website,
        descriptor=event.descriptor,
        company_country=event.company_country,
        company_number=event.company_number,
        iban=event.iban,
        pricing=event.pricing,
        created_ms=at_ms,
        apps=(Member(event.creator, event.creator_name, event.creator_created_ms),),
    )


def _entities_after(head: Head, entities: Entities, event: Event, at_ms: int) -> Changed:
    match event:
        case Captured() | Refunded() | Voided():
            transaction = _moved(_transaction(entities, event.transaction), event, at_ms)
            return {transaction.id: transaction}
        case TransactionCreated():
            return _created(head, entities, event, at_ms)
        case DisputeOpened() | DisputeWon() | DisputeLost():
            return _disputed(head, entities, event, at_ms)
        case CardSaved():
            card = SavedCard(
                id=event.card,
                book=head.book,
                is_test=_is_test(head),
                created_ms=at_ms,
                transaction=event.transaction,
                summary=event.summary,
                notes=event.notes,
            )
            return {card.id: card}
        case WebhookAdded():
            webhook = Webhook(
                event.webhook, head.book, _is_test(head), at_ms, event.url, event.secret
            )
            return {webhook.id: webhook}
        case WebhookRemoved():
            return {event.webhook: None}
        case AppCreated():
            keys = (AppKey(event.key_digest, event.key_last4, at_ms),)
            return {event.app: App(event.app, head.book, event.name, at_ms, keys)}
        case KeyRotated():
            app = entities[event.app]
            assert isinstance(app, App), "a key is rotated for an app"
            key = AppKey(event.key_digest, event.key_last4, at_ms)
            return {app.id: replace(app, keys=rotated(app.keys, key))}
        case (
            MerchantReserved()
            | MerchantOpened()
            | MerchantChanged()
            | AppAdded()
            | AppRevoked()
            | UserInvited()
            | UserRevoked()
            | DuplicateSuspected()
            | FraudReported()
            | PaidOut()
        ):
            return {}
        case _:
            assert_never(event)


def _moved(
    transaction: Transaction, event: Captured | Refunded | Voided, at_ms: int
) -> Transaction:
    match event:
        case Captured(sum=money, exchange=exchange):
            action = Action(
                kind=ActionKind.CAPTURE,
                at_ms=at_ms,
                amount=money.amount,
                balance=balance_of(event),
                descriptor=event.descriptor,
                line=event.line,
                fee=event.fee,
            )
            lot = Lot(money.amount, money.worth, None if exchange is None else exchange.rate)
            return transaction.with_capture(action, lot)
        case Refunded():
            action = Action(
                kind=ActionKind.REFUND,
                at_ms=at_ms,
                amount=event.sum.amount,
                balance=balance_of(event),
                descriptor=event.descriptor,
                line=event.line,
            )
            return transaction.with_refund(action, event.takings)
        case Voided():
            action = Action(ActionKind.VOID, at_ms, event.amount, 0, transaction.descriptor)
            return transaction.with_void(action)


def _created(head: Head, entities: Entities, event: TransactionCreated, at_ms: int) -> Changed:
    changed: Changed = {}
    transaction = Transaction(
        id=event.transaction,
        book=head.book,
        is_test=_is_test(head),
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
    )
    if event.source is not None:
        source = entities[event.source]
        assert isinstance(source, Transaction | SavedCard), "a source can be charged"
        if source.failures != event.failures:
            changed[source.id] = replace(source, failures=event.failures)
    changed[transaction.id] = transaction
    return changed


def _disputed(
    head: Head, entities: Entities, event: DisputeOpened | DisputeWon | DisputeLost, at_ms: int
) -> Changed:
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
    if isinstance(event, DisputeOpened):
        dispute = Dispute(
            id=event.dispute,
            book=head.book,
            is_test=_is_test(head),
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
        dispute = replace(found, is_won=isinstance(event, DisputeWon))
        if dispute.is_won:
            after = transaction.with_dispute_won(action, dispute.takings)
        else:
            after = transaction.with_dispute_lost(action)
    return {transaction.id: after, dispute.id: dispute}


_DISPUTE_ACTIONS = {
    DisputeOpened: ActionKind.DISPUTE,
    DisputeWon: ActionKind.DISPUTE_WON,
    DisputeLost: ActionKind.DISPUTE_LOST,
}


def _transaction(entities: Entities, transaction: EntityId) -> Transaction:
    found = entities[transaction]
    assert isinstance(found, Transaction), "an event is about a transaction that is there"
    return found


def _is_test(head: Head) -> bool:
    assert head.merchant is not None, "only a merchant's book holds such things"
    return head.merchant.is_test
