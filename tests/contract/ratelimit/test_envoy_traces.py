"""Envoy's own tracers: a request that Envoy traces is one trace with the decision that it asks for.

Tollgate begins no trace of its own here, so each of its spans is there because Envoy said so.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.processes.envoy import EnvoyProcess, patient
from tests.support.ratelimit.otlp_collector import TRACES_PATH, Received, http_collector
from tests.support.ratelimit.traced_doors import to, traced_doors
from tests.support.servers.file_server import FileServer, Seen, file_server
from tests.support.waiting import until

DECISION = "ShouldRateLimit Execution"
TRACER = "type.googleapis.com/envoy.config.trace.v3"
COLLECTOR = "collector"
# Envoy sends its spans by the handful, or after five seconds.
REQUESTS = 5


def opentelemetry(url: str) -> dict[str, object]:
    uri = {"uri": url + TRACES_PATH, "cluster": COLLECTOR, "timeout": "5s"}
    return {
        "name": "envoy.tracers.opentelemetry",
        "typed_config": {
            "@type": f"{TRACER}.OpenTelemetryConfig",
            "http_service": {"http_uri": uri},
            "service_name": "edge",
        },
    }


def zipkin(url: str) -> dict[str, object]:
    """With the headers of B3, and traces of 64 bits, as they are unless one says otherwise."""
    return {
        "name": "envoy.tracers.zipkin",
        "typed_config": {
            "@type": f"{TRACER}.ZipkinConfig",
            "collector_cluster": COLLECTOR,
            "collector_endpoint": "/api/v2/spans",
            "collector_endpoint_version": "HTTP_JSON",
        },
    }


TRACERS = {"OpenTelemetry": opentelemetry, "Zipkin": zipkin}


def traced(tracer: dict[str, object], url: str, configuration: str) -> str:
    """The configuration of an Envoy that traces every request, and says so to this collector."""
    whole = yaml.safe_load(patient(configuration))
    resources = whole["static_resources"]
    (manager,) = resources["listeners"][0]["filter_chains"][0]["filters"]
    manager["typed_config"]["tracing"] = {"provider": tracer}
    place = {"address": "127.0.0.1", "port_value": urlsplit(url).port}
    endpoint = {"endpoint": {"address": {"socket_address": place}}}
    endpoints = {"cluster_name": COLLECTOR, "endpoints": [{"lb_endpoints": [endpoint]}]}
    cluster = {"name": COLLECTOR, "type": "STATIC", "load_assignment": endpoints}
    resources["clusters"].append(cluster)
    return yaml.safe_dump(whole)


@pytest.fixture
def collector() -> Iterator[FileServer]:
    """What takes the spans of any Envoy."""

    def accepted(seen: Seen) -> tuple[int, dict[str, str]]:
        return (200 if seen.path == TRACES_PATH else 202), {"body": ""}

    with file_server(accepted) as server:
        yield server


def spans_of(seen: Seen) -> Iterator[tuple[int, int]]:
    """The trace and the span of each that was sent."""
    if seen.path == TRACES_PATH:
        message: Any = ExportTraceServiceRequest.FromString(seen.body)
        for resource in message.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    yield int.from_bytes(span.trace_id), int.from_bytes(span.span_id)
        return
    for span in json.loads(seen.body):
        yield int(span["traceId"], 16), int(span["id"], 16)


@pytest.fixture
def traces(socket_dir: Path) -> Iterator[tuple[Received, int]]:
    """What a front that begins no traces sends, and the port of that front."""
    received = Received()
    with (
        http_collector(received) as url,
        traced_doors(to(url, TRACING_SAMPLING_RATE="0"), socket_dir) as doors,
    ):
        doors.service.health.take_rules(has_domains=True)
        yield received, int(doors.front.address.rpartition(":")[2])


@pytest.mark.parametrize("name", TRACERS)
def test_a_decision_is_a_child_of_a_span_of_envoy(
    traces: tuple[Received, int],
    collector: FileServer,
    envoy_binary: Path,
    tmp_path: Path,
    name: str,
) -> None:
    received, port = traces
    change = partial(traced, TRACERS[name](collector.url), collector.url)
    envoy = EnvoyProcess(envoy_binary, tmp_path / "envoy", port, change)
    try:
        envoy.start()
        for _ in range(REQUESTS):
            assert httpx.get(envoy.url).status_code == 200
        decisions = received.wait_for(DECISION, REQUESTS)
        parents = {
            (int.from_bytes(span.trace_id), int.from_bytes(span.parent_span_id))
            for span in decisions
        }
        assert len(parents) == REQUESTS, "each request is a trace of its own"

        def told() -> bool:
            spans = {span for seen in collector.seen for span in spans_of(seen)}
            # (those of a handful that is not full yet come later)
            return len(parents & spans) >= REQUESTS - 2

        until(told, "Envoy tells the spans that the decisions belong to")
    finally:
        envoy.end()
