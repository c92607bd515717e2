"""The rounds of an attendant: pings, ends, and whatever may fail in them."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Event
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tollgate.actors.operations.attendance import USUAL_BOUNDS, AttendanceBounds
from tollgate.actors.operations.attendant import ENDED, Attendant


class Gone(Exception):  # noqa: N818 - as Ray calls it
    """There is no process."""


class FakeSeat:
    """A seat that answers at once, until it `hangs`."""

    def __init__(self) -> None:
        self.hangs = False
        self.is_starting = False
        self.unanswered: list[Future[Any]] = []
        self.failing_with: Exception | None = None
        self.unsendable: Exception | None = None
        self.unknown: Exception | None = None
        self.unending: Exception | None = None
        self.pings = 0
        self.ends = 0

    def ping(self) -> Future[Any]:
        if self.unsendable:
            raise self.unsendable
        self.pings += 1
        answer: Future[Any] = Future()
        if self.failing_with:
            answer.set_exception(self.failing_with)
        elif self.hangs:
            self.unanswered.append(answer)
        else:
            answer.set_result({"pid": 1})
        return answer

    def is_away(self, failure: BaseException | None) -> bool:
        if self.unknown:
            raise self.unknown
        return self.is_starting or isinstance(failure, Gone)

    def end(self) -> None:
        self.ends += 1
        if self.unending:
            raise self.unending
        self.hangs = False


class Round:
    """An attendant of some seats, made to look by hand."""

    def __init__(self, **seats: FakeSeat) -> None:
        self.clock = ManualClock(1_000.0)
        self.counts: list[tuple[str, int]] = []
        self.is_dismissed = Event()
        self.attendant = Attendant(seats, self.clock, self.count)

    def count(self, name: str, by: int) -> None:
        self.counts.append((name, by))

    @property
    def ended(self) -> int:
        assert {name for name, _ in self.counts} == {ENDED}
        return sum(by for _, by in self.counts)

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.attendant.look(self.is_dismissed)
            self.clock.advance(USUAL_BOUNDS.look_every_s)


def test_one_that_hangs_is_ended_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    seat, other = FakeSeat(), FakeSeat()
    looking = Round(watcher=seat, partition=other)
    assert looking.counts == [(ENDED, 0)], "shown before it happens"
    looking.look(2)
    seat.hangs = True
    looking.look(3)
    assert (seat.ends, other.ends, looking.ended) == (0, 0, 0)
    looking.look()
    assert (seat.ends, other.ends, looking.ended) == (1, 0, 1)
    said = "the watcher hangs: it has not answered for 30 s; it is ended and started anew"
    assert [each.getMessage() for each in caplog.records] == [said]
    looking.look(10)
    assert (seat.ends, looking.ended) == (1, 1)


def test_one_that_cannot_be_ended_keeps_no_other_from_it() -> None:
    first, second = FakeSeat(), FakeSeat()
    looking = Round(first=first, second=second)
    looking.look()
    first.hangs = second.hangs = True
    first.unending = OSError("the word cannot be given")
    looking.look(4)
    assert (first.ends, second.ends, looking.ended) == (1, 1, 1)


def test_there_is_one_ping_out_at_a_time() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    seat.hangs = True
    looking.look(3)
    assert (seat.pings, seat.ends) == (1, 0)
    looking.look()
    assert (seat.pings, seat.ends) == (1, 1), "though it was never heard"
    looking.look()
    assert seat.pings == 2


def test_an_end_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.hangs, seat.unending = True, OSError("the word cannot be given")
    looking.look(5)
    assert seat.ends == 2
    assert looking.ended == 0
    assert "could not be ended" in caplog.text
    assert "the word cannot be given" in caplog.text
    seat.unending = None
    looking.look()
    assert (seat.ends, looking.ended) == (3, 1)


def test_a_late_answer_spares_one_whose_end_failed() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.hangs, seat.unending = True, OSError()
    looking.look(4)
    assert seat.ends == 1
    seat.hangs = False
    seat.unanswered[0].set_result({})
    looking.look(5)
    assert seat.ends == 1


@pytest.mark.parametrize("failure", [KeyError("pid"), RuntimeError("it does not work any more")])
def test_a_ping_that_fails_is_no_answer(failure: Exception) -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.failing_with = failure
    looking.look(5)
    assert (seat.pings, seat.ends) == (6, 1), "each ping is followed by another one"


def test_a_ping_that_cannot_be_sent_is_no_answer() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.unsendable = OverflowError("1,000 calls are pending")
    looking.look(4)
    assert seat.ends == 1


def test_one_that_is_away_does_not_hang() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.failing_with = Gone()
    looking.look(25)
    assert seat.ends == 0


def test_a_ping_that_waits_for_a_start_makes_it_no_hang() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.hangs = seat.is_starting = True
    looking.look(25)
    assert seat.ends == 0
    seat.hangs = seat.is_starting = False
    seat.unanswered[0].set_result({})
    looking.look(5)
    assert seat.ends == 0


def test_a_state_that_cannot_be_told_is_no_excuse(caplog: pytest.LogCaptureFixture) -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.hangs, seat.unknown = True, OverflowError("Ray has no such state")
    looking.look(4)
    assert seat.ends == 1
    assert "Ray has no such state" in caplog.text


def test_a_ping_to_the_ended_one_says_nothing_of_its_successor() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.hangs = True
    looking.look(4)
    assert seat.ends == 1
    seat.unanswered[0].set_exception(Gone())
    looking.look(10)
    assert seat.ends == 1
    assert seat.pings > 5


def test_nobody_is_ended_once_dismissed() -> None:
    seat = FakeSeat()
    looking = Round(seat=seat)
    looking.look()
    seat.hangs = True
    looking.is_dismissed.set()
    looking.look(10)
    assert seat.ends == 0


class Rounds(Event):
    """Lets an attendant make a number of rounds."""

    def __init__(self, rounds: int, between: Callable[[], None]) -> None:
        super().__init__()
        self._left = rounds
        self._between = between
        self.waited_s: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited_s.append(timeout)
        self._between()
        self._left -= 1
        if not self._left:
            self.set()
        return self.is_set()


def test_it_looks_at_intervals_until_it_is_dismissed() -> None:
    seat, clock = FakeSeat(), ManualClock()
    bounds = AttendanceBounds(look_every_s=2.0, looks_max=2)
    attendant = Attendant({"seat": seat}, clock, lambda _, __: None, bounds)
    rounds = Rounds(4, lambda: clock.advance(2.0))
    attendant.attend(rounds)
    assert rounds.waited_s == [2.0] * 4
    assert seat.pings == 4


def test_a_round_that_fails_is_logged_and_followed_by_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(ManualClock):
        looks = 0

        def monotonic_s(self) -> float:
            self.looks += 1
            raise ArithmeticError("nobody foresaw this")

    clock = Broken()
    Attendant({"seat": FakeSeat()}, clock, lambda _, __: None).attend(Rounds(3, lambda: None))
    assert clock.looks == 3
    assert caplog.text.count("a look after the actors failed") == 3
    assert "nobody foresaw this" in caplog.text
