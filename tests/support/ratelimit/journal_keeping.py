"""Processes of a partition that keep a journal on disk, one after the other.

A process that ends without a word is one that is dropped; one that stops in order `finish`es.
"""

from collections.abc import Callable
from pathlib import Path

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.journals import Counts, DictSource, columns, counts_of
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper

NOW_S = 1_000_000.0
MONTH_END_S = 2_000_000


class Partition:
    """One process of a partition: its counters, and the keeper of their journal."""

    def __init__(self, folder: Path, name: JournalName, clock: ManualClock) -> None:
        self.source = DictSource()
        self.keeper = SnapshotKeeper(JournalFolder(folder), name, 1.0, clock)
        self.restored = counts_of(self.keeper.restored())
        self.source.restore(columns(self.restored))

    def count(self, count: int, key: bytes = b"a", end_s: int = MONTH_END_S) -> None:
        self.source.set(end_s, key, count)

    def write(self) -> None:
        self.keeper.write(self.source)

    def finish(self) -> None:
        self.keeper.finish(self.source)


Start = Callable[..., Partition]
"""A process of partition `partition` of `partitions`, the only one unless said otherwise."""


def starter(folder: Path, clock: ManualClock) -> Start:
    return lambda partition=0, partitions=1: Partition(
        folder, JournalName(partition, partitions), clock
    )


def journals(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def of_month(counts: dict[bytes, int]) -> Counts:
    return {(MONTH_END_S, key): count for key, count in counts.items()}


def with_counts(start: Start, *counts: int) -> None:
    """A journal with one delta for each count, none of them after the last."""
    first = start()
    first.write()
    for count in counts:
        first.count(count)
        first.write()
