"""The end of the thread that sends spans: told, and by itself."""

import pytest

from tests.support.waiting import until
from tollgate.serve.ratelimit.fronts.front import BegunCall
from tollgate.serve.ratelimit.tracing.decided_calls import DecidedCall, Record, WaitingRecords
from tollgate.serve.ratelimit.tracing.span_thread import SpanThread


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


def ignore(name: str, by: int) -> None:
    """In the place of statistics."""


def test_an_end_that_was_asked_for_is_no_failure() -> None:
    spans = SpanThread(WaitingRecords(), Outlet(), ignore)
    assert not spans.has_failed
    spans.start()
    assert not spans.has_failed
    spans.stop()
    until(lambda: not spans.is_alive, "it has ended")
    assert not spans.has_failed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_falls_over_is_told() -> None:
    waiting, outlet = WaitingRecords(), Outlet()
    outlet.is_broken = True
    spans = SpanThread(waiting, outlet, ignore)
    spans.start()
    waiting.add([DecidedCall(BegunCall(1, 2, (), 0.0), b"", 0, b"", None, 0.0)])
    until(lambda: spans.has_failed, "it is told")
    spans.stop()
