"""Tells which actors hang: pure, fed what was heard of each seat, and the time.

A seat is filled by one process at a time: when it is ended, Ray puts a successor there.

    attending --is silent for `looks_max` looks in a row--> hanging
    away --is away for `start_within_s`--> hanging
    any --answers--> attending
    attending, hanging --is away--> away
    away --is there, and silent--> attending

Who is there but never answered hangs like everybody else: a start is over when Ray says that the
process is there, so a looker that is new finds out who hung before it came. `look` changes nothing
about a seat that it names: every look names it again, or others that hang and were tried less
often, for an end may fail. All whom a look names were silent for long enough before any of them was
ended; there are `ends_max` of them, for many starts at once would keep the healthy ones from
answering. One that was ended is not heard of until it is asked anew, and so begins
anew. A looker that was late was frozen itself, or had no processor, and so perhaps had everybody:
the looks begin anew, and the time that it missed counts for no start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Heard(Enum):
    """What was heard of a seat since it was asked. AWAY: Ray says that no process is there, or that
    it is still being made, which is no hang: it is being replaced."""

    ANSWER = auto()
    NOTHING = auto()
    AWAY = auto()


@dataclass(frozen=True, slots=True)
class AttendanceBounds:
    """`look_every_s`: the time between looks, which is also the time in which a ping is to be
    answered. `late_by_s`: a look that comes later than that is a late one. `ends_max`: how many
    processes are ended after one look."""

    look_every_s: float = 10.0
    looks_max: int = 3
    start_within_s: float = 300.0
    late_by_s: float = 10.0
    ends_max: int = 4


USUAL_BOUNDS = AttendanceBounds()


@dataclass(frozen=True, slots=True)
class Hang:
    """A seat whose process is to be ended, and why."""

    seat: str
    reason: str


@dataclass(slots=True)
class _Attendance:
    """`away_since_s`: None while a process is there. `silent_looks`: of it, in a row. `tries`: of
    ending it."""

    away_since_s: float | None = None
    silent_looks: int = 0
    tries: int = 0


class AttendanceList:
    """The attendance of all seats, as one looker knows it. Times are monotonic, in seconds."""

    def __init__(self, bounds: AttendanceBounds) -> None:
        self._bounds = bounds
        self._looked_s: float | None = None
        self._seats: dict[str, _Attendance] = {}

    def look(self, now_s: float, heard: Mapping[str, Heard]) -> list[Hang]:
        """One look at all the seats that were asked; who is to be ended now."""
        missed_s = self._missed_s(now_s)
        self._looked_s = now_s
        # A seat that was not asked is none.
        self._seats = {name: self._seats.get(name, _Attendance()) for name in heard}
        for name, what in heard.items():
            _note(self._seats[name], what, now_s)
        if missed_s:
            for seat in self._seats.values():
                seat.silent_looks = 0
                if seat.away_since_s is not None:
                    seat.away_since_s = min(now_s, seat.away_since_s + missed_s)
            return []
        hanging = [name for name in self._seats if self._reason(name, now_s)]
        hanging.sort(key=lambda each: self._seats[each].tries)
        named = hanging[: self._bounds.ends_max]
        for name in named:
            self._seats[name].tries += 1
        return [Hang(name, self._reason(name, now_s)) for name in named]

    def _missed_s(self, now_s: float) -> float:
        """The time in which there should have been a look; 0 when this one is not late."""
        if self._looked_s is None:
            return 0.0
        late_s = now_s - self._looked_s - self._bounds.look_every_s
        return late_s if late_s > self._bounds.late_by_s else 0.0

    def _reason(self, name: str, now_s: float) -> str:
        """The sign that a seat hangs; empty when it does not."""
        seat, bounds = self._seats[name], self._bounds
        if seat.away_since_s is not None:
            away_s = now_s - seat.away_since_s
            if away_s < bounds.start_within_s:
                return ""
            return f"has not started for {away_s:.0f} s"
        if seat.silent_looks < bounds.looks_max:
            return ""
        return f"has not answered for {seat.silent_looks * bounds.look_every_s:g} s"


def _note(seat: _Attendance, what: Heard, now_s: float) -> None:
    match what:
        case Heard.ANSWER:
            seat.away_since_s, seat.silent_looks, seat.tries = None, 0, 0
        case Heard.AWAY if seat.away_since_s is None:
            seat.away_since_s, seat.silent_looks, seat.tries = now_s, 0, 0
        case Heard.NOTHING:
            seat.away_since_s = None
            seat.silent_looks += 1
