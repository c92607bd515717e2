"""A counter partition that is asked for every hit: one table, called with what travels.

A window is named by the front that counts in it. How long it stays is told by the monotonic clock,
from the time that it had left when it was opened: by the front's clock or by the partition's,
whichever is longer, so that a front which is ahead ends nobody's window. What goes in and out of a
call is pickled here: Ray's generic serialiser would cost each call another 100 µs.
"""

import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counter_row import CounterReset, CounterRow, RowsPage
from tollgate.actors.ratelimit.counting.counters import (
    FULL,
    TABLE_FULL,
    Conditional,
    PartitionCounts,
    Unreachable,
    conditional_addends,
)
from tollgate.actors.ratelimit.counting.eviction_notice import EvictionNotice
from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress
from tollgate.actors.ratelimit.lending.partition.listing import Place, page_of
from tollgate.actors.ratelimit.lending.partition.sleeping_counters import RestoredCounters
from tollgate.actors.ratelimit.lending.partition.slot_table import Names, SlotTable
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

LOG = logging.getLogger("tollgate.counters")


class DirectPartition:
    """Thread-safe: hits come one call at a time, operators and whoever writes the journal beside
    them. `keeps_changes`: somebody writes down what `changed` hands out."""

    def __init__(
        self,
        counters_max: int,
        clock: Clock,
        *,
        refuses_when_full: bool,
        keeps_changes: bool = False,
    ) -> None:
        terms = Terms(counters_max=counters_max, refuses_when_full=refuses_when_full)
        self._clock = clock
        self._table = SlotTable(terms, keeps_changes=keeps_changes)
        self._refuses_when_full = refuses_when_full
        self._restored = RestoredCounters(self._table, counters_max)
        self._lock = Lock()
        self._eviction_notice = EvictionNotice()
        self._calls = 0
        self._resets = 0
        self.falls = 0
        """How often counts may have become smaller: hits given back, and resets."""

    def hit(self, call: bytes) -> bytes:
        """Apply a pickled (batch, now_s); the counts after, pickled."""
        batch, now_s = pickle.loads(call)
        with self._lock:
            self._open({end_s for end_s, _, _ in batch}, now_s)
            self.falls += sum(min(addends, default=0) < 0 for _, _, addends in batch)
            counts = [
                [self._hit(end_s, key, addend) for key, addend in zip(keys, addends, strict=True)]
                for end_s, keys, addends in batch
            ]
        return self._answer(counts)

    def hit_conditionally(self, call: bytes) -> bytes:
        """Apply pickled (requests, now_s) under B9; the counts after, pickled."""
        requests, now_s = pickle.loads(call)
        with self._lock:
            self._open({end_s for ends_s, _, _, _ in requests for end_s in ends_s}, now_s)
            self.falls += sum(min(addends, default=0) < 0 for _, _, addends, _ in requests)
            counts = [self._hit_request(Conditional(*each)) for each in requests]
        return self._answer(counts)

    def describe(self) -> dict[str, int]:
        """The process, the size of its table, and what became of counters; also a probe."""
        with self._lock:
            self._table.end_windows(self._clock.monotonic_s())
            return {
                "pid": os.getpid(),
                "counters": len(self._table),
                "evicted": self._table.evicted,
                "calls": self._calls,
                "resets": self._resets,
                "falls": self.falls,
            }

    def _open(self, ends_s: Iterable[int], now_s: float) -> None:
        """Let time pass, and name the windows of a call. `now_s`: by the caller's clock."""
        monotonic_s = self._clock.monotonic_s()
        wall_s = min(now_s, self._clock.now_s())
        self._table.end_windows(monotonic_s)
        # In windows that had ended by a clock that was wrong it is counted on.
        for end_s, keys, counts in self._restored.woken(self._clock.now_s(), monotonic_s):
            for key, count in zip(keys, counts, strict=True):
                self._table.add(slot_of(key), end_s, key, count)
        for end_s in ends_s:
            self._table.open_window(end_s, wall_s, monotonic_s)

    def _hit(self, end_s: int, key: bytes, addend: int) -> int:
        slot = slot_of(key)
        before = self._table.count(slot, end_s, key)
        if addend > 0 and not self._table.has_room_for(slot, end_s, key):
            return FULL
        count = max(0, before + addend)
        self._table.add(slot, end_s, key, count - before)
        return count

    def _hit_request(self, request: Conditional) -> list[int]:
        names = list(zip(request.end_s, request.keys, strict=True))
        if not self._has_room_for(names, request.addends):
            return [FULL] * len(names)
        counts = {key: self._table.count(slot_of(key), end_s, key) for end_s, key in names}
        addends = conditional_addends(counts, request)
        return [
            self._hit(end_s, key, addend)
            for (end_s, key), addend in zip(names, addends, strict=True)
        ]

    def _has_room_for(self, names: list[tuple[int, bytes]], addends: list[int]) -> bool:
        if not self._refuses_when_full:
            return True
        new = {
            (end_s, key)
            for (end_s, key), addend in zip(names, addends, strict=True)
            if addend > 0 and not self._table.has(slot_of(key), end_s, key)
        }
        return self._table.has_room(len(new))

    def _answer(self, counts: list[list[int]]) -> bytes:
        self._calls += 1
        if notice := self._eviction_notice.look(self._table.evicted, self._clock.monotonic_s()):
            LOG.warning(notice)
        answer: PartitionCounts = counts
        if self._refuses_when_full:
            full = Unreachable(TABLE_FULL)
            answer = [[full if count == FULL else count for count in each] for each in counts]
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)

    # For operators

    def list_counters(self, is_wanted: Callable[[bytes], bool], after: Place | None) -> RowsPage:
        """Counters whose keys are wanted; the page after a place."""
        with self._lock:
            page = page_of(self._live_names, after)
        wanted = [name for name in page.names if is_wanted(name[1])]  # (hits need not wait for it)
        with self._lock:
            return RowsPage(self._rows(wanted), page.after)

    def find_counters(self, keys: Sequence[bytes]) -> list[CounterRow]:
        """The counters of these keys, in all their windows."""
        with self._lock:
            return self._find(keys)

    def reset_counters(self, keys: Sequence[bytes]) -> list[CounterReset]:
        """Set these counters to 0, in all their windows."""
        with self._lock:
            rows = self._find(keys)
            for row in rows:
                self._table.put(slot_of(row.key), row.end_s, row.key, 0)
            self._resets += len(rows)
            self.falls += len(rows)
        return [CounterReset(row, None) for row in rows]

    def _live_names(self, slot: int) -> Names:
        now_s = self._clock.now_s()
        return [(end_s, keys) for end_s, keys in self._table.names(slot) if end_s > now_s]

    def _find(self, keys: Sequence[bytes]) -> list[CounterRow]:
        now_s = self._clock.now_s()
        ends_s = [end_s for end_s in self._table.ends_s if end_s > now_s]
        return self._rows((end_s, key) for key in keys for end_s in ends_s)

    def _rows(self, names: Iterable[tuple[int, bytes]]) -> list[CounterRow]:
        found = ((end_s, key, slot_of(key)) for end_s, key in names)
        return [
            CounterRow(end_s, key, self._table.count(slot, end_s, key))
            for end_s, key, slot in found
            if self._table.has(slot, end_s, key)
        ]

    # What outlives the process

    def restore(self, counters: Iterable[CounterColumns]) -> None:
        """Take what an earlier process has left behind, in the order in which it was written."""
        for columns in counters:
            with self._lock:
                self._restored.put(columns, self._clock.now_s(), self._clock.monotonic_s())

    def changed(self, counters_max: int) -> list[CounterColumns]:
        """Up to so many counters that have changed since they were handed out here."""
        with self._lock:
            return [
                (end_s, keys, [self._table.count(slot_of(key), end_s, key) for key in keys])
                for end_s, keys in self._table.take_changes(counters_max)
            ]

    def progress(self, after_reset: int) -> Progress:
        """Nothing that anybody asks for: there are no copies, nor fronts that remember counts."""
        del after_reset
        return Progress()

    def everything(self) -> Iterator[list[CounterColumns]]:
        """All counters, some at a time."""
        for slot in range(SLOTS):
            with self._lock:
                some = self._table.columns(slot) + self._restored.asleep.columns(slot)
            yield some
