"""Collectors of traces that are away or silent, and the end of a front (docs/ratelimit.md, B21)."""

import logging
import socket
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.ratelimit.grpc_peers import PATIENCE_S, Caller, caller, end
from tests.support.ratelimit.otlp_collector import COLLECTORS, Received, http_collector
from tests.support.ratelimit.traced_doors import ask, to, traced_doors
from tests.support.waiting import until
from tollgate.serve.ratelimit.tracing import span_thread
from tollgate.serve.ratelimit.tracing.span_thread import (
    CALLS_LOST,
    CALLS_SENT,
    LAST_SPANS_WITHIN_S,
    LET_GO_WITHIN_S,
)

DECISION = "ShouldRateLimit Execution"


@pytest.mark.parametrize("protocol", COLLECTORS)
def test_a_collector_that_is_killed_is_said_once_and_found_again(
    protocol: str, socket_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    received = Received()
    with ExitStack() as collector:
        url = collector.enter_context(COLLECTORS[protocol](received))
        # The exporter gives up when its next attempt, a second or two later, would be too late.
        settings = to(url, protocol, OTEL_EXPORTER_OTLP_TIMEOUT="3")
        with (
            traced_doors(settings, socket_dir) as doors,
            caller(doors.front.address) as peer,
            caplog.at_level(logging.WARNING),
        ):
            until(lambda: is_heard(peer, received), "spans come")
            collector.close()
            said, lost = lines("cannot be sent", caplog), doors.counted[CALLS_LOST]
            for more in (1, 2):
                ask(peer)
                until(lambda more=more: doors.counted[CALLS_LOST] >= lost + more, "it is given up")
            (line,) = lines("cannot be sent", caplog)[len(said) :]
            assert url in line
            said = lines("sent again", caplog)
            received.spans.clear()
            collector.enter_context(COLLECTORS[protocol](received, int(url.rpartition(":")[2])))
            until(lambda: is_heard(peer, received), "spans come again")
            until(lambda: len(lines("sent again", caplog)) > len(said), "it is said")
            assert doors.counted[CALLS_SENT] >= 2
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


class Refusal(BaseHTTPRequestHandler):
    """Answers with what it was told, in red."""

    def do_POST(self) -> None:
        self.send_response(401, f"\x1b[31m{self.path} {self.headers['authorization']}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def test_what_a_collector_answers_has_no_secrets_in_the_log(
    socket_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        host = f"127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        settings = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://{host}/v1/traces?key=SECRET-1",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20SECRET-2",
        }
        with (
            traced_doors(settings, socket_dir) as doors,
            caller(doors.front.address) as peer,
            caplog.at_level(logging.WARNING),
        ):
            ask(peer)
            (line,) = until(lambda: lines("cannot be sent", caplog), "it is said")
        server.shutdown()
        thread.join()
    assert f"to http://{host}/v1/traces (OTLP over http)" in line
    assert "401" in line
    assert "SECRET" not in line
    assert line.isprintable()


def test_headers_that_cannot_be_read_say_nothing_in_the_log(
    socket_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    received = Received()
    parent = f"00-{'1' * 32}-{'2' * 16}-01"
    with (
        http_collector(received) as url,
        traced_doors(to(url), socket_dir) as doors,
        caller(doors.front.address) as peer,
        caplog.at_level(logging.WARNING),
    ):
        for said in ([("baggage", "a," * 500)], [("tracestate", "a," * 500), ("b3", "?")]):
            ask(peer, metadata=[*said, ("traceparent", parent)])
        assert len(received.wait_for(DECISION, 2)) == 2
    assert not caplog.messages


def lines(words: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if words in line]


def is_heard(peer: Caller, received: Received) -> bool:
    ask(peer)
    return bool(received.named(DECISION))


@pytest.mark.parametrize("protocol", COLLECTORS)
def test_an_end_waits_for_a_silent_collector_no_longer_than_it_says(
    protocol: str, socket_dir: Path
) -> None:
    # It takes connections and never answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = to(url, protocol) | {"OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
        with traced_doors(settings, socket_dir) as doors:
            with caller(doors.front.address) as peer:
                ask(peer)
            until(lambda: not len(doors.tracing.spans._waiting), "the span is on its way")
            started_s = time.monotonic()
            doors.tracing.spans.stop()
            took_s = time.monotonic() - started_s
    # (as long as that, and what a busy machine adds: without a bound it would be ten minutes)
    assert took_s < LAST_SPANS_WITHIN_S + LET_GO_WITHIN_S + PATIENCE_S


def test_what_waits_at_the_end_is_sent(socket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # (two seconds are enough but for a busy machine)
    monkeypatch.setattr(span_thread, "LAST_SPANS_WITHIN_S", PATIENCE_S)
    received = Received()
    with http_collector(received) as url, traced_doors(to(url), socket_dir) as doors:
        with caller(doors.front.address) as peer:
            ask(peer, 5)
        # As a front process does: a call is answered a moment before its spans wait.
        end(doors.front)
        doors.tracing.spans.stop()
        assert len(received.named(DECISION)) == 5
        assert not doors.tracing.spans.is_alive
        assert doors.counted[CALLS_SENT] == 5
