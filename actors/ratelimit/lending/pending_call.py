"""A batch of a front, as far as its counts are known: some were there at once, some are awaited."""

from dataclasses import dataclass
from typing import Any

from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.lending.messages import LimitedHit


@dataclass(slots=True)
class Awaited:
    """A request that the partition was asked for. `places`: where its counts go, (row, column)."""

    hits: list[LimitedHit]
    places: list[tuple[int, int]]
    is_answered: bool = False


class PendingCall:
    """`counts`: in the shape of the batch; what is awaited has a number that means nothing.
    Each is a count of hits, or Unreachable.

    `number`, `until_s`: only of what was asked, in the partition, and when whoever waits gives up,
    by the monotonic clock."""

    __slots__ = ("_awaited", "counts", "is_conditional", "left", "number", "until_s")

    number: int
    until_s: float

    def __init__(self, counts: list[list[Any]], *, is_conditional: bool = False) -> None:
        self.counts = counts
        self.is_conditional = is_conditional
        self.left = 0
        self._awaited: list[Awaited] | None = None  # (most calls wait for nothing)

    @property
    def is_done(self) -> bool:
        return not self.left

    @property
    def awaited(self) -> list[Awaited]:
        if self._awaited is None:
            self._awaited = []
        return self._awaited

    def wait_for(self, hits: list[LimitedHit], places: list[tuple[int, int]]) -> None:
        """One more request that the partition has to count."""
        self.awaited.append(Awaited(hits, places))
        self.left += 1

    def settle(self, request: int, counts: list[int] | Unreachable) -> None:
        """What became of a request; only the first thing that is said of it holds."""
        awaited = self.awaited[request]
        if awaited.is_answered:
            return
        awaited.is_answered = True
        self.left -= 1
        for number, (row, column) in enumerate(awaited.places):
            count = counts if isinstance(counts, Unreachable) else counts[number]
            self.counts[row][column] = count

    def fail(self, reason: str) -> None:
        """Nothing more will come."""
        for request in range(len(self.awaited)):
            self.settle(request, Unreachable(reason))
