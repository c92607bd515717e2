"""Partitions that start with a clock that is wrong, and what is left of their counters."""

from pathlib import Path

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.kept_partitions import NOW_S, Direct, Lent, on_disk

DAY_S = 86_400
MINUTE_END_S = NOW_S + 50
MONTH_END_S = 2_000_000
COUNTED = {(MINUTE_END_S, b"minute"): 3, (MONTH_END_S, b"month"): 4}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


def count(kept: Direct | Lent, by: int = 1) -> list[object]:
    return [kept.hit(b"minute", by, MINUTE_END_S), kept.hit(b"month", by, MONTH_END_S)]


@pytest.fixture
def counted(tmp_path: Path, clock: ManualClock) -> Path:
    """The folder of a journal with two counters."""
    first = Direct(tmp_path, clock)
    first.hit(b"minute", 3, MINUTE_END_S)
    first.hit(b"month", 4, MONTH_END_S)
    assert first.finish()
    return tmp_path


@pytest.mark.parametrize("kind", [Direct, Lent])
@pytest.mark.parametrize("ahead_s", [DAY_S, 400 * DAY_S])
def test_a_start_with_a_clock_that_is_ahead_and_put_right_costs_nothing(
    counted: Path, clock: ManualClock, kind: type[Direct | Lent], ahead_s: float
) -> None:
    clock.turn(ahead_s)
    kept = kind(counted, clock)
    kept.write()
    kept.rest(10)
    kept.write()
    clock.turn(-ahead_s)
    kept.rest(1)
    assert count(kept) == [4, 5]


@pytest.mark.parametrize("kind", [Direct, Lent])
def test_nor_does_one_that_ends_before_the_clock_is_put_right(
    counted: Path, clock: ManualClock, kind: type[Direct | Lent]
) -> None:
    clock.turn(400 * DAY_S)
    for _ in range(2):
        kept = kind(counted, clock)
        kept.write()
        kept.rest(1)
        kept.write()
    assert kept.finish()
    assert on_disk(counted, clock) == COUNTED
    clock.turn(-400 * DAY_S)
    assert count(kind(counted, clock)) == [4, 5]


@pytest.mark.parametrize("kind", [Direct, Lent])
def test_a_clock_that_nobody_puts_right_for_an_hour_is_believed(
    counted: Path, clock: ManualClock, kind: type[Direct | Lent]
) -> None:
    clock.turn(400 * DAY_S)
    kept = kind(counted, clock)
    kept.write()
    kept.rest(3_600)
    kept.hit(b"another", 1, int(clock.now_s()) + 100)
    assert kept.finish()
    assert {key for _, key in on_disk(counted, clock)} == {b"another"}
