"""The first seconds of a partition that has started again: it asks, and counts nothing it may not.

Its memory is gone; what fronts hold is not. Each tells the slots that it has whole, its loans of
quota, and its own part of every shared counter. The parts of all fronts add up to the count, but
for a slot that was lent whole meanwhile: who had it last tells everybody's hits until then, and
older parts of the others are in there.

What was restored from an earlier incarnation's snapshot is in the table already, and only what is
told is put together with it. Of a slot that a front has whole, the front knows better. Of any
other counter the larger number is true: the snapshot lacks what came after it, and the fronts what
those had who are lost. But nothing counts that was before a reset: who has heard of it tells that,
and so does what was restored.

It ends when all fronts that are known to be there have told, or when every loan that nobody told of
has run out: after that nothing is out that the partition does not know of. Only a front that is in
the middle of telling is waited for longer, up to `recovery_max_s`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

from tollgate.actors.ratelimit.lending.messages import (
    CounterName,
    ToldAll,
    ToldNote,
    ToldNotes,
    ToldSlot,
    ToldSlots,
)
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.loans import Loan
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of

Told = ToldSlots | ToldNotes | ToldAll

PARTS_PER_COUNTER = 4


class Recovery:
    """What has been told so far. `expected`: the fronts that may hold something, if that is known.

    Of at most `PARTS_PER_COUNTER` parts for each counter that there may be: what is beyond is given
    up, and counts as evicted."""

    def __init__(self, terms: Terms, now_s: float, expected: Collection[str] | None) -> None:
        self._terms = terms
        self.begin(now_s)
        self.expected = None if expected is None else frozenset(expected)
        self._told: set[str] = set()
        self._telling_s: dict[str, float] = {}
        # By slot: hits by counter and epoch; the highest epoch; and the last one that somebody had
        # the slot whole in, before which nothing counts.
        self._parts: dict[int, dict[tuple[CounterName, int], int]] = defaultdict(dict)
        self._epochs: dict[int, int] = {}
        self._since: dict[int, int] = {}
        self._anew: dict[CounterName, int] = {}
        """By counter: the epoch in which it was last set to 0."""
        self._size = self._given_up = 0
        self.ended: Counter[CounterName] = Counter()
        """Hits of loans that were told and have ended: they are here, and in no part."""
        self._whole: dict[int, tuple[int, str]] = {}

    def begin(self, now_s: float) -> None:
        """The time of fronts to tell begins now."""
        self._until_s = now_s + self._terms.term_s + self._terms.margin_s
        self._last_s = now_s + self._terms.recovery_max_s

    def __len__(self) -> int:
        """The parts of counters that are kept."""
        return self._size

    def is_over(self, now_s: float) -> bool:
        if self.expected is not None and self.expected <= self._told:
            return True
        if now_s < self._until_s or now_s >= self._last_s:
            return now_s >= self._until_s
        patience_s = 2 * self._terms.resend_s
        # Whoever is telling still decides nothing; but what they have is not to be given away.
        return all(now_s - at_s > patience_s for at_s in self._telling_s.values())

    @property
    def told(self) -> frozenset[str]:
        """The fronts that have told everything."""
        return frozenset(self._told)

    def be_told(
        self, front: str, item: Told, counters: LentCounters, wall_s: float, now_s: float
    ) -> None:
        """Take a part of what a front tells."""
        self._telling_s[front] = now_s
        match item:
            case ToldSlots():
                for slot, epoch, columns in item.slots:
                    counters.table.open_windows(columns, wall_s, now_s)
                    if self.tell_slot(front, slot, epoch):
                        _adopt_slot(counters, front, ToldSlot(slot, epoch, columns))
            case ToldNotes():
                self.tell_notes(item.notes)
                names = [note.counter for note in item.notes]
                counters.table.open_windows(names, wall_s, now_s)
                for note in item.notes:
                    counters.slots[slot_of(note.counter[1])].users[front] = now_s
                    if note.quota is not None:
                        adopt_loan(counters, front, note, note.quota)
            case ToldAll():
                self.tell_all(front)

    def tell_all(self, front: str) -> None:
        self._told.add(front)
        self._telling_s.pop(front, None)

    def tell_slot(self, front: str, slot: int, epoch: int) -> bool:
        """A front has the slot whole. False: somebody got it after them."""
        known = self._whole.get(slot)
        if known is not None and known > (epoch, front):
            return False
        self._whole[slot] = (epoch, front)
        return True

    def tell_notes(self, notes: list[ToldNote]) -> None:
        for note in notes:
            slot = slot_of(note.counter[1])
            self._epochs[slot] = max(note.epoch, self._epochs.get(slot, 0))
            if note.is_whole:
                self._since[slot] = max(note.epoch, self._since.get(slot, 0))
            if note.is_anew:
                self._anew[note.counter] = max(note.epoch, self._anew.get(note.counter, 0))
            parts = self._parts[slot]
            name = (note.counter, note.epoch)
            if name not in parts:
                if self._size >= PARTS_PER_COUNTER * self._terms.counters_max:
                    self._given_up += 1
                    continue
                self._size += 1
            parts[name] = parts.get(name, 0) + note.part

    def end(self, counters: LentCounters) -> None:
        """Put the counters together that nobody has told whole."""
        for number, epoch in self.epochs():
            slot = counters.slots[number]
            slot.epoch = max(slot.epoch, epoch)
        counters.table.evicted += self._given_up
        self._begin_anew(counters)
        told: dict[CounterName, int] = defaultdict(int)
        for counter, part in self.parts():
            told[counter] += part
        for counter, count in told.items():
            counters.raise_to(counter, count + self.ended[counter])

    def _begin_anew(self, counters: LentCounters) -> None:
        """Put together what is known of resets. What was restored of a counter was before one that
        only fronts have heard of."""
        for counter, epoch in self._anew.items():
            if slot_of(counter[1]) in self._whole:
                counters.resets.note(counter, epoch)  # (it was given out after that)
            elif epoch > counters.resets.epoch(counter):
                counters.begin_anew(counter, epoch)
        names = {counter for parts in self._parts.values() for counter, _ in parts}
        known = {counter: counters.resets.epoch(counter) for counter in names}
        self._anew = {counter: epoch for counter, epoch in known.items() if epoch}

    def epochs(self) -> Iterator[tuple[int, int]]:
        """(slot, the highest epoch that was told of it)."""
        for slot in self._epochs.keys() | self._whole.keys():
            yield slot, max(self._whole.get(slot, (0, ""))[0], self._epochs.get(slot, 0))

    def parts(self) -> Iterator[tuple[CounterName, int]]:
        """(counter, hits) to add up, of slots that nobody has whole."""
        for slot, parts in self._parts.items():
            if slot in self._whole:
                continue
            since = self._since.get(slot, 0)
            for (counter, epoch), part in parts.items():
                if epoch >= max(since, self._anew.get(counter, 0)):
                    yield counter, part


def _adopt_slot(counters: LentCounters, front: str, told: ToldSlot) -> None:
    """Believe a front that it has a slot whole."""
    slot = counters.slots[told.slot]
    if slot.holder is not None and slot.holder != front:
        counters.held[slot.holder].slots.discard(told.slot)
    slot.holder, slot.epoch = front, told.epoch
    counters.held[front].slots.add(told.slot)
    counters.report(front, told.counters, [])


def adopt_loan(counters: LentCounters, front: str, told: ToldNote, quota: int) -> None:
    """Believe a front that it has a loan of quota. What was restored of the counter holds what was
    spent of it."""
    number = slot_of(told.counter[1])
    slot = counters.slots[number]
    loans = slot.loans.setdefault(told.counter, {})
    if slot.holder is None and counters.table.has(number, *told.counter):
        known = loans[front].spent if front in loans else 0
        counters.table.add(number, *told.counter, known - told.spent)
    loans[front] = Loan(quota, told.limit, told.spent)
    counters.held[front].loans[told.counter] = slot
