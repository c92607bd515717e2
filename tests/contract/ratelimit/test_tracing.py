"""Traces of decided calls, as a collector gets them (docs/ratelimit.md, B21)."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import grpc
import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tests.support.ratelimit.engine import RecordedCounters
from tests.support.ratelimit.grpc_peers import PATIENCE_S, caller
from tests.support.ratelimit.otlp_collector import (
    COLLECTORS,
    Received,
    attributes,
    http_collector,
)
from tests.support.ratelimit.traced_doors import ask, question, to, traced_doors
from tollgate.serve.ratelimit.wiring import json_endpoint
from tollgate.serve.settings.choices import GrpcFront

DECISION, STORE = "ShouldRateLimit Execution", "Counters Execution"
SEED = 7
JSON_REST = "NewJsonHandler Remaining Execution"
TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLERS = {
    "W3C": [("traceparent", f"00-{TRACE_ID}-{SPAN_ID}-01"), ("tracestate", "vendor=1")],
    "B3, one header": [("b3", f"{TRACE_ID}-{SPAN_ID}-1")],
    # As Envoy's tracer for Zipkin sends them.
    "B3, several": [
        ("x-b3-traceid", TRACE_ID),
        ("x-b3-spanid", SPAN_ID),
        ("x-b3-parentspanid", "05e3ac9a4f6e3b90"),
        ("x-b3-sampled", "1"),
    ],
    "W3C, with baggage and B3 of another trace": [
        ("b3", f"{'1' * 32}-{'2' * 16}-1"),
        ("baggage", "user=a%20b;property,tenant=c"),
        ("traceparent", f"00-{TRACE_ID}-{SPAN_ID}-01"),
    ],
}
DECLINED = {
    "W3C": [("traceparent", f"00-{TRACE_ID}-{SPAN_ID}-00")],
    "B3, one header": [("b3", "0")],
    "B3, several": [
        ("x-b3-traceid", TRACE_ID),
        ("x-b3-spanid", SPAN_ID),
        ("x-b3-sampled", "0"),
    ],
}
BODY = {"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def received() -> Received:
    return Received()


@pytest.fixture(scope="module")
def collector(received: Received) -> Iterator[str]:
    """One collector for all tests that look for spans of their own."""
    with http_collector(received) as url:
        yield url


@pytest.fixture
def fresh(received: Received) -> Received:
    """The collector's, emptied."""
    received.spans.clear()
    received.resources.clear()
    received.headers.clear()
    return received


def spans_of(front_address: str, calls: int, received: Received, **call: object) -> list[Span]:
    """The decisions' spans of so many equal calls."""
    with caller(front_address) as peer:
        ask(peer, calls, **call)
    return received.wait_for(DECISION, calls)


@pytest.mark.parametrize("protocol", COLLECTORS)
def test_each_call_has_one_span_and_one_of_its_counters(
    choice: GrpcFront, protocol: str, socket_dir: Path
) -> None:
    received = Received()
    named = {
        "TRACING_SERVICE_NAME": "limits",
        "TRACING_SERVICE_NAMESPACE": "edge",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=tollgate",
        "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
    }
    started_ns = time.time_ns()
    with (
        COLLECTORS[protocol](received) as url,
        traced_doors(to(url, protocol, **named), socket_dir, choice) as doors,
    ):
        decisions = spans_of(doors.front.address, 3, received)
        stores = received.wait_for(STORE, 3)
    assert len(decisions) == len(stores) == 3
    assert len(received.spans) == 6
    assert len({span.trace_id for span in decisions}) == 3
    for span in decisions:
        assert span.kind == Span.SPAN_KIND_SERVER
        assert attributes(span) == {
            "domain": "d",
            "request string": ('domain: "d" descriptors { entries { key: "k" value: "v" } }'),
        }
        (store,) = [each for each in stores if each.parent_span_id == span.span_id]
        assert store.trace_id == span.trace_id
        times = [
            span.start_time_unix_nano,
            store.start_time_unix_nano,
            store.end_time_unix_nano,
            span.end_time_unix_nano,
        ]
        assert times == sorted(times)
        assert abs(times[0] - started_ns) < PATIENCE_S * 1e9
    resource = received.resources[0]
    assert resource["service.name"] == "limits"
    assert resource["service.namespace"] == "edge"
    assert resource["deployment.environment"] == "test"
    assert received.headers[0]["x-tenant"] == "tollgate"


