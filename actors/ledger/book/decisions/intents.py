"""Decisions on moves that a card network has to agree to (part I): first the intent, then its end.

    intent durable  ->  the network is asked, once  ->  its decision durable  ->  the reply

An intent is refused wherever its command would be. While it is open its transaction allows nothing
else, so what was allowed then is still allowed when the network has agreed; and nothing is booked
before. Rates and fees are those of the intent; ids, and the captures that a refund is taken from,
are those of its end.
"""

import dataclasses

from msgspec import UNSET
from msgspec.structs import replace

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.decisions.transactions import (
    decide_authorisation,
    decide_capture,
    decide_refund,
    decide_void,
    with_suspicion,
)
from tollgate.actors.ledger.book.entities import Intent, SavedCard
from tollgate.actors.ledger.law import events, lots
from tollgate.actors.ledger.law.accounts import overflows, posted, postings_of
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Capture,
    Conclude,
    Intend,
    Movement,
    Refund,
    Void,
)
from tollgate.actors.ledger.law.outcomes import (
    ErrorCode,
    Refusal,
    RefusalReason,
    constraint,
)
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import (
    AMOUNT_MAX,
    EntityId,
    NetworkApproved,
    NetworkDeclined,
    NetworkMark,
)


def decide_intent(case: Case, command: Intend) -> BookDecision:
    """Nothing happens yet but that it may."""
    decided = _decide(case, command.command)
    if isinstance(decided, Refusal):
        return decided
    then = decided[0]
    assert isinstance(then, events.Move), "a network agrees to moves alone"
    postings = postings_of(then)
    if overflows(posted(case.head.accounts, postings), postings):
        why = f"the book would hold more than {AMOUNT_MAX}, beyond which JSON is not exact"
        return constraint(why, "amount", ErrorCode.AMOUNT_TOO_HIGH)
    about, exponent, follows = None, 0, ""
    if isinstance(then, events.TransactionCreated):
        exponent = then.exponent
        follows = _reference(case, then.source)
    else:
        about = _transaction(case, then.transaction)
        exponent, follows = about.exponent, _reference(case, about.id)
    intent, own = case.ids(2)
    return (
        events.Intended(
            id=own,
            intent=intent,
            network=command.network,
            transaction=None if about is None else about.id,
            follows=follows,
            exponent=exponent,
            then=then,
            has_key=case.has_key,
        ),
    )


def _decide(case: Case, command: Movement) -> BookDecision:
    match command:
        case Authorise():
            return decide_authorisation(case, command)
        case Capture():
            return decide_capture(case, command)
        case Refund():
            return decide_refund(case, command)
        case Void():
            return decide_void(case, command)


def _reference(case: Case, transaction: EntityId | None) -> str:
    """The network's reference of an earlier authorisation; empty without one."""
    found = None if transaction is None else case.find(Transaction, transaction)
    return "" if found is None or found.network is UNSET else found.network.reference


def _transaction(case: Case, transaction: EntityId) -> Transaction:
    found = case.find(Transaction, transaction)
    assert found is not None, "an intent is about a transaction of its book"
    return found


def decide_conclusion(case: Case, command: Conclude) -> BookDecision:
    """Once: an intent that was settled is gone."""
    intent = case.find(Intent, command.intent)
    if intent is None:
        return Refusal(RefusalReason.NOT_FOUND, f"there is no open intent {command.intent}")
    then, decision = intent.then, command.decision
    if isinstance(then, events.TransactionCreated):
        return _authorisation(case, intent, then, decision)
    about = _transaction(case, then.transaction)
    if isinstance(decision, NetworkDeclined):
        (own,) = case.ids(1)
        return (events.NetworkRefused(own, intent.id, about.id, decision.error),)
    reference = decision.reference
    match then:
        case events.Captured():
            line, own, later = case.ids(3)
            captured = replace(then, id=own, line=line, intent=intent.id, reference=reference)
            return with_suspicion(about, captured, later, case.at_ms, has_key=intent.has_key)
        case events.Refunded():
            line, own = case.ids(2)
            takings = lots.take_from_lots(about.lots, then.sum.amount)
            refunded = replace(
                then,
                id=own,
                line=line,
                sum=replace(then.sum, worth=lots.worth_of(takings)),
                takings=takings,
                intent=intent.id,
                reference=reference,
            )
            return (refunded,)
        case events.Voided():
            (own,) = case.ids(1)
            return (replace(then, id=own, intent=intent.id, reference=reference),)


def _authorisation(
    case: Case,
    intent: Intent,
    then: events.TransactionCreated,
    decision: NetworkApproved | NetworkDeclined,
) -> BookDecision:
    """Agreed to or not, the attempt is a transaction (part A)."""
    error = decision.error if isinstance(decision, NetworkDeclined) else None
    transaction, own = case.ids(2)
    created = replace(
        then,
        id=own,
        transaction=transaction,
        error=error,
        failures=_failures(case, then.source) + 1 if error and then.source else 0,
        intent=intent.id,
    )
    if isinstance(decision, NetworkDeclined):
        return (created,)
    card = then.card
    if decision.card_token:
        card = dataclasses.replace(card, network_token=decision.card_token)
    mark = NetworkMark(intent.network, decision.reference)
    return (replace(created, card=card, tds=decision.tds or then.tds, network=mark),)


def _failures(case: Case, source: EntityId) -> int:
    found = case.find(Transaction, source) or case.find(SavedCard, source)
    assert found is not None, "an attempt is on a source of its book"
    return found.failures
