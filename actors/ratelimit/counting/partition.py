"""A counter partition that is asked for every hit: one table, called with what travels.

What goes in and out of a call is pickled here: Ray's generic serialiser would cost each call
another 100 µs.
"""

import logging
import os
import pickle
from collections.abc import Callable, Sequence
from itertools import islice

from tollgate.actors.ratelimit.counting.counter_row import CounterReset, CounterRow, RowsPage
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
SCANNED_MAX = 16_384
"""A page looks at no more counters than these."""


class DirectPartition:
    """Not thread-safe: calls come one at a time."""

    def __init__(self, counters_max: int, *, refuses_when_full: bool) -> None:
        self._table = CounterTable(counters_max, refuses_when_full=refuses_when_full)
        self._refuses_when_full = refuses_when_full
        self._eviction_notice = EvictionNotice()
        self._calls = 0
        self._resets = 0
        self.falls = 0
        """How often counts may have become smaller: hits given back, and resets."""

    def hit(self, call: bytes) -> bytes:
        """Apply a pickled (batch, now_s); the counts after, pickled."""
        batch, now_s = pickle.loads(call)
        self.falls += sum(min(addends, default=0) < 0 for _, _, addends in batch)
        return self._answer(self._table.hit(batch, now_s), now_s)

    def hit_conditionally(self, call: bytes) -> bytes:
        """Apply pickled (requests, now_s) under B9; the counts after, pickled."""
        requests, now_s = pickle.loads(call)
        self.falls += sum(min(addends, default=0) < 0 for _, _, addends, _ in requests)
        counts = self._table.hit_conditionally([Conditional(*each) for each in requests], now_s)
        return self._answer(counts, now_s)

    def describe(self) -> dict[str, int]:
        """The process, the size of its table, and what became of counters; also a probe."""
        return {
            "pid": os.getpid(),
            "counters": len(self._table),
            "evicted": self._table.evicted,
            "calls": self._calls,
            "resets": self._resets,
            "falls": self.falls,
        }

    # For operators

    def list_counters(
        self, is_wanted: Callable[[bytes], bool], after: tuple[int, int] | None
    ) -> RowsPage:
        """Counters whose keys are wanted; the page after a place: a window and a number."""
        number, skipped = after or (0, 0)
        rows: list[CounterRow] = []
        left = SCANNED_MAX
        for position, (end_s, window) in enumerate(self._table.windows()):
            if position < number:
                continue
            start = skipped if position == number else 0
            looked_at = list(islice(window.items(), start, start + left))
            rows += [CounterRow(end_s, key, hits) for key, hits in looked_at if is_wanted(key)]
            left -= len(looked_at)
            if left <= 0:
                return RowsPage(rows, (position, start + len(looked_at)))
        return RowsPage(rows, None)

    def find_counters(self, keys: Sequence[bytes]) -> list[CounterRow]:
        """The counters of these keys, in all their windows."""
        return [
            CounterRow(end_s, key, window[key])
            for end_s, window in self._table.windows()
            for key in keys
            if key in window
        ]

    def reset_counters(self, keys: Sequence[bytes]) -> list[CounterReset]:
        """Begin these counters again at 0, in all their windows."""
        rows = self.find_counters(keys)
        for row in rows:
            self._table.forget(row.end_s, row.key)
        self._resets += len(rows)
        self.falls += len(rows)
        return [CounterReset(row, None) for row in rows]

    def _answer(self, counts: list[list[int]], now_s: int) -> bytes:
        self._calls += 1
        if notice := self._eviction_notice.look(self._table.evicted, now_s):
            LOG.warning(notice)
        answer: PartitionCounts = counts
        if self._refuses_when_full:
            full = Unreachable(TABLE_FULL)
            answer = [[full if count == FULL else count for count in each] for each in counts]
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
