"""Looks after actors: pings each of them, and ends those that hang, so that Ray starts them anew.

Belongs to one thread, in which it lives until it is dismissed. Whatever fails in there, a ping, an
end or a round, is a line in the log and is done again with the next look: an actor that hangs is
not forgotten because it could not be ended.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any, Protocol, TypeVar

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.operations.attendance import (
    USUAL_BOUNDS,
    AttendanceBounds,
    AttendanceList,
    Hang,
    Heard,
)

LOG = logging.getLogger("tollgate.operations")
ENDED = "ratelimit.actors.ended"

T = TypeVar("T")


class Seat(Protocol):
    """The place of one actor."""

    def ping(self) -> "Future[Any]":
        """Ask the process there for a sign of life, and return at once. May raise."""

    def is_away(self, failure: BaseException | None) -> bool:
        """True if there is no process at this moment, or the ping with this failure met none."""

    def end(self) -> None:
        """End the process there, so that another one is started. May block, and raise."""


class Attendant:
    """`seats` by name. `count`: of a statistic; called for each process that was ended."""

    def __init__(
        self,
        seats: Mapping[str, Seat],
        clock: Clock,
        count: Callable[[str, int], None],
        bounds: AttendanceBounds = USUAL_BOUNDS,
    ) -> None:
        self._seats = seats
        self._clock = clock
        self._count = count
        self._bounds = bounds
        self._attendance = AttendanceList(bounds)
        self._pings: dict[str, Future[Any] | None] = {}
        count(ENDED, 0)  # shown before it first happens, for an alarm to see the difference

    def attend(self, is_dismissed: Event) -> None:
        """Look at intervals, until dismissed."""
        while not is_dismissed.is_set():
            failure = attempted(lambda: self.look(is_dismissed)).exception()
            if failure is not None:
                LOG.error("a look after the actors failed", exc_info=failure)
            is_dismissed.wait(self._bounds.look_every_s)

    def look(self, is_dismissed: Event) -> None:
        """Look once: hear what became of the pings, ping again, end those that hang."""
        heard = {name: self._heard(name) for name in self._pings}
        for name in self._seats:
            if self._pings.get(name) is None:
                self._pings[name] = self._sent(name)
        for hang in self._attendance.look(self._clock.monotonic_s(), heard):
            # Nobody is ended while a node stops: whoever is slow then ends by itself.
            if not is_dismissed.is_set():
                self._end(hang)

    def _end(self, hang: Hang) -> None:
        LOG.critical("the %s hangs: it %s; it is ended and started anew", hang.seat, hang.reason)
        failure = attempted(self._seats[hang.seat].end).exception()
        if failure is not None:
            LOG.error("the %s could not be ended; again soon", hang.seat, exc_info=failure)
            return
        del self._pings[hang.seat]  # its successor is asked anew
        self._count(ENDED, 1)

    def _heard(self, name: str) -> Heard:
        ping, failure = self._pings.get(name), None
        if ping is not None and ping.done():
            self._pings[name] = None
            failure = ping.exception()
            if failure is None:
                return Heard.ANSWER
        away = attempted(lambda: self._seats[name].is_away(failure))
        if away.exception() is None and away.result():
            return Heard.AWAY
        if failure := failure or away.exception():
            LOG.warning("the %s gives no answer: %r", name, failure)
        return Heard.NOTHING

    def _sent(self, name: str) -> "Future[Any] | None":
        sent = attempted(self._seats[name].ping)
        failure = sent.exception()
        if failure is None:
            return sent.result()
        LOG.warning("the %s could not be pinged: %r", name, failure)
        return None


def attempted(call: Callable[[], T]) -> "Future[T]":
    """What came of a call that may raise anything: its result, or the exception as a value."""
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(call)
