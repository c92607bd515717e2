"""The thread that makes spans of what waits, and sends them.

    sending --a request fails--> failing, said once --one succeeds--> sending, said once
    sending, failing --an error that nobody foresaw--> ended --`tend`--> sending

Whatever fails is lost, and counted; calls never wait for it. A thread that ends by itself is begun
anew, each time after twice as long a pause, until spans are sent again: nobody who is answered has
to do without the process because of it. This thread is patient: Python runs
one thread at a time, so it makes few spans in a row, and lets those go ahead that answer calls.
"""

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import Protocol

from tollgate.serve.ratelimit.tracing.decided_calls import (
    Record,
    WaitingRecords,
    calls_in,
)

LOG = logging.getLogger("tollgate.ratelimit")
SEND_EVERY_S = 0.25
RECORDS_PER_REQUEST_MAX = 32
RECORDS_IN_A_ROW_MAX = 4
PAUSE_S = 0.0001
# The longest that an end waits for the last spans; and then for the thread to let go of them.
LAST_SPANS_WITHIN_S = 2.0
LET_GO_WITHIN_S = 0.5
CALLS_SENT = "ratelimit.tracing.calls_sent"
CALLS_LOST = "ratelimit.tracing.calls_lost"
RESTARTS = "ratelimit.tracing.restarts"
# The longest pause before a thread is begun anew, in calls of `tend`: a minute or so.
TENDS_BETWEEN_MAX = 256


class SpanOutlet(Protocol):
    """Where spans are made, and go to."""

    target: str
    """The collector, for people."""

    def write(self, record: Record) -> None:
        """Makes the spans of a call."""

    def send(self) -> str:
        """Sends the spans that were made: "", or why that failed. Blocks."""

    def close(self) -> None:
        """Ends a `send` that is under way, as far as it can be ended; there is no other one."""


class SpanThread:
    """`start` begins to send what waits; `stop` sends the rest, the first time. `tend` is to be
    called several times a second. `count`: of statistics."""

    def __init__(
        self, waiting: WaitingRecords, outlet: SpanOutlet, count: Callable[[str, int], None]
    ) -> None:
        self._waiting = waiting
        self._outlet = outlet
        self._count = count
        self._is_stopping = Event()
        self._is_failing = False
        self._lost_in_a_row = 0
        self._in_hand = 0
        self._tends_between = 1
        self._tends_left = 0
        self._turns = Lock()
        self._thread = self._new_thread()

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.is_alive()

    def tend(self) -> None:
        """Begin a thread anew that has ended by itself, after a pause."""
        with self._turns:
            is_over = self._thread.ident is not None and not self._thread.is_alive()
            if not is_over or self._is_stopping.is_set():
                return
            self._lose(self._in_hand)
            self._in_hand = 0
            if self._tends_left:
                self._tends_left -= 1
                return
            self._tends_left = self._tends_between
            self._tends_between = min(2 * self._tends_between, TENDS_BETWEEN_MAX)
            self._begin_anew()

    def stop(self) -> None:
        """Ends it, within LAST_SPANS_WITHIN_S and LET_GO_WITHIN_S; from another thread."""
        with self._turns:
            if self._is_stopping.is_set():
                return
            self._is_stopping.set()
        self._thread.join(0.0 if self._is_failing else LAST_SPANS_WITHIN_S)
        self._outlet.close()
        self._thread.join(LET_GO_WITHIN_S)
        if unsent := calls_in(self._waiting.take(len(self._waiting))):
            LOG.warning("The spans of %d calls were not sent any more", unsent)
            self._count(CALLS_LOST, unsent)

    def _begin_anew(self) -> None:
        LOG.warning("The thread that sends spans ended by an error; it is begun anew")
        self._count(RESTARTS, 1)
        thread = self._new_thread()
        try:
            thread.start()
        except RuntimeError as error:  # (there are too many threads)
            LOG.warning("No thread sends spans: %s", error)
            return
        self._thread = thread

    def _new_thread(self) -> Thread:
        return Thread(target=self._run, name="spans", daemon=True)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_stopping.wait(SEND_EVERY_S)
            self._lose(self._waiting.take_lost())
            while records := self._waiting.take(RECORDS_PER_REQUEST_MAX):
                self._send(records)
                if self._is_failing:
                    break

    def _send(self, records: Sequence[Record]) -> None:
        self._in_hand = calls_in(records)
        self._send_in_hand(records)
        self._in_hand = 0

    def _send_in_hand(self, records: Sequence[Record]) -> None:
        for place, record in enumerate(records, start=1):
            self._outlet.write(record)
            if place % RECORDS_IN_A_ROW_MAX == 0:
                time.sleep(PAUSE_S)
        failure = self._outlet.send()
        if failure:
            if not self._is_failing:
                target = self._outlet.target
                LOG.warning("Spans cannot be sent to %s, and are lost: %s", target, failure)
            self._is_failing = True
            self._lose(calls_in(records))
            return
        if self._is_failing:
            lost = self._lost_in_a_row
            LOG.warning("Spans are sent again, those of %d calls were lost", lost)
        self._is_failing = False
        self._lost_in_a_row = 0
        self._tends_between, self._tends_left = 1, 0
        self._count(CALLS_SENT, calls_in(records))

    def _lose(self, calls: int) -> None:
        if calls:
            self._lost_in_a_row += calls
            self._count(CALLS_LOST, calls)
