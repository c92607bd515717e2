"""The thread that makes spans of what waits, and sends them.

    sending --a request fails--> failing, said once --one succeeds--> sending, said once

Whatever fails is lost, and counted; calls never wait for it. This thread is patient: Python runs
one thread at a time, so it makes few spans in a row, and lets those go ahead that answer calls.
"""

import logging
import time
from collections.abc import Callable, Sequence
from threading import Event, Thread
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
    """`start` begins to send what waits; `stop` sends the rest, the first time. `count`: of
    statistics."""

    def __init__(
        self, waiting: WaitingRecords, outlet: SpanOutlet, count: Callable[[str, int], None]
    ) -> None:
        self._waiting = waiting
        self._outlet = outlet
        self._count = count
        self._is_stopping = Event()
        self._is_failing = False
        self._lost_in_a_row = 0
        self._thread = Thread(target=self._run, name="spans", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """False once the thread has ended."""
        return self._thread.is_alive()

    @property
    def has_failed(self) -> bool:
        """True when the thread has ended by itself."""
        is_over = self._thread.ident is not None and not self._thread.is_alive()
        return is_over and not self._is_stopping.is_set()

    def stop(self) -> None:
        """Ends it, within LAST_SPANS_WITHIN_S and LET_GO_WITHIN_S; from another thread."""
        if self._is_stopping.is_set():
            return
        self._is_stopping.set()
        self._thread.join(0.0 if self._is_failing else LAST_SPANS_WITHIN_S)
        self._outlet.close()
        self._thread.join(LET_GO_WITHIN_S)
        if unsent := calls_in(self._waiting.take(len(self._waiting))):
            LOG.warning("The spans of %d calls were not sent any more", unsent)
            self._count(CALLS_LOST, unsent)

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
        self._count(CALLS_SENT, calls_in(records))

    def _lose(self, calls: int) -> None:
        if calls:
            self._lost_in_a_row += calls
            self._count(CALLS_LOST, calls)
