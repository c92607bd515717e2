"""The first seconds of a partition that has started again: it asks, and counts nothing it may not.

Its memory is gone; what fronts hold is not. Each tells the slots that it has whole, its loans of
quota, and its own part of every shared counter. The parts of all fronts add up to the count, but
for a slot that was lent whole meanwhile: who had it last tells everybody's hits until then, and
older parts of the others are in there.

What was restored from an earlier incarnation's snapshot is in the table already, and only what is
told is put together with it. Of a slot that a front has whole, the front knows better. Of any
other counter the larger number is true: the snapshot lacks what came after it, and the fronts what
those had who are lost.

It ends when all fronts that are known to be there have told, or when every loan that nobody told of
has run out: after that nothing is out that the partition does not know of.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

from tollgate.actors.ratelimit.lending.messages import (
    CounterName,
    ToldAll,
    ToldNote,
    ToldNotes,
    ToldSlots,
)
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.terms import slot_of

Told = ToldSlots | ToldNotes | ToldAll


class Recovery:
    """What has been told so far. `expected`: the fronts there are, when somebody knows that.
    `until_s`: it ends then, whoever has not told."""

    def __init__(self, until_s: float, expected: Collection[str] | None) -> None:
        self.until_s = until_s
        self._expected = None if expected is None else set(expected)
        self._told: set[str] = set()
        self._notes: dict[int, list[ToldNote]] = defaultdict(list)
        self._whole: dict[int, tuple[int, str]] = {}

    def is_over(self, now_s: float) -> bool:
        return now_s >= self.until_s or (
            self._expected is not None and self._expected <= self._told
        )

    @property
    def told(self) -> frozenset[str]:
        """The fronts that have told everything."""
        return frozenset(self._told)

    def be_told(
        self, front: str, item: Told, counters: LentCounters, wall_s: float, now_s: float
    ) -> None:
        """Take a part of what a front tells."""
        match item:
            case ToldSlots():
                for slot, epoch, columns in item.slots:
                    counters.table.open_windows(columns, wall_s, now_s)
                    if self.tell_slot(front, slot, epoch):
                        counters.adopt_slot(front, slot, epoch, columns)
            case ToldNotes():
                self.tell_notes(item.notes)
                names = [note.counter for note in item.notes]
                counters.table.open_windows(names, wall_s, now_s)
                for note in item.notes:
                    counters.slots[slot_of(note.counter[1])].users[front] = now_s
                    if note.quota is not None:
                        counters.adopt_loan(front, note.counter, note.quota, note.limit, note.spent)
            case ToldAll():
                self.tell_all(front)

    def tell_all(self, front: str) -> None:
        self._told.add(front)

    def tell_slot(self, front: str, slot: int, epoch: int) -> bool:
        """A front has the slot whole. False: somebody got it after them."""
        known = self._whole.get(slot)
        if known is not None and known > (epoch, front):
            return False
        self._whole[slot] = (epoch, front)
        return True

    def tell_notes(self, notes: list[ToldNote]) -> None:
        for note in notes:
            self._notes[slot_of(note.counter[1])].append(note)

    def end(self, counters: LentCounters) -> None:
        """Put the counters together that nobody has told whole."""
        for number, epoch in self.epochs():
            slot = counters.slots[number]
            slot.epoch = max(slot.epoch, epoch)
        told: dict[CounterName, int] = defaultdict(int)
        for counter, part in self.parts():
            told[counter] += part
        for counter, count in told.items():
            counters.raise_to(counter, count)

    def epochs(self) -> Iterator[tuple[int, int]]:
        """(slot, the highest epoch that was told of it)."""
        for slot in self._notes.keys() | self._whole.keys():
            epochs = [note.epoch for note in self._notes.get(slot, ())]
            yield slot, max([self._whole.get(slot, (0, ""))[0], *epochs])

    def parts(self) -> Iterator[tuple[CounterName, int]]:
        """(counter, hits) to add up, of slots that nobody has whole."""
        for slot, notes in self._notes.items():
            if slot in self._whole:
                continue
            since = max([note.epoch for note in notes if note.is_whole], default=0)
            for note in notes:
                if note.epoch >= since:
                    yield note.counter, note.part
