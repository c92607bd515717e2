"""A partition that is asked for every hit keeps the journal that a lending one keeps, and reads
that one."""

import pickle
from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.kept_partitions import MONTH_END_S, NOW_S, Direct, Lent, on_disk


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


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
