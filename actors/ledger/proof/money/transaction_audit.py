"""The sums of a transaction, added up again event by event (M4, M7, T1, T2, T10).

Each capture is a lot. What a refund or a dispute leaves of one is worth what the capture's own rate
makes of it, or what there was before, if that is less: a dispute that is won may put back a unit
less than the rate says.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct, field

from tollgate.actors.ledger.proof.money.exchange_audit import Event, Unit, named, rate_of, unit_of


class LotSums(Struct):
    """The rest of a capture, its worth, and the rate as a fraction."""

    left: int
    left_worth: int
    numerator: int
    denominator: int

    def worth(self) -> int:
        """The worth of what is left, by the rate."""
        return round(self.left * Fraction(self.numerator, self.denominator))


class Sums(Struct):
    """Of a transaction; or of a dispute, which has `taken`, `taken_worth`, `ends` and `takings`:
    the lot, amount and worth of each."""

    unit: Unit | None = None
    authorised: int = 0
    voided: int = 0
    captured: int = 0
    worth: int = 0
    taken: int = 0
    taken_worth: int = 0
    ends: int = 0
    lots: list[LotSums] = field(default_factory=list)
    takings: list[tuple[int, int, int]] = field(default_factory=list)

    def take(self, sum_: Event, sign: int) -> None:
        """Adds what went back, or came again."""
        self.taken += sign * sum_["amount"]
        self.taken_worth += sign * sum_["worth"]


def sum_faults(kind: str, event: Event, sums: Mapping[str, Sums]) -> Iterator[str]:
    """Adds an event up to the sums of its transaction, and says what does not hold then."""
    if "transaction" not in event:
        return
    of = sums[event["transaction"]]
    if kind == "transaction.created":
        of.unit = unit_of(event)
    match kind:
        case "transaction.created":
            of.authorised += 0 if event["error"] else event["amount"]
        case "transaction.voided":
            of.voided += event["amount"]
        case "transaction.captured":
            _capture(of, event)
        case "transaction.refunded" | "dispute.opened":
            of.take(event["sum"], 1)
            yield from _taking_faults(of.lots, _takings(event))
            if kind == "dispute.opened":
                dispute = sums[event["dispute"]]
                dispute.take(event["sum"], 1)
                dispute.takings += _takings(event)
        case "dispute.won" | "dispute.lost":
            dispute = sums[event["dispute"]]
            yield from _dispute_faults(event, dispute)
            if kind == "dispute.won":
                of.take(event["sum"], -1)
                _put_back(of.lots, dispute.takings)
    yield from _transaction_faults(event, of)


def _transaction_faults(event: Event, of: Sums) -> Iterator[str]:
    name = event["transaction"]
    if "sum" in event and (unit := unit_of(event["sum"])) != of.unit:
        yield f"the amount is in {named(unit)}, which {name} is not in (M4)"
    if of.captured + of.voided > of.authorised:
        yield f"more of {name} is captured and voided than was authorised (T1)"
    if not 0 <= of.taken <= of.captured:
        yield f"more of {name} went back than was captured (T2)"
    is_empty = of.taken == of.captured
    if not 0 <= of.taken_worth <= of.worth or (is_empty and of.taken_worth != of.worth):
        yield f"what went back of {name} is not worth what was captured (M7)"


def _capture(of: Sums, event: Event) -> None:
    amount, worth = event["sum"]["amount"], event["sum"]["worth"]
    of.captured += amount
    of.worth += worth
    rate = rate_of(event["exchange"])
    of.lots.append(LotSums(amount, worth, rate.numerator, rate.denominator))


def _takings(event: Event) -> list[tuple[int, int, int]]:
    return [(each["lot"], each["amount"], each["worth"]) for each in event["takings"]]


def _taking_faults(
    lots: Sequence[LotSums], takings: Sequence[tuple[int, int, int]]
) -> Iterator[str]:
    for place, amount, worth in takings:
        oldest = next((index for index, lot in enumerate(lots) if lot.left > 0), None)
        if place != oldest:
            yield "what goes back is not taken from the oldest capture that has any (M7)"
        if not 0 <= place < len(lots):
            continue
        lot = lots[place]
        before = lot.left_worth
        lot.left -= amount
        lot.left_worth -= worth
        if lot.left_worth != (left := min(before, lot.worth())):
            yield (
                f"of a capture {lot.left} is left, worth {lot.left_worth} and not {left}, which "
                "its rate makes (M7)"
            )


def _put_back(lots: Sequence[LotSums], takings: Sequence[tuple[int, int, int]]) -> None:
    for place, amount, worth in takings:
        if 0 <= place < len(lots):
            lots[place].left += amount
            lots[place].left_worth += worth


def _dispute_faults(event: Event, of: Sums) -> Iterator[str]:
    if (of.taken, of.taken_worth) != (event["sum"]["amount"], event["sum"]["worth"]):
        yield f"the dispute {event['dispute']} ends with another amount than it began with (T10)"
    of.ends += 1
    if of.ends > 1:
        yield f"the dispute {event['dispute']} ends again (T10)"
