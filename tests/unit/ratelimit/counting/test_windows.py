"""The edges of windows."""

from calendar import timegm
from itertools import pairwise

import pytest

from tollgate.actors.ratelimit.counting.windows import LENGTH_S, Unit, Window, window_at


def utc(year: int, month: int = 1, day: int = 1, *time: int) -> int:
    hours, minutes, seconds = (*time, 0, 0, 0)[:3]
    return timegm((year, month, day, hours, minutes, seconds))


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("number", [0, 1, 7, 1_000])
def test_a_window_holds_its_first_and_last_second_and_no_other(unit: Unit, number: int) -> None:
    length_s = LENGTH_S[unit]
    window = Window(number * length_s, (number + 1) * length_s)
    assert window_at(unit, window.start_s) == window
    assert window_at(unit, window.end_s - 1) == window
    assert window_at(unit, window.end_s) == Window(window.end_s, window.end_s + length_s)


@pytest.mark.parametrize(
    ("unit", "start_s", "reset_s"),
    [
        pytest.param(Unit.HOUR, 997_200, 800, id="D19, hour"),
        pytest.param(Unit.DAY, 950_400, 36_800, id="D19, day"),
        pytest.param(Unit.WEEK, 604_800, 209_600, id="D24, week"),
        pytest.param(Unit.MONTH, 0, 1_592_000, id="D24, month"),
        pytest.param(Unit.YEAR, 0, 30_536_000, id="D24, year"),
    ],
)
def test_at_a_million_seconds(unit: Unit, start_s: int, reset_s: int) -> None:
    window = window_at(unit, 1_000_000)
    assert (window.start_s, window.end_s - 1_000_000) == (start_s, reset_s)


def test_weeks_start_on_thursdays() -> None:
    thursday = utc(2026, 1, 1)  # was one
    assert window_at(Unit.WEEK, thursday).start_s == thursday
    assert window_at(Unit.WEEK, thursday - 1).end_s == thursday
    assert window_at(Unit.WEEK, utc(2026, 1, 7, 23, 59, 59)).start_s == thursday


def test_a_year_has_365_days_whatever_the_calendar_says() -> None:
    assert window_at(Unit.YEAR, utc(2024), has_calendar_months=True).start_s != utc(2024)


@pytest.mark.parametrize(
    ("year", "month", "days"),
    [
        pytest.param(2024, 2, 29, id="leap year"),
        pytest.param(2023, 2, 28, id="common year"),
        pytest.param(2000, 2, 29, id="leap century"),
        pytest.param(2100, 2, 28, id="common century"),
        pytest.param(2026, 4, 30, id="april"),
        pytest.param(1970, 1, 31, id="the first"),
    ],
)
def test_a_calendar_month_holds_its_days(year: int, month: int, days: int) -> None:
    window = Window(utc(year, month), utc(year, month) + days * 86_400)
    for now_s in (window.start_s, utc(year, month, 15, 12), window.end_s - 1):
        assert window_at(Unit.MONTH, now_s, has_calendar_months=True) == window
    following = window_at(Unit.MONTH, window.end_s, has_calendar_months=True)
    assert following.start_s == window.end_s


def test_calendar_months_follow_each_other_over_a_year() -> None:
    starts = [utc(2023 + month // 12, month % 12 + 1) for month in range(25)]
    windows = [window_at(Unit.MONTH, start_s, has_calendar_months=True) for start_s in starts]
    assert [window.start_s for window in windows] == starts
    assert all(one.end_s == next_one.start_s for one, next_one in pairwise(windows))


@pytest.mark.parametrize("unit", [unit for unit in Unit if unit is not Unit.MONTH])
def test_the_calendar_concerns_months_only(unit: Unit) -> None:
    now_s = utc(2026, 3, 31, 23, 59, 59)
    assert window_at(unit, now_s, has_calendar_months=True) == window_at(unit, now_s)
