"""Latency histograms: calls per bucket, cheap to add to, to send and to sum.

A bucket holds the calls that took at most its bound and more than the bound before; one more bucket
holds the slower ones. The bounds are the same in every process, so histograms add up by position.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import sub

_BOUNDS_US = (50, 75, 100, 150, 200, 300, 500, 750)
_BOUNDS_MS = (1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 250, 500)
_BOUNDS_S = (1.0, 2.5, 5.0, 10.0)
LATENCY_BOUNDS_S: tuple[float, ...] = (
    *(bound / 1_000_000 for bound in _BOUNDS_US),
    *(bound / 1_000 for bound in _BOUNDS_MS),
    *_BOUNDS_S,
)
_BUCKETS_S = tuple(pairwise((0.0, *LATENCY_BOUNDS_S)))  # all but the last, which has no end
_ROUNDING = 1e-6  # of bounds that were multiplied and divided


@dataclass(frozen=True, slots=True)
class Latency:
    """Calls per bucket, one more than there are bounds, and the seconds of all calls together."""

    counts: tuple[int, ...]
    sum_s: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> tuple[int, ...]:
        """Calls that took at most each bound; the last number is all of them."""
        return tuple(accumulate(self.counts))

    def since(self, before: "Latency | None") -> "Latency":
        """The calls after an earlier reading of the same histogram."""
        if before is None:
            return self
        return Latency(tuple(map(sub, self.counts, before.counts)), self.sum_s - before.sum_s)

    def calls_within(self, bound_s: float) -> int:
        """An estimate of the calls that took at most `bound_s`: exact at the bounds of a bucket,
        straight between them; calls beyond the last bound are within none."""
        position = bisect_left(LATENCY_BOUNDS_S, bound_s)
        within = sum(self.counts[:position])
        if position == len(LATENCY_BOUNDS_S):
            return within
        lower_s, upper_s = _BUCKETS_S[position]
        share = (bound_s - lower_s) / (upper_s - lower_s)
        return within + int(self.counts[position] * share + _ROUNDING)

    def samples(self) -> tuple[tuple[int, float], ...]:
        """Calls with the seconds that each of them took, as far as it is known: a row for each
        bucket that has any, within its bounds, and all of them together take `sum_s`.

        In every bucket the calls stand at the same share of the way between the bounds, the one
        with which the sum is right. Calls beyond the last bound make up for what then is missing.
        """
        rows = [
            (calls, *_BUCKETS_S[position])
            for position, calls in enumerate(self.counts[:-1])
            if calls
        ]
        slow, slowest_s = self.counts[-1], LATENCY_BOUNDS_S[-1]
        lowest_s = sum(calls * lower_s for calls, lower_s, _ in rows) + slow * slowest_s
        width_s = sum(calls * (upper_s - lower_s) for calls, lower_s, upper_s in rows)
        spare_s = self.sum_s - lowest_s
        share = min(max(spare_s / width_s, 0.0), 1.0) if width_s else 0.0
        found = [(calls, lower + share * (upper - lower)) for calls, lower, upper in rows]
        if slow:
            found.append((slow, slowest_s + max(spare_s - share * width_s, 0.0) / slow))
        return tuple(found)

    def quantile_s(self, share: float) -> float:
        """An estimate of the time within which `share` (0 to 1) of the calls were answered.

        Straight between the bounds of a bucket, as Prometheus estimates it; calls beyond the last
        bound are reported as that bound. Without calls: 0.
        """
        rank = share * self.count
        passed = 0
        for position, calls in enumerate(self.counts[:-1]):
            if calls and passed + calls >= rank:
                lower_s, upper_s = _BUCKETS_S[position]
                return lower_s + (upper_s - lower_s) * (rank - passed) / calls
            passed += calls
        return LATENCY_BOUNDS_S[-1] if self.counts[-1] else 0.0


class LatencyTally:
    """A histogram that is being added to."""

    __slots__ = ("_counts", "_sum_s")

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENCY_BOUNDS_S) + 1)
        self._sum_s = 0.0

    def observe(self, calls: int, seconds: float) -> None:
        """Add `calls` calls that took `seconds` each."""
        self._counts[bisect_left(LATENCY_BOUNDS_S, seconds)] += calls
        self._sum_s += calls * seconds

    def add(self, latency: Latency) -> None:
        add_in_place(self._counts, latency.counts)
        self._sum_s += latency.sum_s

    def value(self) -> Latency:
        return Latency(tuple(self._counts), self._sum_s)


def add_in_place(counts: list[int], more: Sequence[int]) -> None:
    """Add position by position; both have the same length."""
    for position, number in enumerate(more):
        counts[position] += number
