"""Tells which actors hang: pure, fed what was heard of each seat, and the time.

A seat is filled by one process at a time: when it is ended, Ray puts a successor there.

    starting --answers--> attending --is silent for `looks_max` looks in a row--> hanging
    starting --has not answered for `start_within_s`--> hanging
    attending, hanging --answers--> attending
    attending, hanging --is away--> starting
    hanging --was ended--> starting

A looker begins with every seat as starting: whoever hung before it came is known after the longer
time. `look` changes nothing about a seat that it names: until `ended`, every look names it again,
or another one that hangs and was tried less often, for an end may fail. A looker that was late was
frozen itself, or had no processor, and so perhaps had everybody: the looks begin anew, and the time
that it missed counts for no start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Heard(Enum):
    """What was heard of a seat since the last look. AWAY: Ray says that no process is there, which
    is no hang: it is being replaced."""

    ANSWER = auto()
    NOTHING = auto()
    AWAY = auto()


@dataclass(frozen=True, slots=True)
class AttendanceBounds:
    """`look_every_s`: the time between looks, which is also the time in which a ping is to be
    answered. `late_by_s`: a look that comes later than that is a late one."""

    look_every_s: float = 10.0
    looks_max: int = 3
    start_within_s: float = 300.0
    late_by_s: float = 10.0


USUAL_BOUNDS = AttendanceBounds()


@dataclass(frozen=True, slots=True)
class Hang:
    """A seat whose process is to be ended, and why."""

    seat: str
    reason: str


@dataclass(slots=True)
class _Attendance:
    """`silent_looks`: in a row, of a seat that has answered. `tries`: of ending it."""

    starting_since_s: float
    is_starting: bool = True
    silent_looks: int = 0
    tries: int = 0


class AttendanceList:
    """The attendance of all seats, as one looker knows it. Times are monotonic, in seconds."""

    def __init__(self, bounds: AttendanceBounds) -> None:
        self._bounds = bounds
        self._looked_s: float | None = None
        self._seats: dict[str, _Attendance] = {}

    def look(self, now_s: float, heard: Mapping[str, Heard]) -> Hang | None:
        """One look at all the seats that there are; who is to be ended now. At most one: its
        successor's start must not be what makes the next one look silent."""
        missed_s = self._missed_s(now_s)
        self._looked_s = now_s
        # A seat that nobody asks about any more is none.
        self._seats = {
            name: self._seats.get(name, _Attendance(starting_since_s=now_s)) for name in heard
        }
        for name, what in heard.items():
            _note(self._seats[name], what, now_s)
        if missed_s:
            for seat in self._seats.values():
                seat.silent_looks = 0
                seat.starting_since_s = min(now_s, seat.starting_since_s + missed_s)
            return None
        hanging = [name for name in self._seats if self._reason(name, now_s)]
        if not hanging:
            return None
        name = min(hanging, key=lambda each: self._seats[each].tries)
        self._seats[name].tries += 1
        return Hang(name, self._reason(name, now_s))

    def ended(self, name: str, now_s: float) -> None:
        """The process of a seat was ended; its successor is about to start."""
        self._seats[name] = _Attendance(starting_since_s=now_s)

    def _missed_s(self, now_s: float) -> float:
        """The time in which there should have been a look; 0 when this one is not late."""
        if self._looked_s is None:
            return 0.0
        late_s = now_s - self._looked_s - self._bounds.look_every_s
        return late_s if late_s > self._bounds.late_by_s else 0.0

    def _reason(self, name: str, now_s: float) -> str:
        """The sign that a seat hangs; empty when it does not."""
        seat, bounds = self._seats[name], self._bounds
        if seat.is_starting:
            starting_s = now_s - seat.starting_since_s
            if starting_s < bounds.start_within_s:
                return ""
            return f"has not answered since it was started {starting_s:.0f} s ago"
        if seat.silent_looks < bounds.looks_max:
            return ""
        return f"has not answered for {seat.silent_looks * bounds.look_every_s:g} s"


def _note(seat: _Attendance, what: Heard, now_s: float) -> None:
    match what:
        case Heard.ANSWER:
            seat.is_starting, seat.silent_looks, seat.tries = False, 0, 0
        case Heard.AWAY if not seat.is_starting:
            seat.is_starting, seat.silent_looks, seat.tries = True, 0, 0
            seat.starting_since_s = now_s
        case Heard.NOTHING if not seat.is_starting:
            seat.silent_looks += 1
