"""Windows of counting: fixed, and aligned to the epoch (B6).

    start = floor(now / length) * length        end = start + length

Weeks start on Thursdays, months are 30 days and years 365, because the epoch says so; with calendar
months switched on, a month runs from the first of a month to the first of the next, UTC.
A window never holds the same instant twice and leaves no instant out. The time until it ends, which
callers are told (`durationUntilReset`), is computed in `decision/judge.py`.
"""

from calendar import timegm
from dataclasses import dataclass
from enum import IntEnum
from time import gmtime


class Unit(IntEnum):
    """The units of a limit, with their numbers on the wire (B15)."""

    SECOND = 1
    MINUTE = 2
    HOUR = 3
    DAY = 4
    MONTH = 5
    YEAR = 6
    WEEK = 7


LENGTH_S: dict[Unit, int] = {
    Unit.SECOND: 1,
    Unit.MINUTE: 60,
    Unit.HOUR: 3_600,
    Unit.DAY: 86_400,
    Unit.WEEK: 604_800,
    Unit.MONTH: 2_592_000,
    Unit.YEAR: 31_536_000,
}


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds [start_s, end_s) of the epoch."""

    start_s: int
    end_s: int


def window_at(unit: Unit, now_s: int, *, has_calendar_months: bool = False) -> Window:
    """The window of `unit` that holds the instant `now_s` (whole seconds of the epoch)."""
    if unit is Unit.MONTH and has_calendar_months:
        return _calendar_month(now_s)
    length_s = LENGTH_S[unit]
    start_s = now_s - now_s % length_s
    return Window(start_s, start_s + length_s)


def _calendar_month(now_s: int) -> Window:
    year, month = gmtime(now_s)[:2]
    next_year, next_month = (year + 1, 1) if month == 12 else (year, month + 1)
    return Window(timegm((year, month, 1, 0, 0, 0)), timegm((next_year, next_month, 1, 0, 0, 0)))
