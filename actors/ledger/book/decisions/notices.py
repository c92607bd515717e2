"""Decisions on notices of the card network: what a file told before, and settlements.

A notice is booked once. Told again it changes nothing; another one with its reference is refused,
whichever book the first is in. A settlement moves no money of the books: it is kept beside what
they expect, so that a difference shows (part D, Files of the network).
"""

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.entities import NetworkNotice, SettledDay
from tollgate.actors.ledger.law.commands import RecordSettlement
from tollgate.actors.ledger.law.events import SettlementReported
from tollgate.actors.ledger.law.exponents import posted_exponent
from tollgate.actors.ledger.law.notices import settled_day_id
from tollgate.actors.ledger.law.outcomes import ErrorCode, constraint
from tollgate.actors.ledger.law.values import AMOUNT_MAX, Notice

OTHER_CONTENT = "was told before, and said something else"


def decide_if_told_before(case: Case, notice: Notice | None) -> BookDecision | None:
    """None for a notice that is new, and for what is none."""
    if notice is None or case.entities.get(notice.id) is None:
        return None
    known = case.find(NetworkNotice, notice.id)
    if known is not None and known.content == notice.content:
        return ()
    return constraint(f"the reference {notice.reference} {OTHER_CONTENT}", "reference")


def decide_settlement(case: Case, command: RecordSettlement) -> BookDecision:
    """Of a day that is over: nothing is booked on it any more, so what is expected is final."""
    told = decide_if_told_before(case, command.notice)
    if told is not None:
        return told
    if case.now_ms < command.until_ms:
        return constraint(f"the day {command.day} is not over, in UTC", "day")
    currency, exponent = command.currency, command.exponent
    settled_day = settled_day_id(case.head.book, command.day, currency, exponent)
    assert command.settled_day == settled_day, "the sum is of this book, day and unit"
    before = case.find(SettledDay, settled_day)
    settled = command.amount + (0 if before is None else before.settled)
    if max(abs(command.amount), abs(settled), abs(command.expected - settled)) > AMOUNT_MAX:
        return constraint(
            f"the day would come to more than {AMOUNT_MAX}, beyond which JSON is not exact",
            "amount",
            ErrorCode.AMOUNT_TOO_HIGH,
        )
    settlement, own = case.ids(2)
    return (
        SettlementReported(
            id=own,
            settlement=settlement,
            notice=command.notice,
            settled_day=settled_day,
            day=command.day,
            currency=currency,
            amount=command.amount,
            settled=settled,
            expected=command.expected,
            exponent=posted_exponent(currency, exponent),
        ),
    )
