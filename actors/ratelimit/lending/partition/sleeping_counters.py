"""Counters that were left behind in windows which have ended, if the time of day is right.

A machine may start with a clock that is hours or years ahead, and be put right a while later. By
such a clock every window has ended, and there is nothing to tell it by: a long stop looks the same.
So what has ended when it is restored is neither counted in nor dropped. It sleeps, and is written
down again with everything else:

    the clock is set back before the window's end -> it is counted on with, as if nothing had been
    the clock goes on for an hour without that    -> it is believed, and they are dropped
    there is no room for them beside live ones    -> those whose windows ended first are dropped
"""

from collections.abc import Iterable
from math import inf

from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.slot_table import SlotTable
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

BELIEVED_AFTER_S = 3_600.0
"""By the monotonic clock. A machine asks for the time as soon as it has a network."""
WOKEN_AT_ONCE = 4_096
"""About so many wake in one step, but for those of one slot: hits wait meanwhile."""


class SleepingCounters:
    """By slot, window and key. Not thread-safe."""

    def __init__(self) -> None:
        self._slots: list[dict[int, dict[bytes, int]]] = [{} for _ in range(SLOTS)]
        self._sizes: dict[int, int] = {}
        self._until_s = -inf

    def __len__(self) -> int:
        return sum(self._sizes.values())

    def put(self, columns: CounterColumns, now_s: float) -> None:
        """Counters of one window go to sleep; what comes later of a counter holds."""
        end_s, keys, counts = columns
        size = self._sizes.get(end_s, 0)
        for key, count in zip(keys, counts, strict=True):
            window = self._slots[slot_of(key)].setdefault(end_s, {})
            size += key not in window
            window[key] = count
        self._sizes[end_s] = size
        self._until_s = now_s + BELIEVED_AFTER_S

    def bound(self, counters_max: int, now_s: float) -> None:
        """Drop what there is no room for, and everything when the clock is believed."""
        if now_s >= self._until_s:
            counters_max = 0
        while self._sizes and len(self) > counters_max:
            self._drop(min(self._sizes))

    def wake(self, wall_s: float) -> list[CounterColumns]:
        """Some of those whose windows have not ended, for the clock was set back; not here any
        more."""
        live = [end_s for end_s in self._sizes if end_s > wall_s]
        woken: list[CounterColumns] = []
        left = WOKEN_AT_ONCE
        for windows in self._slots if live else ():
            for end_s in live:
                if window := windows.pop(end_s, None):
                    woken.append((end_s, list(window), list(window.values())))
                    self._sizes[end_s] -= len(window)
                    left -= len(window)
            if left <= 0:
                break
        for end_s in live:
            if not self._sizes[end_s]:
                del self._sizes[end_s]
        return woken

    def columns(self, slot: int) -> list[CounterColumns]:
        """All that sleep in a slot."""
        return [
            (end_s, list(window), list(window.values()))
            for end_s, window in self._slots[slot].items()
        ]

    def _drop(self, end_s: int) -> None:
        for windows in self._slots:
            windows.pop(end_s, None)
        del self._sizes[end_s]


class RestoredCounters:
    """Puts what was left behind into a table, or to sleep, so that both together are bounded."""

    def __init__(self, table: SlotTable, counters_max: int) -> None:
        self._table = table
        self._counters_max = counters_max
        self.asleep = SleepingCounters()

    def put(self, columns: CounterColumns, wall_s: float, now_s: float) -> None:
        """Take counters of one window; what comes later of a counter holds."""
        if columns[0] > wall_s or columns[0] in self._table.ends_s:
            self._table.open_window(columns[0], wall_s, now_s)
            self._table.put_all(columns)
        else:
            self.asleep.put(columns, now_s)
            self.asleep.bound(self._counters_max - len(self._table), now_s)

    def woken(self, wall_s: float, now_s: float) -> list[CounterColumns]:
        """Some of those that are to be counted on with, in windows that are open."""
        if not len(self.asleep):
            return []
        self.asleep.bound(self._counters_max - len(self._table), now_s)
        woken = self.asleep.wake(wall_s)
        self._table.open_windows(woken, wall_s, now_s)
        return woken


class RestoredLentCounters(RestoredCounters):
    """The same for a partition that lends: who has counters in which it is counted on gives them
    back first. `is_new`: no front was there before, so nobody knows of any of these hits."""

    def __init__(self, counters: LentCounters, terms: Terms, now_s: float, *, is_new: bool) -> None:
        super().__init__(counters.table, terms.counters_max)
        self._counters = counters
        self._made_s = now_s
        self._is_new = is_new

    def put_resets(self, resets: Iterable[CounterColumns]) -> None:
        """Take the resets of earlier processes, of windows that are open. To one that is new they
        say nothing: no front has heard of them."""
        if not self._is_new:
            is_open = self._table.ends_s
            self._counters.resets.note_all([each for each in resets if each[0] in is_open])

    def wake(self, wall_s: float, now_s: float) -> None:
        """Count on with some of those whose windows have not ended after all."""
        if len(self._counters.late):
            return  # (those before are not back yet)
        for end_s, keys, counts in self.woken(wall_s, now_s):
            if not self._is_new:
                known = [self._counters.known(end_s, key) for key in keys]
                counts = [max(0, each - n) for each, n in zip(counts, known, strict=True)]
            self._counters.add_late([(end_s, keys, counts)], self._made_s)
