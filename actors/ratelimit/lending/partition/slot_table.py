"""The counters of a partition, slot by slot, so that a slot can be handed over as it is.

A window ends by the monotonic clock, at the time that its end was away when it was opened, and a
margin: whoever opened it agreed with the partition about the time, and no clock that jumps later
ends it too early. What has ended is freed bit by bit.

Memory is bounded. A full table gives up what has not been used for longest, of all windows; or, as
the terms say, it refuses new counters (`has_room_for`), but for those that a front has opened at
home already.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from itertools import islice

from tollgate.actors.ratelimit.lending.messages import CounterColumns, CounterName
from tollgate.actors.ratelimit.lending.recency import CounterRecency
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

FREED_PER_CALL_MAX = 4_096
EVICTED_AT_ONCE = 1_024
STAMPS = 4_096
"""In the order of use, while a table of counters is used once."""

Names = list[tuple[int, Collection[bytes]]]
"""(end of a window, keys in it)"""


class ChangeReader(Enum):
    """The purposes for which somebody asks what has changed."""

    JOURNAL = "journal"
    COPY = "copy"


def side_by_side(counts: Mapping[CounterName, int]) -> list[CounterColumns]:
    """Counters by window."""
    columns: dict[int, CounterColumns] = {}
    for (end_s, key), count in counts.items():
        _, keys, numbers = columns.setdefault(end_s, (end_s, [], []))
        keys.append(key)
        numbers.append(count)
    return list(columns.values())


class SlotTable:
    """Counts by slot, window end and key. A count may be below zero while loans make up for it."""

    def __init__(self, terms: Terms, *, keeps_changes: bool = False) -> None:
        self._terms = terms
        self._slots: list[dict[int, dict[bytes, int]]] = [{} for _ in range(SLOTS)]
        self._ends_at_s: dict[int, float] = {}
        self._used = CounterRecency(max(1, terms.counters_max // STAMPS))
        self._ended: list[tuple[int, dict[bytes, int]]] = []
        # By reader and window, in the order of change; at most as many as there are counters.
        self._changed: dict[ChangeReader, dict[int, dict[bytes, None]]] = {}
        if keeps_changes:
            self.note_changes_for(ChangeReader.JOURNAL)
        self._size = 0
        self.evicted = 0
        self.changes = 0
        """The number of the last change that somebody is told of."""
        self.falls = 0
        """How often a count has become smaller: hits were given back, or it was set to 0."""

    def __len__(self) -> int:
        return self._size

    def open_window(self, end_s: int, wall_s: float, now_s: float) -> None:
        """Name a window that is about to be counted in. `wall_s`: by the partition's clock."""
        if end_s not in self._ends_at_s:
            left_s = max(0.0, end_s - wall_s)
            self._ends_at_s[end_s] = now_s + left_s + self._terms.skew_max_s + self._terms.margin_s

    def open_windows(
        self, counters: Sequence[tuple[int, *tuple[object, ...]]], wall_s: float, now_s: float
    ) -> None:
        """Open the windows of counters that a front tells of, but for those that have ended."""
        for end_s, *_ in counters:
            if end_s > wall_s - self._terms.skew_max_s:
                self.open_window(end_s, wall_s, now_s)

    def count(self, slot: int, end_s: int, key: bytes) -> int:
        window = self._slots[slot].get(end_s)
        return 0 if window is None else window.get(key, 0)

    def add(self, slot: int, end_s: int, key: bytes, addend: int) -> None:
        """Add to a counter, which comes to be if it was not there. To add nothing is a use, too."""
        if addend:
            self.put(slot, end_s, key, self.count(slot, end_s, key) + addend)
        elif self.has(slot, end_s, key):
            self._used.use((end_s, key))

    def put(self, slot: int, end_s: int, key: bytes, count: int) -> None:
        """Set a counter, which comes to be if it was not there."""
        if end_s not in self._ends_at_s:
            return  # (its window has ended meanwhile)
        windows = self._slots[slot]
        window = windows.get(end_s)
        if window is None:
            window = windows[end_s] = {}
        before = window.get(key)
        if before is None:
            if self._size >= self._terms.counters_max:
                self._make_room()
            self._size += 1
        elif count < before:
            self.falls += 1
        window[key] = count
        self._used.use((end_s, key))
        if self._changed:
            self.note_change(end_s, key)

    def put_all(self, columns: CounterColumns) -> None:
        """Set counters of a window that is open, many at once. They do not count as changed."""
        end_s, keys, counts = columns
        if self._size + len(keys) > self._terms.counters_max:
            for key, count in zip(keys, counts, strict=True):
                self.put(slot_of(key), end_s, key, count)
            return
        slots = list(map(slot_of, keys))
        for slot, key, count in zip(slots, keys, counts, strict=True):
            window = self._slots[slot].setdefault(end_s, {})
            self._size += key not in window
            window[key] = count
        for key in keys:
            self._used.use((end_s, key))

    def note_changes_for(self, reader: ChangeReader) -> None:
        """Remember from now on what changes, for this reader."""
        self._changed[reader] = {}

    def forget_changes_of(self, reader: ChangeReader) -> None:
        """Remember nothing for this reader any more."""
        self._changed.pop(reader, None)

    def note_change(self, end_s: int, key: bytes) -> None:
        """Remember a counter for `take_changes`, for each reader there is."""
        if end_s not in self._ends_at_s:
            return
        self.changes += 1
        for windows in self._changed.values():
            changed = windows.get(end_s)
            if changed is None:
                changed = windows[end_s] = {}
            changed[key] = None

    def take_changes(
        self, counters_max: int, reader: ChangeReader = ChangeReader.JOURNAL
    ) -> list[tuple[int, list[bytes]]]:
        """(window, keys) of up to so many counters that have changed since the reader took them."""
        taken = []
        windows = self._changed.get(reader, {})
        for end_s in list(windows):
            changed = windows[end_s]
            # (Not from the beginning: what was taken before leaves empty places there.)
            keys = [changed.popitem()[0] for _ in range(min(len(changed), counters_max))]
            counters_max -= len(keys)
            if not changed:
                del windows[end_s]
            if keys:
                taken.append((end_s, keys))
        return taken

    def has_changes(self, reader: ChangeReader) -> bool:
        """Whether there is something that the reader has not taken."""
        return any(self._changed.get(reader, {}).values())

    def has_room_for(self, slot: int, end_s: int, key: bytes) -> bool:
        """Whether the counter is there, or can come to be."""
        if not self._terms.refuses_when_full or key in self._slots[slot].get(end_s, ()):
            return True
        return self.has_room(1)

    def has_room(self, counters: int) -> bool:
        """Whether so many new counters can come to be, in the place of ended ones too."""
        if self._size + counters > self._terms.counters_max and self._ended:
            self._free(EVICTED_AT_ONCE)
        return self._size + counters <= self._terms.counters_max

    def columns(self, slot: int) -> list[CounterColumns]:
        """All counters of a slot."""
        return [
            (end_s, list(window), list(window.values()))
            for end_s, window in self._slots[slot].items()
        ]

    def names(self, slot: int) -> Names:
        """The names of all counters of a slot, to be read before anything changes."""
        return [(end_s, window.keys()) for end_s, window in self._slots[slot].items()]

    def has(self, slot: int, end_s: int, key: bytes) -> bool:
        return key in self._slots[slot].get(end_s, ())

    @property
    def ends_s(self) -> list[int]:
        """The windows that are open."""
        return list(self._ends_at_s)

    def size_of(self, slot: int) -> int:
        return sum(map(len, self._slots[slot].values()))

    def end_windows(self, now_s: float) -> list[int]:
        """Set aside what has ended, and free some of what was set aside. The windows that ended."""
        ended = [end_s for end_s, at_s in self._ends_at_s.items() if at_s <= now_s]
        for end_s in ended:
            del self._ends_at_s[end_s]
            for changed in self._changed.values():
                changed.pop(end_s, None)
            for windows in self._slots:
                if window := windows.pop(end_s, None):
                    self._ended.append((end_s, window))
        left = FREED_PER_CALL_MAX
        while self._ended and left > 0:
            left -= self._free(left)
        return ended

    def _free(self, counters: int) -> int:
        """Forget up to so many counters of a window that is in no slot any more; how many."""
        end_s, window = self._ended.pop()
        keys = list(islice(window, counters))
        for key in keys:
            del window[key]
            self._used.forget((end_s, key))
        self._size -= len(keys)
        if window:
            self._ended.append((end_s, window))
        return len(keys)

    def _make_room(self) -> None:
        if self._ended:
            self._free(EVICTED_AT_ONCE)
            return
        end_s, key = self._used.least_recent()
        self._used.forget((end_s, key))
        del self._slots[slot_of(key)][end_s][key]
        for changed in self._changed.values():
            changed.get(end_s, {}).pop(key, None)
        self._size -= 1
        self.evicted += 1
