"""The copies of other partitions that a partition holds, in bounded memory.

    parts of one origin, in order -> taken        a part is missing -> 0: from the beginning
    an origin of a later incarnation -> it goes on, on top of what is there
    an origin of an earlier incarnation -> SUPERSEDED: it does not know yet that it has a successor

Windows end as those of the partition's own counters do. A copy has no more counters than a
partition may have; what was told last stays.
"""

from dataclasses import dataclass
from threading import Lock

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.copies.messages import (
    SUPERSEDED,
    CopyDescription,
    CopyOrigin,
    CopyPage,
    CopyPart,
)
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.lending.partition.resets import Resets
from tollgate.actors.ratelimit.lending.partition.slot_table import SlotTable
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

COPIES_MAX = 4
"""One is usual. The one that nobody has added to for longest goes first."""
PAGE_COUNTERS_MIN = 4_096
"""A page ends with the slot that has brought so many."""


@dataclass(slots=True)
class HeldCopy:
    """Counters of one partition, as its processes have told them."""

    origin: CopyOrigin
    table: SlotTable
    resets: Resets
    heard_s: float
    expected: int = 0
    sent_s: float = 0.0
    whole_since_s: float | None = None
    mark: int | None = None
    last_change: int = 0

    def goes_on_with(self, part: CopyPart) -> bool:
        """Whether this is the next part, or the last one once more."""
        is_due = part.number in (self.expected, self.expected - 1)
        return self.origin == part.origin and is_due

    def description(self) -> CopyDescription:
        return CopyDescription(
            self.origin, self.sent_s, self.whole_since_s, self.mark, self.last_change
        )


class CopyShelf:
    """Copies by the partition's number, at most COPIES_MAX. Thread-safe."""

    def __init__(self, terms: Terms, clock: Clock) -> None:
        self._terms = terms
        self._clock = clock
        self._lock = Lock()
        self._copies: dict[int, HeldCopy] = {}

    def take(self, part: CopyPart) -> int:
        """Add a part to its copy; the number of the part that is wanted next, as in CopyReply."""
        with self._lock:
            copy = self._copies.get(part.origin.partition)
            if copy is not None and part.origin.incarnation < copy.origin.incarnation:
                return SUPERSEDED
            if part.number == 0:
                copy = self._begun(part.origin, copy)
            elif copy is None or not copy.goes_on_with(part):
                return 0
            self._add(part, copy)
            return copy.expected

    def describe_copy(self, partition: int) -> CopyDescription | None:
        """What there is of a partition."""
        with self._lock:
            copy = self._copies.get(partition)
            return None if copy is None else copy.description()

    def page(self, partition: int, first_slot: int) -> CopyPage:
        """Counters of a partition, from a slot on."""
        with self._lock:
            copy = self._copies.get(partition)
            found: list[CounterColumns] = []
            if copy is None:
                return CopyPage(found, None)
            size = 0
            for slot in range(first_slot, SLOTS):
                if size >= PAGE_COUNTERS_MIN:
                    return CopyPage(found, slot)
                columns = copy.table.columns(slot)
                size += sum(len(keys) for _, keys, _ in columns)
                found.extend(columns)
            return CopyPage(found, None, copy.resets.between(0, copy.resets.number))

    def tick(self) -> None:
        """Let windows end."""
        with self._lock:
            for copy in self._copies.values():
                for end_s in copy.table.end_windows(self._clock.monotonic_s()):
                    copy.resets.end_window(end_s)

    @property
    def counters(self) -> int:
        """The counters of all copies."""
        with self._lock:
            return sum(len(copy.table) for copy in self._copies.values())

    def _begun(self, origin: CopyOrigin, copy: HeldCopy | None) -> HeldCopy:
        """The copy to which all counters of an origin are about to be added. What is there already
        stays until it is said anew: the origin may end before it has told everything."""
        if copy is None:
            table, resets = SlotTable(self._terms), Resets(self._terms.unheard_max)
        elif copy.origin == origin:
            return copy
        else:
            table, resets = copy.table, copy.resets
        begun = HeldCopy(origin, table, resets, self._clock.monotonic_s())
        self._copies[origin.partition] = begun
        if len(self._copies) > COPIES_MAX:
            others = (each for each in self._copies.values() if each is not begun)
            oldest = min(others, key=lambda each: each.heard_s)
            del self._copies[oldest.origin.partition]
        return begun

    def _add(self, part: CopyPart, copy: HeldCopy) -> None:
        wall_s, now_s = self._clock.now_s(), self._clock.monotonic_s()
        copy.table.open_windows(part.counters, wall_s, now_s)
        for end_s, keys, counts in part.counters:
            for key, count in zip(keys, counts, strict=True):
                copy.table.put(slot_of(key), end_s, key, count)
        copy.heard_s, copy.sent_s = now_s, part.sent_s
        copy.expected = part.number + 1
        copy.resets.note_all(part.progress.resets)
        copy.last_change = max(copy.last_change, part.progress.change)
        if part.progress.handed_out is not None:
            copy.mark = part.progress.handed_out
        if part.is_whole:
            copy.whole_since_s = part.origin.begun_s
