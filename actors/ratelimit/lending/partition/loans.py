"""A slot as its partition sees it: lent whole to a front, or counted here with loans of quota.

The law of a loan of quota, for one counter and window:

    own        the hits counted here, and those of loans that have ended
    spent      what a front has reported of its loan: it never falls, for refunds are counted here
    counted    own + all that is spent: no more than the true count
    reserved   all that is lent and not spent yet

    counted + reserved + a <= limit    room for a, whatever the fronts do meanwhile
    counted >= limit                   no room for anything, whatever they do
    else                               unknown, until what is reserved has come back

While a rule changes, limits differ. What was lent under the lowest has to fit in under that, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tollgate.actors.ratelimit.lending.messages import CounterName, LimitedHit


@dataclass(slots=True)
class Loan:
    """A front's loan of quota. Quota 0: the front knows that the counter is used up."""

    quota: int
    limit: int
    spent: int = 0
    is_recalled: bool = False

    @property
    def reserved(self) -> int:
        return max(0, self.quota - self.spent)


FrontLoans = dict[str, Loan]


@dataclass(slots=True)
class Slot:
    """`holder`: the front that has it whole. `epoch`: rises with each time that it is lent whole,
    with each reset in it, and with each incarnation. `users`: when each front used it last, by the
    monotonic clock. `loans`: by counter and front."""

    holder: str | None = None
    is_recalled: bool = False
    epoch: int = 0
    users: dict[str, float] = field(default_factory=dict)
    loans: dict[CounterName, FrontLoans] = field(default_factory=dict)

    def use(self, front: str, now_s: float, alone_s: float) -> bool:
        """Note that a front uses the slot. Whether it alone has, for long enough."""
        self.users = {each: at_s for each, at_s in self.users.items() if now_s - at_s < alone_s}
        self.users[front] = now_s
        return len(self.users) == 1


@dataclass(slots=True)
class Held:
    """What a front has: slots whole, and loans of quota in the order in which they were made."""

    slots: set[int] = field(default_factory=set)
    loans: dict[CounterName, Slot] = field(default_factory=dict)


def counted_and_reserved(own: int, loans: FrontLoans) -> tuple[int, int]:
    """See the law above."""
    counted = own
    reserved = 0
    for loan in loans.values():
        counted += loan.spent
        reserved += loan.reserved
    return counted, reserved


def lowest_limit(limit: int, loans: FrontLoans) -> int:
    """Of a limit and those of the loans that are not spent."""
    return min([limit, *(loan.limit for loan in loans.values() if loan.reserved)])


def loans_in_the_way(
    hits: list[LimitedHit], own: list[int], loans: list[FrontLoans], *, is_conditional: bool
) -> set[tuple[CounterName, str]]:
    """The loans that must come back before these hits of one request can be counted."""
    is_free = [
        _is_free(hit, count, lent, hits) for hit, count, lent in zip(hits, own, loans, strict=True)
    ]
    return {
        (hit.counter, front)
        for hit, lent, free in zip(hits, loans, is_free, strict=True)
        # Under B9 each hit depends on all the others.
        if not free or (is_conditional and not all(is_free))
        for front, loan in lent.items()
        if loan.reserved or hit.addend < 0
    }


def _is_free(hit: LimitedHit, own: int, loans: FrontLoans, hits: Iterable[LimitedHit]) -> bool:
    """Whether the hit's outcome does not depend on what fronts do with their loans."""
    if not loans or hit.addend == 0:
        return True
    counted, reserved = counted_and_reserved(own, loans)
    if hit.addend < 0:
        # Enough is known to be there to be given back, and who knows of a counter that is used up
        # stays right.
        left = counted + hit.addend
        return left >= 0 and all(loan.quota or left >= loan.limit for loan in loans.values())
    if hit.limit is None:
        return reserved == 0
    gain = sum(each.addend for each in hits if each.counter == hit.counter and each.addend > 0)
    is_within = counted + reserved + gain <= lowest_limit(hit.limit, loans)
    return is_within or reserved == 0 or counted >= hit.limit
