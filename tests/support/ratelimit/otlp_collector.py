"""A collector of traces, written for the tests on the published messages, over gRPC or HTTP."""

import gzip
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.waiting import until

EXPORT = "opentelemetry.proto.collector.trace.v1.TraceService"
TRACES_PATH = "/v1/traces"
FREE = 0


@dataclass
class Received:
    """What has come, of all requests."""

    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def take(self, message: ExportTraceServiceRequest, headers: dict[str, str]) -> None:
        self.headers.append(headers)
        for each in message.resource_spans:
            values = {a.key: a.value.string_value for a in each.resource.attributes}
            self.resources.append(values)
            for scope in each.scope_spans:
                self.spans.extend(scope.spans)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def wait_for(self, name: str, count: int) -> list[Span]:
        """That many spans of this name, or more."""
        until(lambda: len(self.named(name)) >= count, f"{count} spans {name!r} have come")
        return self.named(name)


def attributes(span: Span) -> dict[str, str]:
    return {attribute.key: attribute.value.string_value for attribute in span.attributes}


@contextmanager
def grpc_collector(received: Received, port: int = FREE) -> Iterator[str]:
    """One that listens for OTLP over gRPC: its URL."""

    def export(message: Any, context: Any) -> Any:
        received.take(message, dict(context.invocation_metadata()))
        return ExportTraceServiceResponse()

    handler = grpc.unary_unary_rpc_method_handler(
        export, ExportTraceServiceRequest.FromString, ExportTraceServiceResponse.SerializeToString
    )
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(EXPORT, {"Export": handler}),)
    )
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield f"http://127.0.0.1:{bound}"
    finally:
        server.stop(None).wait()


@contextmanager
def http_collector(received: Received, port: int = FREE) -> Iterator[str]:
    """One that listens for OTLP over HTTP: its URL, without the path of traces."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == TRACES_PATH, self.path
            headers = {name.lower(): value for name, value in self.headers.items()}
            received.take(ExportTraceServiceRequest.FromString(body), headers)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


Collector = Callable[..., AbstractContextManager[str]]
COLLECTORS: dict[str, Collector] = {"grpc": grpc_collector, "http": http_collector}
