"""The way of spans to a collector: OpenTelemetry's SDK and its exporters, put together.

Where spans go to, and how, is said by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_*), which
the exporters read from the environment by themselves.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as by_grpc
from opentelemetry.exporter.otlp.proto.http import trace_exporter as by_http
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

from tollgate.serve.ratelimit.tracing.collector_texts import CollectorSecrets, plain_address
from tollgate.serve.ratelimit.tracing.decided_calls import Record
from tollgate.serve.ratelimit.tracing.span_writer import (
    ATTRIBUTE_CHARS_MAX,
    CallIds,
    SpanWriter,
    StoreSpan,
)
from tollgate.serve.settings.choices import TracingProtocol
from tollgate.serve.settings.outside.tracing import TracingSettings
from tollgate.serve.settings.table import OTLP_PREFIX

INSTRUMENTATION = "tollgate.ratelimit"
# Where the exporters send to when nothing is said.
DEFAULT_COLLECTORS = {
    TracingProtocol.GRPC: "http://localhost:4317",
    TracingProtocol.HTTP: "http://localhost:4318",
}
_LIBRARY_LOG = "opentelemetry"
_EXPORTERS_LOG = f"{_LIBRARY_LOG}.exporter"


@dataclass(frozen=True, slots=True)
class SpanSources:
    """What spans are made with. `epoch_offset_s`: as of SpanWriter. `instance_id`: of this process,
    unless the settings give one."""

    instance_id: str
    store_span: StoreSpan
    random_bits: Callable[[int], int]
    epoch_offset_s: Callable[[], float]


class OtlpOutlet:
    """A SpanOutlet (see there) over OTLP. Belongs to one thread, but for `close`."""

    def __init__(
        self, settings: TracingSettings, variables: Mapping[str, str], sources: SpanSources
    ) -> None:
        collector = plain_address(_collector(settings.protocol, variables))
        self.target = f"{collector} (OTLP over {settings.protocol.value})"
        self._complaint = _first_complaint()
        self._secrets = CollectorSecrets(variables)
        self._exporter = _exporter(settings.protocol)
        self._ended = _EndedSpans()
        ids = CallIds(sources.random_bits)
        provider = TracerProvider(
            sampler=ParentBasedTraceIdRatio(settings.sampling_rate),
            resource=_resource(settings, sources.instance_id),
            shutdown_on_exit=False,
            id_generator=ids,
            span_limits=SpanLimits(max_span_attribute_length=ATTRIBUTE_CHARS_MAX),
        )
        provider.add_span_processor(self._ended)
        tracer = provider.get_tracer(INSTRUMENTATION)
        self._writer = SpanWriter(tracer, ids, sources.store_span, sources.epoch_offset_s)

    def write(self, record: Record) -> None:
        self._writer.write(record)

    def send(self) -> str:
        spans = self._ended.take()
        if not spans:
            return ""
        self._complaint.text = ""
        if self._exporter.export(spans) is SpanExportResult.SUCCESS:
            return ""
        return self._secrets.taken_out_of(self._complaint.text) or "the exporter does not say why"

    def close(self) -> None:
        self._exporter.shutdown()


class _EndedSpans(SpanProcessor):
    """The spans that were made and not yet sent: those of one request at most."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def take(self) -> list[ReadableSpan]:
        spans, self._spans = self._spans, []
        return spans


class _FirstComplaint(logging.Handler):
    """Keeps the first line that the exporters log: each failure would be in the log several times,
    and ours is there once."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = self.text or record.getMessage()


def _first_complaint() -> _FirstComplaint:
    # What it says of headers that it cannot read, callers could have it say for every call, with
    # their values in it.
    library = logging.getLogger(_LIBRARY_LOG)
    library.propagate = False
    library.handlers = [logging.NullHandler()]
    complaint = _FirstComplaint(logging.WARNING)
    log = logging.getLogger(_EXPORTERS_LOG)
    log.propagate = False
    log.handlers = [complaint]
    return complaint


def _collector(protocol: TracingProtocol, variables: Mapping[str, str]) -> str:
    names = (f"{OTLP_PREFIX}TRACES_ENDPOINT", f"{OTLP_PREFIX}ENDPOINT")
    said = (variables[name] for name in names if variables.get(name))
    return next(said, DEFAULT_COLLECTORS[protocol])


def _exporter(protocol: TracingProtocol) -> by_grpc.OTLPSpanExporter | by_http.OTLPSpanExporter:
    if protocol is TracingProtocol.GRPC:
        return by_grpc.OTLPSpanExporter()
    return by_http.OTLPSpanExporter()


def _resource(settings: TracingSettings, instance_id: str) -> Resource:
    named = {
        "service.name": settings.service_name,
        "service.namespace": settings.service_namespace,
        "service.instance.id": settings.service_instance_id or instance_id,
    }
    return Resource.create({name: value for name, value in named.items() if value})
