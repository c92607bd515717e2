"""The first seconds of a partition that has started again: it asks, and counts nothing it may not.

Its counters are gone; what fronts hold is not. Each tells the slots that it has whole, its loans of
quota, and its own part of every shared counter. The parts of all fronts add up to the count, but
for a slot that was lent whole meanwhile: who had it last tells everybody's hits until then, and
older parts of the others are in there.

It ends when all fronts that are known to be there have told, or when every loan that nobody told of
has run out: after that nothing is out that the partition does not know of.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

from tollgate.actors.ratelimit.lending.messages import CounterName, ToldNote
from tollgate.actors.ratelimit.lending.terms import slot_of


class Recovery:
    """What has been told so far. `expected`: the fronts there are, when somebody knows that."""

    def __init__(self, until_s: float, expected: Collection[str] | None) -> None:
        self._until_s = until_s
        self._expected = None if expected is None else set(expected)
        self._told: set[str] = set()
        self._notes: dict[int, list[ToldNote]] = defaultdict(list)
        self._whole: dict[int, tuple[int, str]] = {}

    def is_over(self, now_s: float) -> bool:
        return now_s >= self._until_s or (
            self._expected is not None and self._expected <= self._told
        )

    @property
    def told(self) -> frozenset[str]:
        """The fronts that have told everything."""
        return frozenset(self._told)

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

    def epochs(self) -> Iterator[tuple[int, int]]:
        """(slot, the highest epoch that was told of it)."""
        for slot in self._notes.keys() | self._whole.keys():
            epochs = [note.epoch for note in self._notes.get(slot, ())]
            yield slot, max([self._whole.get(slot, (0, ""))[0], *epochs])

    def parts(self) -> Iterator[tuple[int, CounterName, int]]:
        """(slot, counter, hits) to add up, of slots that nobody has whole."""
        for slot, notes in self._notes.items():
            if slot in self._whole:
                continue
            since = max([note.epoch for note in notes if note.is_whole], default=0)
            for note in notes:
                if note.epoch >= since:
                    yield slot, note.counter, note.part
