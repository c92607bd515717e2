"""Fronts that partitions take for lost, and the hits that this excuses.

    heard last .. taken for lost .. heard again, with what was not heard: it is counted from then on

What a front has counted at home since its last report is known to nobody else. Should it never
come back to that partition, those hits are excused: a process was lost. If it does, nothing is
excused but what others did in between: in the time in which the partition could not know of those
hits they may have been given as many.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from tests.simulation.ratelimit.auditor import CounterName, Fate, HitRecord
from tests.simulation.ratelimit.processes import FrontProcess, PartitionProcess
from tollgate.actors.ratelimit.lending.terms import slot_of


@dataclass(slots=True)
class Silence:
    """`unheard`: hits by counter. `lent`: the counters of which somebody else had something when
    the front was heard again."""

    front: str
    partition: PartitionProcess
    lost_s: float
    unheard: Counter[CounterName]
    heard_s: float = inf
    lent: set[CounterName] = field(default_factory=set)

    def excused(self, counter: CounterName, others: int) -> int:
        """The hits that it excuses, when others were admitted so many meanwhile."""
        if self.heard_s == inf or counter in self.lent:
            return self.unheard[counter]
        return min(self.unheard[counter], others)


class Silences:
    """Those of a run. `fronts`: all that there ever were."""

    def __init__(self, fronts: Sequence[FrontProcess]) -> None:
        self._fronts = fronts
        self._silences: list[Silence] = []

    def begin(
        self, front: str, partition: PartitionProcess, reported_s: float, now_s: float
    ) -> None:
        """A front is taken for lost; what it has counted until then is known."""
        unheard: Counter[CounterName] = Counter()
        for process in self._fronts:
            for hit in process.admitted if process.name == front else ():
                # (Who has been frozen does much at the same moment.)
                is_unknown = hit.told_s >= reported_s and not hit.is_direct
                if hit.partition == partition.number and is_unknown and hit.addend > 0:
                    unheard[hit.counter] += hit.addend
        self._silences.append(Silence(front, partition, now_s, unheard))

    def end(self, front: str, partition: PartitionProcess, now_s: float) -> None:
        """The partition has taken all that a front had to say of the time before."""
        slots = partition.machine.counters.slots
        for silence in self._silences:
            if (silence.front, silence.partition, silence.heard_s) == (front, partition, inf):
                silence.heard_s = now_s
                for counter in silence.unheard:
                    slot = slots[slot_of(counter[1])]
                    others = {slot.holder, *slot.loans.get(counter, ())} - {None, front}
                    if others:
                        silence.lent.add(counter)

    def excused(self, hits: Sequence[HitRecord]) -> Counter[CounterName]:
        """The hits that are excused, all in all. A front that was taken for lost counts nothing at
        home until it was heard again."""
        excused: Counter[CounterName] = Counter()
        for silence in self._silences:
            for hit in hits:
                is_theirs = hit.front == silence.front and not hit.is_direct and hit.addend > 0
                if is_theirs and hit.partition == silence.partition.number:
                    is_quiet = not silence.lost_s < hit.told_s < silence.heard_s
                    assert is_quiet or silence.heard_s == inf or hit.fate is not Fate.ADMITTED, (
                        f"{hit} was admitted by a front that was taken for lost"
                    )
            for counter in silence.unheard:
                others = sum(
                    hit.addend
                    for hit in hits
                    if hit.counter == counter
                    if hit.fate is Fate.ADMITTED and hit.addend > 0 and hit.front != silence.front
                    if hit.told_s >= silence.lost_s and hit.asked_s <= silence.heard_s
                )
                excused[counter] += silence.excused(counter, others)
        return excused