@pytest.mark.parametrize(
    ("backend", "name", "kind"),
    [
        ("redis", "Redis Pipeline Execution", Span.SPAN_KIND_CLIENT),
        ("memcache", "Memcached Fetch Execution", Span.SPAN_KIND_CLIENT),
    ],
)
def test_stores_outside_have_spans_of_the_references_names(
    backend: str, name: str, kind: int, collector: str, fresh: Received, socket_dir: Path
) -> None:
    # (the store itself is not what this is about)
    settings = to(collector, BACKEND_TYPE=backend, MEMCACHE_HOST_PORT="127.0.0.1:1")
    with traced_doors(settings, socket_dir) as doors:
        (span,) = spans_of(doors.front.address, 1, fresh)
        (store,) = fresh.wait_for(name, 1)
    assert (store.parent_span_id, store.kind) == (span.span_id, kind)


@pytest.mark.parametrize("metadata", CALLERS.values(), ids=CALLERS.keys())
def test_a_span_is_a_child_of_its_callers(
    choice: GrpcFront,
    metadata: list[tuple[str, str]],
    collector: str,
    fresh: Received,
    socket_dir: Path,
) -> None:
    settings = to(collector, TRACING_SAMPLING_RATE="0")  # (the caller's decision counts)
    with traced_doors(settings, socket_dir, choice) as doors:
        (span,) = spans_of(doors.front.address, 1, fresh, metadata=metadata)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, SPAN_ID)


@pytest.mark.parametrize("metadata", DECLINED.values(), ids=DECLINED.keys())
def test_a_caller_may_want_no_spans(
    choice: GrpcFront,
    metadata: list[tuple[str, str]],
    collector: str,
    fresh: Received,
    socket_dir: Path,
) -> None:
    with traced_doors(to(collector), socket_dir, choice) as doors:
        with caller(doors.front.address) as peer:
            ask(peer, metadata=metadata)
            ask(peer, payload=question("last"))
        fresh.wait_for(DECISION, 1)
    assert len(fresh.named(DECISION)) == 1


def test_calls_over_json_have_a_span_for_the_rest(
    collector: str, fresh: Received, socket_dir: Path
) -> None:
    headers = {"Traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01"}
    with traced_doors(to(collector), socket_dir) as doors:
        url = f"http://{doors.json_door.address}/json"
        with httpx.Client(trust_env=False) as client:
            for _ in range(2):  # (the same bytes: what is remembered of them is not all)
                assert client.post(url, json=BODY, headers=headers).status_code == 200
            # Headers are of one call only.
            assert client.post(url, json=BODY).status_code == 200
            assert client.post(url, content=b"}").status_code == 400
        decisions = fresh.wait_for(DECISION, 3)
        rests = fresh.wait_for(JSON_REST, 3)
    *first, second = decisions
    for each in first:
        assert (each.trace_id.hex(), each.parent_span_id.hex()) == (TRACE_ID, SPAN_ID)
    assert second.trace_id.hex() != TRACE_ID
    assert not second.parent_span_id
    assert {(rest.trace_id, rest.parent_span_id) for rest in rests} == {
        (span.trace_id, span.span_id) for span in decisions
    }
    assert all(rest.start_time_unix_nano <= rest.end_time_unix_nano for rest in rests)


