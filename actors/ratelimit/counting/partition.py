"""A counter partition that is asked for every hit: one table, called with what travels.

What goes in and out of a call is pickled here: Ray's generic serialiser would cost each call
another 100 µs.
"""

import logging
import pickle

from tollgate.actors.ratelimit.counting.counters import (
    FULL,
    TABLE_FULL,
    Conditional,
    CounterTable,
    PartitionCounts,
    Unreachable,
)
from tollgate.actors.ratelimit.counting.eviction_notice import EvictionNotice

LOG = logging.getLogger("tollgate.counters")


class DirectPartition:
    """Not thread-safe: calls come one at a time."""

    def __init__(self, counters_max: int, *, refuses_when_full: bool) -> None:
        self._table = CounterTable(counters_max, refuses_when_full=refuses_when_full)
        self._refuses_when_full = refuses_when_full
        self._eviction_notice = EvictionNotice()
        self._calls = 0

    def hit(self, call: bytes) -> bytes:
        """Apply a pickled (batch, now_s); the counts after, pickled."""
        batch, now_s = pickle.loads(call)
        return self._answer(self._table.hit(batch, now_s), now_s)

    def hit_conditionally(self, call: bytes) -> bytes:
        """Apply pickled (requests, now_s) under B9; the counts after, pickled."""
        requests, now_s = pickle.loads(call)
        counts = self._table.hit_conditionally([Conditional(*each) for each in requests], now_s)
        return self._answer(counts, now_s)

    def describe(self) -> dict[str, int]:
        """The size of the table, what it has given up, and the calls that were taken."""
        evicted, calls = self._table.evicted, self._calls
        return {"counters": len(self._table), "evicted": evicted, "calls": calls}

    def _answer(self, counts: list[list[int]], now_s: int) -> bytes:
        self._calls += 1
        if notice := self._eviction_notice.look(self._table.evicted, now_s):
            LOG.warning(notice)
        answer: PartitionCounts = counts
        if self._refuses_when_full:
            full = Unreachable(TABLE_FULL)
            answer = [[full if count == FULL else count for count in each] for each in counts]
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
