"""Makes spans of decided calls (B21): names and attributes are the reference's.

    ShouldRateLimit Execution           from a call's arrival to its answer; a child of the caller's
      <the store's>                     while the counters of its batch were counted
      NewJsonHandler Remaining Execution    while the reply was written as JSON

Calls are counted in batches, so calls of one batch have spans of their store with equal times: each
trace is whole by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, assert_never

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagators.b3 import B3MultiFormat
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tollgate.actors.kernel.call_parts import CallPart
from tollgate.serve.ratelimit.codec.request_text import has_limit, request_text
from tollgate.serve.ratelimit.fronts.front import BegunCall, ErrorStatus
from tollgate.serve.ratelimit.tracing.decided_calls import (
    AnsweredCall,
    DecidedCall,
    Record,
    RenderedReply,
)
from tollgate.serve.settings.choices import Backend

DECISION_SPAN = "ShouldRateLimit Execution"
JSON_SPAN = "NewJsonHandler Remaining Execution"
DOMAIN, REQUEST = "domain", "request string"
ATTRIBUTE_CHARS_MAX = 4_096

# Where a call brings several, W3C's counts, for it is read last.
PROPAGATOR = CompositePropagator([B3MultiFormat(), TraceContextTextMapPropagator()])


class StoreSpan(NamedTuple):
    """The span of a store of counters."""

    name: str
    kind: trace.SpanKind


STORE_SPANS = {
    Backend.ACTORS: StoreSpan("Counters Execution", trace.SpanKind.INTERNAL),
    Backend.KVSTORE: StoreSpan("Redis Pipeline Execution", trace.SpanKind.CLIENT),
    Backend.ALTCACHE: StoreSpan("Memcached Fetch Execution", trace.SpanKind.CLIENT),
}


class CallIds(IdGenerator):
    """Ids of spans: those that a call was given when it came, and else random ones. One thread."""

    def __init__(self, random_bits: Callable[[int], int]) -> None:
        self._random_bits = random_bits
        self._trace_id = self._span_id = 0

    def use_next(self, begun: BegunCall) -> None:
        """The next span is the first of a call."""
        self._trace_id, self._span_id = begun.trace_id, begun.span_id

    def generate_trace_id(self) -> int:
        return self._trace_id or self._random_bits(128) or 1

    def generate_span_id(self) -> int:
        span_id, self._span_id = self._span_id, 0
        return span_id or self._random_bits(64) or 1


class SpanWriter:
    """Writes spans by `tracer`, whose ids are `ids`. `epoch_offset_s`: the time of the epoch at the
    monotonic time 0, by the clock of now."""

    def __init__(
        self,
        tracer: trace.Tracer,
        ids: CallIds,
        store_span: StoreSpan,
        epoch_offset_s: Callable[[], float],
    ) -> None:
        self._tracer = tracer
        self._ids = ids
        self._store_span = store_span
        self._epoch_offset_s = epoch_offset_s
        self._offset_s = 0.0

    def write(self, record: Record) -> None:
        """Makes the spans of one record."""
        # Once, for looking at two clocks takes time: what is ordered within a record stays so.
        self._offset_s = self._epoch_offset_s()
        match record:
            case DecidedCall():
                self._write_call(record)
            case RenderedReply():
                self._write_reply(record)
            case AnsweredCall():
                self._write_answered(record)
            case _:
                assert_never(record)

    def _write_call(self, call: DecidedCall) -> None:
        parent = parent_context(call.begun)
        domain, text = request_text(call.request, call.request_bytes, ATTRIBUTE_CHARS_MAX)
        self._ids.use_next(call.begun)
        span = self._tracer.start_span(
            DECISION_SPAN,
            parent,
            kind=trace.SpanKind.SERVER,
            attributes={DOMAIN: domain, REQUEST: text},
            start_time=self._epoch_ns(call.begun.arrived_s),
        )
        if isinstance(call.reply, ErrorStatus):
            span.set_status(trace.StatusCode.ERROR, call.reply.message[:ATTRIBUTE_CHARS_MAX])
        if call.counted is not None and is_counted(call):
            child = self._tracer.start_span(
                self._store_span.name,
                trace.set_span_in_context(span, parent),
                kind=self._store_span.kind,
                start_time=self._epoch_ns(call.counted.started_s),
            )
            if call.counted.failure and isinstance(call.reply, ErrorStatus):
                child.set_status(trace.StatusCode.ERROR, call.counted.failure)
            child.end(self._epoch_ns(call.counted.ended_s))
        span.end(self._epoch_ns(call.ended_s))

    def _write_reply(self, reply: RenderedReply) -> None:
        begun = reply.begun
        parent = parent_context(begun)
        remote = trace.get_current_span(parent).get_span_context()
        flags = remote.trace_flags if remote.is_valid else trace.TraceFlags.SAMPLED
        of_call = trace.SpanContext(
            remote.trace_id if remote.is_valid else begun.trace_id,
            begun.span_id,
            is_remote=False,
            trace_flags=trace.TraceFlags(flags),
        )
        context = trace.set_span_in_context(trace.NonRecordingSpan(of_call), parent)
        span = self._tracer.start_span(
            JSON_SPAN, context, start_time=self._epoch_ns(reply.started_s)
        )
        span.end(self._epoch_ns(reply.ended_s))

    def _write_answered(self, call: AnsweredCall) -> None:
        parent = parent_context(call.begun)
        self._ids.use_next(call.begun)
        span = self._tracer.start_span(
            call.name,
            parent,
            kind=trace.SpanKind.SERVER,
            attributes=dict(call.attributes),
            start_time=self._epoch_ns(call.begun.arrived_s),
        )
        if call.failure:
            span.set_status(trace.StatusCode.ERROR, call.failure[:ATTRIBUTE_CHARS_MAX])
        within = trace.set_span_in_context(span, parent)
        # What lies within another part in time belongs to it: the longest first.
        around: list[tuple[CallPart, Context]] = []
        for part in sorted(call.parts, key=lambda each: (each.begun_s, -each.ended_s)):
            owners = [context for other, context in around if part.ended_s <= other.ended_s]
            context = owners[-1] if owners else within
            child = self._tracer.start_span(
                part.name,
                context,
                kind=trace.SpanKind.CLIENT,
                attributes=dict(part.attributes),
                start_time=self._epoch_ns(part.begun_s),
            )
            if part.failure:
                child.set_status(trace.StatusCode.ERROR, part.failure[:ATTRIBUTE_CHARS_MAX])
            child.end(self._epoch_ns(part.ended_s))
            around.append((part, trace.set_span_in_context(child, context)))
        span.end(self._epoch_ns(call.ended_s))

    def _epoch_ns(self, monotonic_s: float) -> int:
        return round((monotonic_s + self._offset_s) * 1e9)


def parent_context(begun: BegunCall) -> Context:
    """What the caller of a call says: the parent, if there is one."""
    carrier: dict[str, list[str]] = {}
    for name, value in begun.headers:
        carrier.setdefault(name, []).append(value)
    return PROPAGATOR.extract(carrier, Context(), _HEADERS)


def is_counted(call: DecidedCall) -> bool:
    """Whether the counters of the batch had to do with this call of it."""
    assert call.counted is not None, "the counters of its batch were counted"
    if isinstance(call.reply, ErrorStatus):
        return bool(call.counted.failure) and call.counted.failure in call.reply.message
    return not call.reply or has_limit(call.reply)


class _HeaderGetter(Getter[Mapping[str, Sequence[str]]]):
    def get(self, carrier: Mapping[str, Sequence[str]], key: str) -> list[str] | None:
        values = carrier.get(key)
        return None if values is None else list(values)

    def keys(self, carrier: Mapping[str, Sequence[str]]) -> list[str]:
        return list(carrier)


_HEADERS = _HeaderGetter()