def test_calls_that_come_by_serve_have_the_same_spans(
    collector: str, fresh: Received, socket_dir: Path
) -> None:
    headers = {"b3": f"{TRACE_ID}-{SPAN_ID}-1"}
    with traced_doors(to(collector), socket_dir) as doors:
        endpoint = json_endpoint(doors.service, doors.exchange)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await endpoint.answer(Request(scope, receive))
            await response(scope, receive, send)

        async def ask_twice() -> list[int]:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://door") as client:
                answers = [
                    await client.post("/json", json=BODY, headers=headers),
                    await client.post("/json", content=b"}", headers=headers),
                ]
            return [answer.status_code for answer in answers]

        assert asyncio.run(ask_twice()) == [200, 400]
        (span,) = fresh.wait_for(DECISION, 1)
        (rest,) = fresh.wait_for(JSON_REST, 1)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, SPAN_ID)
    assert (rest.trace_id, rest.parent_span_id) == (span.trace_id, span.span_id)


@pytest.mark.parametrize("rate", ["0", "0.3", "1"])
def test_the_rate_is_of_traces_that_begin_here(
    rate: str, collector: str, fresh: Received, socket_dir: Path
) -> None:
    calls = 200
    with traced_doors(to(collector, TRACING_SAMPLING_RATE=rate), socket_dir, seed=SEED) as doors:
        with caller(doors.front.address) as peer:
            ask(peer, calls)
            ask(peer, metadata=CALLERS["W3C"])
        drawn = Random(SEED)
        _of_the_process, *ids = [drawn.getrandbits(128) for _ in range(1 + calls)]
        share = {each for each in ids if each % 2**64 < float(rate) * 2**64}
        assert len(share) == {"0": 0, "0.3": 68, "1": calls}[rate]
        spans = fresh.wait_for(DECISION, len(share) + 1)
    assert {int.from_bytes(span.trace_id, "big") for span in spans} == {*share, int(TRACE_ID, 16)}
    assert len(spans) == len(share) + 1


def test_spans_are_bounded_whatever_the_request(
    collector: str, fresh: Received, socket_dir: Path
) -> None:
    many = question(*["v" * 4_000] * 250)
    one = question("w" * 1_000_000)
    with traced_doors(to(collector), socket_dir) as doors, caller(doors.front.address) as peer:
        ask(peer, payload=many)
        for payload in (one, b"\x0a\xff\xff\xff\xff\x0f" + b"x" * 1_000_000):
            with pytest.raises(grpc.RpcError):
                ask(peer, payload=payload)
        spans = sorted(fresh.wait_for(DECISION, 3), key=lambda span: span.start_time_unix_nano)
    assert all(span.ByteSize() < 8_192 for span in spans)
    whole = attributes(spans[0])["request string"]
    assert whole.endswith(f"({len(many)} bytes)")
    assert [span.status.code for span in spans] == [
        Status.STATUS_CODE_UNSET,
        Status.STATUS_CODE_ERROR,
        Status.STATUS_CODE_ERROR,
    ]


def test_an_error_is_in_the_span_and_in_that_of_the_counters(
    collector: str, fresh: Received, socket_dir: Path
) -> None:
    store = RecordedCounters(2)
    store.unreachable = dict.fromkeys(range(2), "nobody counts")
    with traced_doors(to(collector), socket_dir, store=store) as doors:
        with caller(doors.front.address) as peer:
            for payload in (question("v"), question()):
                with pytest.raises(grpc.RpcError):
                    ask(peer, payload=payload)
        fresh.wait_for(DECISION, 2)
    assert {(span.name, span.status.message) for span in fresh.spans} == {
        (STORE, "nobody counts"),
        (DECISION, "nobody counts"),
        (DECISION, "rate limit descriptor list must not be empty"),
    }
    assert len(fresh.spans) == 3


UNTRACED = """
import sys
from pathlib import Path
from tests.support.ratelimit.grpc_peers import PATIENCE_S, World, caller, end
from tollgate.serve.ratelimit import wiring
from tollgate.serve.settings.choices import GrpcFront

front = World().front(GrpcFront.NATIVE, Path(sys.argv[1]))
front.start()
with caller(front.address) as peer:
    assert peer.decide(b"x", timeout=PATIENCE_S) == b"re:x"
end(front)
print(sorted(name for name in sys.modules if name.startswith("opentelemetry")))
"""


def test_without_tracing_nothing_of_it_is_imported(socket_dir: Path) -> None:
    words = [sys.executable, "-c", UNTRACED, str(socket_dir)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
