"""The account that a front gives of all it has, to a partition that has started again."""

from collections.abc import Iterator

from tollgate.actors.ratelimit.lending.home_counters import HomeCounters
from tollgate.actors.ratelimit.lending.messages import ToldAll, ToldNotes, ToldSlot, ToldSlots
from tollgate.actors.ratelimit.lending.notes import Notes
from tollgate.actors.ratelimit.lending.terms import slot_of


def account_of(
    home: HomeCounters, notes: Notes, counters_max: int
) -> Iterator[ToldSlots | ToldNotes | ToldAll]:
    """The items that tell it, of at most so many counters each: slots first, the end last."""
    slots: list[ToldSlot] = []
    room = counters_max
    for slot in home.slots():
        epoch = home.epoch(slot)
        slots.append(ToldSlot(slot, epoch, []))
        for end_s, keys, counts in home.tell(slot):
            while keys:
                if not room:
                    yield ToldSlots(slots)
                    slots, room = [], counters_max
                slots.append(ToldSlot(slot, epoch, [(end_s, keys[:room], counts[:room])]))
                keys, counts, room = keys[room:], counts[room:], max(0, room - len(keys))
    if slots:
        yield ToldSlots(slots)
    told = [note for note in notes.told() if not home.epoch(slot_of(note.counter[1]))]
    for first in range(0, len(told), counters_max):
        yield ToldNotes(told[first : first + counters_max])
    yield ToldAll()
