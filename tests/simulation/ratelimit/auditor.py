"""The auditor of lending: knows what was asked, what was answered when, and who was lost when.

It shares no code with the machines. For every counter and window:

1. Conservation. The hits admitted under limits up to L are no more than L, nor is any one admitted
   when as much had been admitted before it was asked; plus what was given back, plus what losses
   excuse (`excused`: hits that nobody alive could know of).
2. No false refusal. Whoever was refused had no room, even if everything was counted that was asked
   before they were told, once; less what had been given back before they asked.
3. In the calm after the storm everybody asks for more than there is: all of it is given away.
   A reset begins anew: neither law counts what was there before, and both what came after.
4. Nothing is larger than its bound (the world looks at it all the time).
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from math import inf

CounterName = tuple[int, bytes]


class Fate(Enum):
    ADMITTED = "admitted"
    REFUSED = "refused"
    SPARED = "spared"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class HitRecord:
    """One hit of one request. `is_direct`: the answer came from the partition."""

    front: str
    partition: int
    counter: CounterName
    addend: int
    limit: int
    asked_s: float
    told_s: float = 0.0
    fate: Fate = Fate.UNKNOWN
    is_direct: bool = False


@dataclass(slots=True)
class ResetRecord:
    """A reset of a counter. `set_s`: when it was set to 0; `told_s`: when that was said to be done;
    infinite if it never was. `is_lasting`: nobody was lost afterwards without whom it is not known
    of any more."""

    partition: int
    counter: CounterName
    asked_s: float
    set_s: float = inf
    told_s: float = inf
    is_lasting: bool = True


@dataclass(slots=True)
class Testimony:
    """All that the auditor gets. `has_evicted`: some table gave up live counters."""

    hits: list[HitRecord] = field(default_factory=list)
    excused: Counter[CounterName] = field(default_factory=Counter)
    resets: list[ResetRecord] = field(default_factory=list)
    finals: dict[CounterName, int] = field(default_factory=dict)
    has_evicted: bool = False
    events: Counter[str] = field(default_factory=Counter)


def check(testimony: Testimony) -> None:
    """All laws. Raises AssertionError with what does not hold."""
    by_counter: dict[CounterName, list[HitRecord]] = defaultdict(list)
    for hit in testimony.hits:
        by_counter[hit.counter].append(hit)
    resets: dict[CounterName, list[ResetRecord]] = defaultdict(list)
    for reset in testimony.resets:
        if reset.set_s < inf:
            resets[reset.counter].append(reset)
    for counter, hits in by_counter.items():
        if counter in resets:
            _check_resets(testimony, resets[counter], hits)
            continue
        if not testimony.has_evicted:
            _check_conservation(counter, hits, testimony.excused[counter])
        _check_refusals(counter, hits)
    for counter, limit in testimony.finals.items():
        admitted = sum(h.addend for h in by_counter[counter] if h.fate is Fate.ADMITTED)
        assert admitted == limit or testimony.has_evicted, (
            f"law 2: of {counter} only {admitted} of {limit} hits were given away in the calm"
        )


def _check_conservation(counter: CounterName, hits: list[HitRecord], excused: int) -> None:
    admitted = [hit for hit in hits if hit.fate is Fate.ADMITTED and hit.addend > 0]
    given_back = -sum(hit.addend for hit in hits if hit.addend < 0)
    for limit in {hit.limit for hit in admitted}:
        total = sum(hit.addend for hit in admitted if hit.limit <= limit)
        assert total <= limit + given_back + excused, (
            f"law 1: {total} hits of {counter} were admitted under limits up to {limit}, "
            f"{given_back} given back, {excused} excused"
        )
    admitted.sort(key=lambda hit: hit.told_s)
    by_asked = sorted(admitted, key=lambda hit: hit.asked_s)
    told, position = 0, 0
    for hit in by_asked:
        while position < len(admitted) and admitted[position].told_s < hit.asked_s:
            told += admitted[position].addend
            position += 1
        assert told + hit.addend <= hit.limit + given_back + excused, (
            f"law 1: {hit} was admitted after {told} others"
        )


def _check_refusals(counter: CounterName, hits: list[HitRecord]) -> None:
    asked = _Sums([(hit.asked_s, hit.addend) for hit in hits if hit.addend > 0])
    back = _Sums(
        [(hit.told_s, -hit.addend) for hit in hits if hit.addend < 0 and hit.fate is Fate.ADMITTED]
    )
    for hit in hits:
        if hit.fate is Fate.REFUSED:
            # (what was asked at the very moment at which they were told may have come first)
            counted = asked.until(hit.told_s) - back.before(hit.asked_s)
            assert counted > hit.limit, (
                f"law 2: {hit} was refused, and no more than {counted} can have been counted"
            )


def _check_resets(testimony: Testimony, resets: list[ResetRecord], hits: list[HitRecord]) -> None:
    """Both laws for a counter that was set to 0 in between."""
    counter = hits[0].counter
    admitted = [hit for hit in hits if hit.fate is Fate.ADMITTED and hit.addend > 0]
    slack = testimony.excused[counter] - sum(hit.addend for hit in hits if hit.addend < 0)
    for hit in [] if testimony.has_evicted else admitted:
        since_s = max((r.set_s for r in resets if r.asked_s <= hit.told_s), default=-inf)
        before = sum(
            each.addend for each in admitted if since_s < each.asked_s and each.told_s < hit.asked_s
        )
        assert before + hit.addend <= hit.limit + slack, (
            f"law 1: {hit} was admitted after {before} others since {since_s}"
        )
    for hit in hits:
        if hit.fate is Fate.REFUSED:
            since_s = max(
                (r.asked_s for r in resets if r.is_lasting and r.told_s < hit.asked_s),
                default=-inf,
            )
            # (who was told nothing, or was failed, may have been counted later)
            is_lost = (Fate.FAILED, Fate.UNKNOWN)
            counted = sum(
                each.addend
                for each in hits
                if each.addend > 0 and each.asked_s <= hit.told_s
                if each.told_s >= since_s or each.fate in is_lost
            )
            assert counted > hit.limit, (
                f"law 2: {hit} was refused, and since the reset at {since_s} no more than {counted}"
                " can have been counted"
            )


class _Sums:
    """Sums of what happened until a time."""

    def __init__(self, events: list[tuple[float, int]]) -> None:
        events.sort()
        self._times = [at_s for at_s, _ in events]
        self._sums = [0, *accumulate(number for _, number in events)]

    def until(self, time_s: float) -> int:
        return self._sums[bisect_right(self._times, time_s)]

    def before(self, time_s: float) -> int:
        return self._sums[bisect_left(self._times, time_s)]
