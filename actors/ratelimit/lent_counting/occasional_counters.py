"""Borrowed counters of a process that counts now and then: nothing is lent to it while it rests.

    resting --hit--> borrowing --no hit for IDLE_S, or close--> resting

A store that borrows speaks with every partition twice a second, and has slots that others may need.
So it is there only while there is something to count, each time as another front.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    CounterStore,
    LimitedHits,
    PartitionCounts,
)

# A call that begins anew may miss its deadline, and passes uncounted then: so it is seldom.
IDLE_S = 300.0


class ClosingStore(CounterStore, Protocol):
    """A store that gives back what it has."""

    def close(self) -> None:
        """Give everything back: it is not used any more."""


class OccasionalCounters:
    """A CounterStore. `open_store` makes one that borrows. Belongs to one thread."""

    def __init__(
        self, open_store: Callable[[], ClosingStore], partitions: int, clock: Clock
    ) -> None:
        self._open_store = open_store
        self._partitions = partitions
        self._clock = clock
        self._store: ClosingStore | None = None
        self._used_s = 0.0

    @property
    def partitions(self) -> int:
        return self._partitions

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        return self._opened().hit(batches, now_s)

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        return self._opened().hit_conditionally(batches, now_s)

    def look(self) -> None:
        """Gives everything back when nothing was counted for IDLE_S."""
        if self._clock.monotonic_s() >= self._used_s + IDLE_S:
            self.close()

    def close(self) -> None:
        """Gives everything back; a hit begins anew."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _opened(self) -> ClosingStore:
        self._used_s = self._clock.monotonic_s()
        if self._store is None:
            self._store = self._open_store()
        return self._store
