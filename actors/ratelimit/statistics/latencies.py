"""Latency histograms: calls per bucket, cheap to add to, to send and to sum.

A bucket holds the calls that took at most its bound and more than the bound before; one more bucket
holds the slower ones. The bounds are the same in every process, so histograms add up by position.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

_BOUNDS_US = (50, 75, 100, 150, 200, 300, 500, 750)
_BOUNDS_MS = (1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 75, 100, 250, 500)
_BOUNDS_S = (1.0, 2.5, 5.0, 10.0)
LATENCY_BOUNDS_S: tuple[float, ...] = (
    *(bound / 1_000_000 for bound in _BOUNDS_US),
    *(bound / 1_000 for bound in _BOUNDS_MS),
    *_BOUNDS_S,
)


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

    def quantile_s(self, share: float) -> float:
        """An estimate of the time within which `share` (0 to 1) of the calls were answered.

        Straight between the bounds of a bucket, as Prometheus estimates it; calls beyond the last
        bound are reported as that bound. Without calls: 0.
        """
        rank = share * self.count
        passed = 0
        for position, calls in enumerate(self.counts[:-1]):
            if calls and passed + calls >= rank:
                lower_s = LATENCY_BOUNDS_S[position - 1] if position else 0.0
                width_s = LATENCY_BOUNDS_S[position] - lower_s
                return lower_s + width_s * (rank - passed) / calls
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
