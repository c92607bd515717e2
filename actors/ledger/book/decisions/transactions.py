"""Decisions on transactions: authorise, capture, refund, void, save the card, pay out.

What a transaction allows is the law of transaction.py; here come the money (conversion, fees), the
sources of recurring transactions (T12) and the suspicion of a capture sent twice (C3).
"""

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.entities import SavedCard
from tollgate.actors.ledger.law import accounts, events, lots
from tollgate.actors.ledger.law.commands import Authorise, Capture, PayOut, Refund, SaveCard, Void
from tollgate.actors.ledger.law.exponents import (
    posted_exponent,
    restated,
    same_currency,
    stamped_exponent,
)
from tollgate.actors.ledger.law.money import Exchange, Fee, convert, is_rate_of, rate_fee
from tollgate.actors.ledger.law.outcomes import (
    ErrorCode,
    Refusal,
    RefusalReason,
    absent,
    bad_amount,
    constraint,
)
from tollgate.actors.ledger.law.transaction import Action, ActionKind, Transaction
from tollgate.actors.ledger.law.values import AMOUNT_MAX, EntityId, Price, Rate, RateTable

DUPLICATE_WINDOW_MS = 60_000


def decide_authorisation(case: Case, command: Authorise) -> BookDecision:
    """A failed attempt is stored as well, with its error (part A)."""
    if refused := bad_amount(command.amount, AMOUNT_MAX, "an amount may be"):
        return refused
    failures = 0
    if command.source is not None:
        source = _source(case, command, command.source)
        if isinstance(source, Refusal):
            return source
        failures = source.failures + 1 if command.error else 0
    transaction, own = case.ids(2)
    return (
        events.TransactionCreated(
            id=own,
            transaction=transaction,
            currency=command.currency,
            exponent=command.exponent,
            amount=command.amount,
            card=command.card,
            descriptor=command.descriptor or case.merchant.descriptor,
            custom=command.custom,
            error=command.error,
            tds=command.tds,
            source=command.source,
            failures=failures,
        ),
    )


def _source(case: Case, command: Authorise, source: EntityId) -> Transaction | SavedCard | Refusal:
    """T12: of the same merchant, successful, its card not expired."""
    field = "cardId" if command.is_source_card else "transactionId"
    found = (
        case.find(SavedCard, source) if command.is_source_card else case.find(Transaction, source)
    )
    if found is None:
        return constraint(f"{source} is not one of this merchant's", field)
    if isinstance(found, Transaction):
        card = found.card
        if found.error is not None:
            return constraint(
                f"the transaction {source} was not successful: it cannot be repeated", field
            )
    else:
        card = found.summary
    if card != command.card:
        return constraint(f"the card is not that of {source}", field)
    if command.error is None and card.expiry_ms < case.now_ms:
        return Refusal(
            RefusalReason.PROCESSING,
            f"the card of {source} has expired",
            field,
            int(ErrorCode.CARD_EXPIRED),
        )
    return found


