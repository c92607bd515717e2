"""Processes of a partition with the keepers of their journals, for both ways of counting."""

import pickle
from pathlib import Path

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import LoopbackChannel
from tests.support.ratelimit.journals import Counts, counts_of
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.counting.partition import DirectPartition
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper

NOW_S = 1_000_000
MONTH_END_S = 2_000_000
NAME = JournalName(0, 1)


def keeper_of(folder: Path, clock: ManualClock) -> SnapshotKeeper:
    return SnapshotKeeper(JournalFolder(folder), NAME, 1.0, clock)


def on_disk(folder: Path, clock: ManualClock) -> Counts:
    """The counts that a process would find that starts now."""
    return counts_of(keeper_of(folder, clock).restored())


class Direct:
    """A partition that is asked for every hit."""

    def __init__(self, folder: Path, clock: ManualClock, counters_max: int = 100) -> None:
        self._clock = clock
        self.partition = DirectPartition(
            counters_max, clock, refuses_when_full=False, keeps_changes=True
        )
        self.keeper = keeper_of(folder, clock)
        self.partition.restore(self.keeper.restored())

    def hit(self, key: bytes, by: int = 1, end_s: int = MONTH_END_S) -> int:
        call = pickle.dumps(([(end_s, [key], [by])], int(self._clock.now_s())))
        ((count,),) = pickle.loads(self.partition.hit(call))
        return int(count)

    def rest(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def write(self) -> None:
        self.keeper.write(self.partition)

    def finish(self) -> bool:
        return self.keeper.finish(self.partition)


class Lent:
    """A partition that lends, and its only front."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self._clock = clock
        terms = Terms()
        self.partition = LendingPartition(terms, 1, clock, is_new=True, keeps_changes=True)
        self.keeper = keeper_of(folder, clock)
        self.partition.restore(self.keeper.restored())
        self._channel = LoopbackChannel(self.partition)
        self._front = BorrowedCounters([self._channel], terms, "front", 0.5, clock)
        self._exchange()

    def hit(self, key: bytes, by: int = 1, end_s: int = MONTH_END_S) -> object:
        hits = [LimitedHits(end_s, [key], [by], [1_000])]
        ((count,),) = self._front.hit({0: hits}, int(self._clock.now_s()))[0]  # type: ignore[misc]
        return count

    def rest(self, seconds: float) -> None:
        for _ in range(4):
            self._clock.advance(seconds / 4)
            self._exchange()

    def write(self) -> None:
        self.keeper.write(self.partition)

    def finish(self) -> bool:
        self.rest(1)
        return self.keeper.finish(self.partition)

    def _exchange(self) -> None:
        self.partition.tick()
        for _ in range(2):
            self._front.keep_up()
            self._channel.deliver()
