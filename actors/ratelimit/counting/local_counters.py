"""The counter store in one process's own memory: the twin of the partition actors.

It serves a process that counts for itself alone, commands, benchmarks and tests: the same table and
the same routing, minus Ray.
"""

from collections.abc import Mapping, Sequence

from tollgate.actors.ratelimit.counting.counters import (
    COUNTERS_MAX,
    Conditional,
    CounterTable,
    Hits,
)
from tollgate.actors.ratelimit.decision.round import Unreachable


class LocalCounters:
    """Counter tables, one per partition. Not thread-safe."""

    def __init__(self, partitions: int = 1, counters_max: int = COUNTERS_MAX) -> None:
        self.tables = [CounterTable(counters_max) for _ in range(partitions)]

    @property
    def partitions(self) -> int:
        return len(self.tables)

    def hit(
        self, batches: Mapping[int, Sequence[Hits]], now_s: int
    ) -> dict[int, list[list[int]] | Unreachable]:
        return {
            partition: self.tables[partition].hit(batch, now_s)
            for partition, batch in batches.items()
        }

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> dict[int, list[list[int]] | Unreachable]:
        return {
            partition: self.tables[partition].hit_conditionally(batch, now_s)
            for partition, batch in batches.items()
        }