def decide_capture(case: Case, command: Capture) -> BookDecision:
    """T5, M3."""
    transaction = case.find(Transaction, command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if refused := transaction.refuse_capture(command.amount, command.currency):
        return refused
    price = Price(transaction.currency, command.amount, transaction.exponent)
    exchanged = in_funding(case, price, command.rate, command.table, "currency")
    if isinstance(exchanged, Refusal):
        return exchanged
    worth, how = exchanged
    pricing = case.merchant.pricing
    flat = in_funding(case, pricing.flat, command.flat_rate, None, "pricing.flat")
    if isinstance(flat, Refusal):
        return flat
    line, own, later = case.ids(3)
    captured = events.Captured(
        id=own,
        transaction=transaction.id,
        line=line,
        sum=case.settled(transaction, command.amount, worth),
        fee=Fee(flat[0], rate_fee(worth, pricing)),
        descriptor=command.descriptor or transaction.descriptor,
        exchange=how,
        flat_exchange=flat[1],
    )
    return with_suspicion(transaction, captured, later, case.at_ms, has_key=case.has_key)


def with_suspicion(
    transaction: Transaction, captured: events.Captured, own: EntityId, at_ms: int, *, has_key: bool
) -> tuple[events.Event, ...]:
    """A capture, and the suspicion that it was sent twice, if there is one (C3). `own`: its id."""
    earlier = None if has_key else _equal_capture(transaction, captured.sum.amount, at_ms)
    if earlier is None or earlier.line is None:
        return (captured,)
    suspicion = events.DuplicateSuspected(
        id=own,
        transaction=transaction.id,
        line=captured.line,
        earlier_line=earlier.line,
        currency=transaction.currency,
        amount=captured.sum.amount,
    )
    return (captured, suspicion)


def _equal_capture(transaction: Transaction, amount: int, at_ms: int) -> Action | None:
    """The latest capture of the same amount, if it is not older than the window (C3)."""
    for action in reversed(transaction.trail):
        if at_ms - action.at_ms > DUPLICATE_WINDOW_MS:
            return None
        if action.kind is ActionKind.CAPTURE and action.amount == amount:
            return action
    return None


def decide_refund(case: Case, command: Refund) -> BookDecision:
    """T6, M7. Fees stay with the merchant."""
    transaction = case.find(Transaction, command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if refused := transaction.refuse_refund(command.amount):
        return refused
    takings = lots.take_from_lots(transaction.lots, command.amount)
    line, own = case.ids(2)
    return (
        events.Refunded(
            id=own,
            transaction=transaction.id,
            line=line,
            sum=case.settled(transaction, command.amount, lots.worth_of(takings)),
            takings=takings,
            descriptor=command.descriptor or transaction.descriptor,
        ),
    )


def decide_void(case: Case, command: Void) -> BookDecision:
    """T7: no line, no effect on the balance."""
    transaction = case.find(Transaction, command.transaction)
    if transaction is None:
        return absent(f"this merchant has no transaction {command.transaction}")
    if refused := transaction.refuse_void(command.amount):
        return refused
    (own,) = case.ids(1)
    return (events.Voided(own, transaction.id, transaction.currency, command.amount),)


def decide_saved_card(case: Case, command: SaveCard) -> BookDecision:
    """Of a successful transaction of this merchant."""
    transaction = case.find(Transaction, command.transaction)
    if transaction is None:
        return constraint(f"{command.transaction} is not one of this merchant's", "transactionId")
    if transaction.error is not None:
        return constraint(
            f"the transaction {transaction.id} was not successful: its card cannot be saved",
            "transactionId",
        )
    card, own = case.ids(2)
    return (events.CardSaved(own, card, transaction.id, transaction.card, command.notes),)


def decide_payout(case: Case, command: PayOut) -> BookDecision:
    """At most the balance."""
    funding = case.merchant.currency
    there = max(0, accounts.merchant_balance(case.head.accounts))
    if refused := bad_amount(command.amount, there, "are on the balance"):
        return refused
    line, own = case.ids(2)
    exponent = posted_exponent(funding, case.merchant.funding_exponent)
    return (events.PaidOut(own, line, funding, command.amount, command.description, exponent),)


def in_funding(
    case: Case, price: Price, rate: Rate | None, table: RateTable | None, field: str
) -> tuple[int, Exchange | None] | Refusal:
    """A price in the merchant's funding currency, and how it was converted, if it had to be: from
    the exponent that is stamped on it to the one that is stamped on the merchant (M9). `table`: of
    the rate, which for a live merchant must not be too old; None for a fee, which is converted by
    the newest rate there is (part C, Foreign exchange)."""
    funding, to_exponent = case.merchant.currency, case.merchant.funding_exponent
    exponent = stamped_exponent(price.currency, price.exponent)
    if price.amount == 0 or (price.currency, exponent) == (funding, to_exponent):
        return price.amount, None
    if price.currency == funding:
        rate = same_currency(funding, exponent, to_exponent)
    elif rate is not None:
        if table is not None and case.now_ms >= table.until_ms and not case.merchant.is_test:
            return _unconvertible(
                f"the exchange rates in {table.file} are dated {table.dated}, which is too old to "
                f"exchange {price.currency} for {funding}: the operator has to renew them",
                field,
            )
        rate = restated(rate, exponent, to_exponent)
    if rate is None or not is_rate_of(rate, price.currency, funding):
        return _unconvertible(
            f"there is no exchange rate from {price.currency} to {funding}", field
        )
    how = convert(price.amount, rate)
    return how.amount, how


def _unconvertible(message: str, field: str) -> Refusal:
    code = int(ErrorCode.INVALID_CURRENCY)
    return Refusal(RefusalReason.UNCONVERTIBLE, message, field, code)
