"""The counters of slots that a front has whole: counted as in a partition's table, at its price.

    a counter that is in its window's table is in a slot that the front has: counted, no question
    one that is not there may come to be in such a slot; else it is for the notes, or to be asked

So the ordinary hit costs one look into one dictionary. A front that has all slots need not know the
slot of a new counter either: it is sorted in by the reports, bit by bit, or when a slot is to be
given. The keys of a call are put down as changed as a whole; the reports go through them, and
whatever they find there has been used most recently.

A window ends by the monotonic clock (see `partition/slot_table.py`).
"""

from itertools import islice

from tollgate.actors.ratelimit.counting.counters import Conditional, conditional_addends
from tollgate.actors.ratelimit.lending.messages import CounterColumns, CounterName, LimitedHits
from tollgate.actors.ratelimit.lending.notes import Notes
from tollgate.actors.ratelimit.lending.recency import Recency
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

FREED_PER_CALL_MAX = 4_096
EVICTED_AT_ONCE = 1_024
NOT_HERE = -1
"""In the place of a count: the partition has to be asked."""
FULL = -2
"""In the place of a count: the counter is new, and the table is full."""


class HomeCounters:
    """Counts of whole slots by window end and key. Not thread-safe."""

    def __init__(self, terms: Terms, notes: Notes) -> None:
        self._terms = terms
        self._counters_max = terms.counters_max
        self._notes = notes
        self._windows: dict[int, dict[bytes, int]] = {}
        self._changed: dict[int, set[bytes]] = {}
        self._ends_at_s: dict[int, float] = {}
        self._epochs = [0] * SLOTS
        self._slots_held = 0
        # By slot, window and key: the count that was said, to the partition or by it.
        self._said: list[dict[int, dict[bytes, int]]] = [{} for _ in range(SLOTS)]
        # Counters that are not in `_said` yet, by window.
        self._unsorted: dict[int, list[bytes]] = {}
        # In the order of use as of the last report: key -> its newest window.
        self._used: Recency[bytes, int] = Recency()
        self._ended: list[tuple[int, dict[bytes, int]]] = []
        self._has_others = False
        self.has_missed = False
        """Whether a count was NOT_HERE or FULL since somebody set this to False."""
        self._size = 0
        self.evicted = 0

    def __len__(self) -> int:
        return self._size

    def epoch(self, slot: int) -> int:
        """The epoch of a slot that the front has; 0 when it has it not."""
        return self._epochs[slot]

    @property
    def has_all_slots(self) -> bool:
        return self._slots_held == SLOTS

    def slots(self) -> list[int]:
        """The slots that the front has."""
        return [slot for slot, epoch in enumerate(self._epochs) if epoch]

    # Counting

    def hit(self, hits: LimitedHits, left_s: float, now_s: float) -> list[int]:
        """Apply operations; the counts after, NOT_HERE or FULL. `left_s`: until the window ends."""
        end_s, keys, addends, limits = hits
        window = self._windows.get(end_s)
        if window is None:
            window = self.open_window(end_s, left_s, now_s)
        find = window.get
        counts: list[int] = []
        note = counts.append
        room = self._counters_max - self._size if self._slots_held == SLOTS else 0
        for key, addend in zip(keys, addends, strict=True):
            count = find(key)
            if count is None:
                if room > 0 and addend > 0:
                    room -= 1
                    self._size += 1
                    window[key] = addend
                    self._unsorted[end_s].append(key)
                    note(addend)
                else:
                    note(self._hit_other(end_s, key, addend, limits[len(counts)]))
                continue
            if addend > 0:
                count += addend
                window[key] = count
            elif addend:
                count = max(0, count + addend)
                window[key] = count
            note(count)
        if self._has_others:
            self._has_others = False
            keys = [key for key in keys if key in window]
        self._changed[end_s].update(keys)
        return counts

    def _hit_other(self, end_s: int, key: bytes, addend: int, limit: int) -> int:
        """A hit on what is not in the table: a shared counter, a new one, or somebody else's."""
        self._has_others = True
        note = self._notes.find(end_s, key)
        if note is not None and note.has_loan:
            count = note.count(addend, limit)
            if count is None:
                self.has_missed = True
                return NOT_HERE
            if addend:
                self._notes.changed[end_s, key] = None
            return count
        slot = slot_of(key)
        if not self._epochs[slot]:
            self.has_missed = True
            return NOT_HERE
        if addend <= 0:
            return 0
        if self._size >= self._terms.counters_max and not self._make_room():
            self.has_missed = True
            return FULL
        self._windows[end_s][key] = addend
        self._put(slot, end_s, key, 0)
        return addend

    def has(self, request: Conditional) -> bool:
        """Whether all counters of a request are in slots that the front has."""
        return all(self._epochs[slot_of(key)] for key in request.keys)

    def hit_conditionally(self, request: Conditional, wall_s: float, now_s: float) -> list[int]:
        """Apply one request by B9, all of whose counters are here; the counts after, or FULL."""
        for end_s in request.end_s:
            self.open_window(end_s, end_s - wall_s, now_s)
        names = list(zip(request.end_s, request.keys, strict=True))
        before = {key: self._windows[end_s].get(key, 0) for end_s, key in names}
        if self._terms.refuses_when_full and not self._has_room_for(names, request.addends):
            return [FULL] * len(names)
        addends = conditional_addends(before, request)
        return [
            self.hit(LimitedHits(end_s, [key], [addend], [0]), end_s - wall_s, now_s)[0]
            for (end_s, key), addend in zip(names, addends, strict=True)
        ]

    def _has_room_for(self, names: list[CounterName], addends: list[int]) -> bool:
        new = {
            (end_s, key)
            for (end_s, key), addend in zip(names, addends, strict=True)
            if addend > 0 and key not in self._windows[end_s]
        }
        return self._size + len(new) <= self._terms.counters_max

    # Slots

    def take_slot(
        self, slot: int, epoch: int, counters: list[CounterColumns], wall_s: float, now_s: float
    ) -> bool:
        """A slot is the front's from now on, with what is counted there. False: the table is full,
        and keeps what it has."""
        size = sum(len(keys) for _, keys, _ in counters)
        if self._terms.refuses_when_full and self._size + size > self._terms.counters_max:
            return False
        self._slots_held += not self._epochs[slot]
        self._epochs[slot] = epoch
        for end_s, keys, counts in counters:
            window = self.open_window(end_s, end_s - wall_s, now_s)
            if self._size + len(keys) <= self._counters_max:
                self._size -= len(window)
                window.update(zip(keys, counts, strict=True))
                self._size += len(window)
                self._said[slot].setdefault(end_s, {}).update(zip(keys, counts, strict=True))
                for key in keys:
                    self._use(end_s, key)
                continue
            for key, count in zip(keys, counts, strict=True):
                if self._size < self._counters_max or self._make_room():
                    window[key] = count
                    self._put(slot, end_s, key, count)
        return True

    def give_slot(
        self, slot: int
    ) -> tuple[list[CounterColumns], list[CounterColumns], list[CounterColumns]]:
        """A slot is not the front's any more. Its counters that have changed since they were said,
        the hits that were not said of these, and all its counters."""
        self._sort_in(self._size)
        self._slots_held -= bool(self._epochs[slot])
        self._epochs[slot] = 0
        changed, hits, everything = [], [], []
        for end_s, said in self._said[slot].items():
            window = self._windows[end_s]
            counts = {key: window.pop(key) for key in said}
            everything.append((end_s, list(counts), list(counts.values())))
            for key in said:
                self._forget_use(end_s, key)
            self._size -= len(said)
            new = list(said.keys() & self._changed[end_s])
            if new:
                self._changed[end_s].difference_update(new)
                changed.append((end_s, new, [counts[key] for key in new]))
                hits.append((end_s, new, [counts[key] - said[key] for key in new]))
        self._said[slot] = {}
        return changed, hits, everything

    def tell(self, slot: int) -> list[CounterColumns]:
        """All counters of a slot that the front has. They count as said."""
        self._sort_in(self._size)
        columns = []
        for end_s, said in self._said[slot].items():
            window = self._windows[end_s]
            for key in said:
                said[key] = window[key]
            columns.append((end_s, list(said), list(said.values())))
        return columns

    def report(self, counters_max: int) -> tuple[list[CounterColumns], list[CounterColumns]]:
        """Up to so many counters that have changed since they were said, and the hits that were
        not said of them. They count as the most recently used."""
        self._sort_in(counters_max)
        columns, hits = [], []
        for end_s, changed in self._changed.items():
            if not changed or counters_max <= 0:
                continue
            window = self._windows[end_s]
            # (Not from the beginning: what was reported before leaves empty places there.)
            keys = [changed.pop() for _ in range(min(len(changed), counters_max))]
            counters_max -= len(keys)
            keys = [key for key in keys if key in window]
            for key in keys:
                self._use(end_s, key)
            if keys:
                counts = [window[key] for key in keys]
                columns.append((end_s, keys, counts))
                hits.append((end_s, keys, self._say(end_s, keys, counts)))
        return columns, hits

    def _say(self, end_s: int, keys: list[bytes], counts: list[int]) -> list[int]:
        """Note what is said of counters; the hits that were not said before."""
        hits = []
        for key, count in zip(keys, counts, strict=True):
            windows = self._said[slot_of(key)]
            said = windows.get(end_s)
            if said is None:  # (a new counter, which is not sorted in yet)
                said = windows[end_s] = {}
            hits.append(count - said.get(key, 0))
            said[key] = count
        return hits

    @property
    def has_changed(self) -> bool:
        return any(self._changed.values())

    # Windows

    def ended(self, now_s: float) -> list[int]:
        """Set aside windows that have ended, free some of what was set aside; which ended."""
        ended = [end_s for end_s, at_s in self._ends_at_s.items() if at_s <= now_s]
        for end_s in ended:
            del self._ends_at_s[end_s], self._changed[end_s], self._unsorted[end_s]
            self._ended.append((end_s, self._windows.pop(end_s)))
            for said in self._said:
                said.pop(end_s, None)
        if self._ended:
            self._free(FREED_PER_CALL_MAX)
        return ended

    def open_window(self, end_s: int, left_s: float, now_s: float) -> dict[bytes, int]:
        """The table of a window, made if need be. `left_s`: until it ends."""
        window = self._windows.get(end_s)
        if window is not None:
            return window
        margin_s = self._terms.skew_max_s + self._terms.margin_s
        self._ends_at_s[end_s] = now_s + max(0.0, left_s) + margin_s
        self._changed[end_s] = set()
        self._unsorted[end_s] = []
        window = self._windows[end_s] = {}
        return window

    def _put(self, slot: int, end_s: int, key: bytes, said: int) -> None:
        """Note a counter that was not there before."""
        self._said[slot].setdefault(end_s, {})[key] = said
        self._size += 1
        self._use(end_s, key)

    def _sort_in(self, keys_max: int) -> None:
        """Put up to so many counters of each window into their slots."""
        for end_s, unsorted in self._unsorted.items():
            if not unsorted:
                continue
            for key in unsorted[-keys_max:]:
                windows = self._said[slot_of(key)]
                said = windows.get(end_s)
                if said is None:
                    said = windows[end_s] = {}
                said.setdefault(key, 0)
            del unsorted[-keys_max:]

    # Memory

    def _use(self, end_s: int, key: bytes) -> None:
        newest_s = self._used.get(key)
        self._used.use(key, end_s if newest_s is None or newest_s < end_s else newest_s)

    def _forget_use(self, end_s: int, key: bytes) -> None:
        if self._used.get(key) == end_s:
            self._used.forget(key)

    def _free(self, counters: int) -> None:
        """Forget some counters of windows that have ended."""
        end_s, window = self._ended.pop()
        keys = list(islice(window, counters))
        for key in keys:
            del window[key]
            self._forget_use(end_s, key)
        self._size -= len(keys)
        if window:
            self._ended.append((end_s, window))

    def _make_room(self) -> bool:
        """Free at least one place, or say that the table is full."""
        if self._ended:
            self._free(EVICTED_AT_ONCE)
            return True
        if self._terms.refuses_when_full:
            return False
        self._sort_in(self._size)
        end_s, key = self._least_recently_used()
        del self._windows[end_s][key]
        self._said[slot_of(key)][end_s].pop(key, None)
        self._forget_use(end_s, key)
        self._size -= 1
        self.evicted += 1
        return True

    def _least_recently_used(self) -> CounterName:
        for _ in range(min(EVICTED_AT_ONCE, len(self._used))):
            key, end_s = self._used.least_recent()
            if key not in self._changed[end_s]:
                return end_s, key
            # It was used since the last report.
            self._use(end_s, key)
        # All were; or what is left is in windows that other counters of its keys have left behind.
        return next((end_s, key) for end_s in sorted(self._windows) for key in self._windows[end_s])
