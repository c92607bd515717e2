"""A partition that is asked for every hit keeps the journal that a lending one keeps, and reads
that one."""

import pickle
from pathlib import Path

import pytest

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


class Direct:
    """One process of a direct partition, and the keeper of its journal."""

    def __init__(self, folder: Path, clock: ManualClock, counters_max: int = 100) -> None:
        self._clock = clock
        self.partition = DirectPartition(
            counters_max, clock, refuses_when_full=False, keeps_changes=True
        )
        self.keeper = SnapshotKeeper(JournalFolder(folder), NAME, 1.0, clock)
        self.partition.restore(self.keeper.restored())

    def hit(self, key: bytes, by: int = 1, end_s: int = MONTH_END_S) -> int:
        call = pickle.dumps(([(end_s, [key], [by])], int(self._clock.now_s())))
        ((count,),) = pickle.loads(self.partition.hit(call))
        return int(count)

    def write(self) -> None:
        self.keeper.write(self.partition)

    def finish(self) -> bool:
        return self.keeper.finish(self.partition)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


def on_disk(folder: Path, clock: ManualClock) -> Counts:
    """The counts that a process would find that starts now."""
    return counts_of(SnapshotKeeper(JournalFolder(folder), NAME, 1.0, clock).restored())


def test_a_killed_process_is_followed_by_one_that_goes_on(
    tmp_path: Path, clock: ManualClock
) -> None:
    first = Direct(tmp_path, clock)
    first.write()
    assert [first.hit(b"a") for _ in range(3)] == [1, 2, 3]
    first.write()
    assert first.hit(b"a") == 4  # (not written any more)
    second = Direct(tmp_path, clock)
    assert second.partition.describe()["counters"] == 1
    assert [second.hit(key) for key in (b"a", b"b")] == [4, 1]


def test_a_stop_in_order_writes_everything(tmp_path: Path, clock: ManualClock) -> None:
    first = Direct(tmp_path, clock)
    for number in range(50):
        first.hit(b"key %d" % number, number + 1)
    assert first.finish()
    second = Direct(tmp_path, clock)
    assert [second.hit(b"key %d" % number, 0) for number in range(50)] == list(range(1, 51))


def test_hits_that_are_given_back_and_resets_are_written(
    tmp_path: Path, clock: ManualClock
) -> None:
    first = Direct(tmp_path, clock)
    first.write()
    assert [first.hit(b"a", 5), first.hit(b"b", 5)] == [5, 5]
    first.write()
    assert first.hit(b"a", -2) == 3
    first.partition.reset_counters([b"b"])
    first.write()
    assert on_disk(tmp_path, clock) == {(MONTH_END_S, b"a"): 3, (MONTH_END_S, b"b"): 0}


def test_a_request_that_is_counted_as_a_whole_is_written(
    tmp_path: Path, clock: ManualClock
) -> None:
    first = Direct(tmp_path, clock)
    first.write()
    request = ([MONTH_END_S], [b"a"], [2], [10])
    first.partition.hit_conditionally(pickle.dumps(([request], NOW_S)))
    first.write()
    assert on_disk(tmp_path, clock) == {(MONTH_END_S, b"a"): 2}


def test_what_was_given_up_does_not_come_back_with_the_next_base(
    tmp_path: Path, clock: ManualClock
) -> None:
    first = Direct(tmp_path, clock, counters_max=2)
    for key in (b"a", b"b", b"c"):
        first.hit(key)
    first.write()
    assert on_disk(tmp_path, clock) == {(MONTH_END_S, b"b"): 1, (MONTH_END_S, b"c"): 1}


class Lent:
    """One process of a lending partition, the keeper of its journal, and a front."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self._clock = clock
        terms = Terms()
        self.partition = LendingPartition(terms, 1, clock, is_new=True, keeps_changes=True)
        self.keeper = SnapshotKeeper(JournalFolder(folder), NAME, 1.0, clock)
        self.partition.restore(self.keeper.restored())
        self._channel = LoopbackChannel(self.partition)
        self._front = BorrowedCounters([self._channel], terms, "front", 0.5, clock)
        self._exchange()

    def hit(self, key: bytes) -> object:
        hits = [LimitedHits(MONTH_END_S, [key], [1], [1_000])]
        ((count,),) = self._front.hit({0: hits}, NOW_S)[0]  # type: ignore[misc]
        return count

    def finish(self) -> bool:
        for _ in range(4):
            self._clock.advance(0.25)
            self._exchange()
        return self.keeper.finish(self.partition)

    def _exchange(self) -> None:
        self.partition.tick()
        for _ in range(2):
            self._front.keep_up()
            self._channel.deliver()


def test_whoever_changes_the_way_of_counting_loses_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    lent = Lent(tmp_path, clock)
    assert [lent.hit(key) for key in (b"a", b"a", b"b")] == [1, 2, 1]
    assert lent.finish()
    direct = Direct(tmp_path, clock)
    assert [direct.hit(key) for key in (b"a", b"b", b"c")] == [3, 2, 1]
    assert direct.finish()
    again = Lent(tmp_path, clock)
    assert [again.hit(key) for key in (b"a", b"b", b"c")] == [4, 3, 2]


# Windows


def test_a_front_that_is_ahead_ends_nobody_elses_window(tmp_path: Path, clock: ManualClock) -> None:
    direct = Direct(tmp_path, clock)
    day_end_s = NOW_S + 40_000
    assert direct.hit(b"a", 3, day_end_s) == 3
    clock.turn(86_400)  # (the clock of the caller; but the partition's own is right)
    ahead_s = int(clock.now_s())
    clock.turn(-86_400)
    call = pickle.dumps(([(day_end_s + 86_400, [b"a"], [1])], ahead_s))
    assert pickle.loads(direct.partition.hit(call)) == [[1]]
    clock.advance(10)
    assert direct.hit(b"a", 1, day_end_s) == 4


def test_a_window_that_has_ended_is_forgotten(tmp_path: Path, clock: ManualClock) -> None:
    direct = Direct(tmp_path, clock)
    direct.hit(b"a", 3, NOW_S + 60)
    clock.advance(70)
    direct.hit(b"b", 1, NOW_S + 120)
    assert direct.partition.describe()["counters"] == 1
    assert direct.partition.find_counters([b"a"]) == []
