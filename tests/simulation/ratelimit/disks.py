"""What partitions leave behind for whoever starts again in their place, and what it excuses."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf

from tests.simulation.ratelimit.auditor import CounterName, HitRecord
from tests.simulation.ratelimit.processes import FrontProcess, PartitionProcess
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.lending.partition.slot_table import side_by_side
from tollgate.actors.ratelimit.lending.terms import SLOTS


@dataclass(slots=True)
class Disk:
    """One partition's. `known_s`: until when it holds what each front has counted at home, and
    `saved_s` what was counted in the partition."""

    counters: dict[CounterName, int] = field(default_factory=dict)
    known_s: dict[str, float] = field(default_factory=dict)
    saved_s: float = -inf
    resets: list[CounterColumns] = field(default_factory=list)
    base_of: int = 0

    def restore(self, process: PartitionProcess) -> None:
        columns = side_by_side(self.counters)
        process.machine.restore(columns, process.wall_s, process.now_s)
        process.machine.restored.put_resets(self.resets)

    def save(self, process: PartitionProcess, known_s: dict[str, float], now_s: float) -> None:
        """Write down what has changed, or everything for the first time; `known_s` by front."""
        machine = process.machine
        if machine.told is not None:
            return
        if self.base_of != process.incarnation:
            self.base_of = process.incarnation
            self.counters.clear()
            for slot in range(SLOTS):
                self._write(machine.counters.columns(slot))
        while changed := machine.changed(3):
            self._write(changed)
        resets = machine.counters.resets
        self.resets = resets.between(0, resets.number)
        self.known_s, self.saved_s = known_s, now_s

    def _write(self, columns: list[tuple[int, list[bytes], list[int]]]) -> None:
        for end_s, keys, counts in columns:
            for key, count in zip(keys, counts, strict=True):
                self.counters[end_s, key] = count

    def knows(self, hit: HitRecord) -> bool:
        known_s = self.saved_s if hit.is_direct else self.known_s.get(hit.front, self.saved_s)
        return hit.told_s < known_s


def excused_of(
    fronts: Collection[FrontProcess], partition: int, told: Collection[str], disk: Disk
) -> Counter[CounterName]:
    """Hits that a partition which has started again cannot know of: those of fronts that did not
    tell. What the disk knows of them excuses nothing if no other front has counted there."""
    by_counter: dict[CounterName, list[HitRecord]] = defaultdict(list)
    shared: set[CounterName] = set()
    for front in fronts:
        for hit in front.admitted:
            if hit.partition != partition:
                continue
            if front.name in told:
                shared.add(hit.counter)
            else:
                by_counter[hit.counter].append(hit)
    return Counter(
        {
            counter: sum(
                max(0, hit.addend) for hit in hits if counter in shared or not disk.knows(hit)
            )
            for counter, hits in by_counter.items()
        }
    )
