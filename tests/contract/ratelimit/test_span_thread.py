"""The end of the thread that sends spans: asked for, and by itself."""

import logging
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.waiting import until
from tollgate.serve.ratelimit.fronts.front import BegunCall
from tollgate.serve.ratelimit.tracing.decided_calls import DecidedCall, Record, WaitingRecords
from tollgate.serve.ratelimit.tracing.span_thread import (
    CALLS_LOST,
    CALLS_SENT,
    RESTARTS,
    SpanThread,
)

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
CALL = DecidedCall(BegunCall(1, 2, (), 0.0), b"", 0, b"", None, 0.0)


class Outlet:
    """An outlet that takes everything, or breaks."""

    target = "nowhere"
    is_broken = False

    def write(self, record: Record) -> None:
        assert not self.is_broken, "an error that nobody foresaw"

    def send(self) -> str:
        return ""

    def close(self) -> None:
        pass


class Sending:
    """A thread for spans, with all that a test turns."""

    def __init__(self) -> None:
        self.waiting, self.outlet, self.counts = WaitingRecords(), Outlet(), Counter[str]()
        self.spans = SpanThread(self.waiting, self.outlet, self.count)

    def count(self, name: str, by: int) -> None:
        self.counts[name] += by

    def fall_over(self, calls: int = 1) -> None:
        """It ends by itself, with so many calls in its hands."""
        self.outlet.is_broken = True
        self.waiting.add([CALL] * calls)
        until(lambda: not self.spans.is_alive, "it has ended")

    def tends_until_restart(self) -> int:
        """How often it is tended before it is begun anew."""
        before, tends = self.counts[RESTARTS], 0
        while self.counts[RESTARTS] == before:
            self.spans.tend()
            tends += 1
        return tends


@pytest.fixture
def sending() -> Iterator[Sending]:
    found = Sending()
    found.spans.start()
    yield found
    found.spans.stop()


def test_an_end_that_was_asked_for_is_none_to_tend(sending: Sending) -> None:
    sending.spans.tend()
    sending.spans.stop()
    until(lambda: not sending.spans.is_alive, "it has ended")
    sending.spans.tend()
    assert not sending.spans.is_alive
    assert not sending.counts[RESTARTS]


def test_a_thread_that_falls_over_is_begun_anew(
    sending: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    sending.fall_over(calls=3)
    sending.waiting.add([CALL, CALL])
    sending.outlet.is_broken = False
    assert sending.tends_until_restart() == 1
    until(lambda: sending.counts[CALLS_SENT] == 2, "what came meanwhile is sent")
    assert sending.counts == {CALLS_LOST: 3, CALLS_SENT: 2, RESTARTS: 1}
    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert "The thread that sends spans ended by an error; it is begun anew" in lines


def test_one_that_falls_over_again_and_again_has_longer_and_longer_pauses(
    sending: Sending,
) -> None:
    pauses = []
    for _ in range(4):
        sending.fall_over()
        pauses.append(sending.tends_until_restart())
    assert pauses == [1, 2, 3, 5]
    sending.outlet.is_broken = False
    sending.waiting.add([CALL])
    until(lambda: sending.counts[CALLS_SENT], "spans are sent again")
    sending.fall_over()
    assert sending.tends_until_restart() == 1
    assert sending.counts[CALLS_LOST] == 5


def test_no_thread_for_it_is_no_end_of_who_tends_it(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    sending.fall_over()
    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refuse)
        assert sending.tends_until_restart() == 1
    assert not sending.spans.is_alive
    sending.outlet.is_broken = False
    assert sending.tends_until_restart() == 2
    assert sending.spans.is_alive
