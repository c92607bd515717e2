"""The auditor of lending: knows what was asked, what was answered when, and who was lost when.

It shares no code with the machines. For every counter and window:

1. Conservation. The hits admitted under limits up to L are no more than L, nor is any one admitted
   when as much had been admitted before it was asked; plus what was given back, plus what losses
   excuse (`excused`: hits that nobody alive could know of).
2. No false refusal. Whoever was refused had no room, even if everything was counted that was asked
   before they were told, once; less what had been given back before they asked.
3. In the calm after the storm everybody asks for more than there is: all of it is given away.
4. Nothing is larger than its bound (the world looks at it all the time).
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate

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
class Testimony:
    """All that the auditor gets. `has_evicted`: some table gave up live counters."""

    hits: list[HitRecord] = field(default_factory=list)
    excused: Counter[CounterName] = field(default_factory=Counter)
    finals: dict[CounterName, int] = field(default_factory=dict)
    has_evicted: bool = False
    events: Counter[str] = field(default_factory=Counter)


def check(testimony: Testimony) -> None:
    """All laws. Raises AssertionError with what does not hold."""
    by_counter: dict[CounterName, list[HitRecord]] = defaultdict(list)
    for hit in testimony.hits:
        by_counter[hit.counter].append(hit)
    for counter, hits in by_counter.items():
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
