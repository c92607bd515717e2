"""Tracing, put together: what a front process has of it when it is on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import CounterStore
from tollgate.serve.ratelimit.fronts.front import CallTracer
from tollgate.serve.ratelimit.tracing.call_tracer import QueueingTracer
from tollgate.serve.ratelimit.tracing.decided_calls import WaitingRecords
from tollgate.serve.ratelimit.tracing.span_thread import SpanOutlet, SpanThread
from tollgate.serve.ratelimit.tracing.timed_store import TimedStore
from tollgate.serve.settings import Settings
from tollgate.serve.settings.outside.tracing import TracingSettings

OFFSET_TRIES = 3


def random_uuid(random_bits: Callable[[int], int]) -> str:
    """A UUID of version 4 (RFC 9562, 5.4)."""
    text = f"{random_bits(128):032x}"
    variant = "89ab"[int(text[16], 16) % 4]
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{variant}{text[17:20]}-{text[20:]}"


def epoch_offset_s(clock: Clock) -> float:
    """The time of the epoch at the monotonic time 0. A thread may have to wait between two looks at
    clocks, so the quickest of several tries counts."""
    tries = []
    for _ in range(OFFSET_TRIES):
        before_s, now_s, after_s = clock.monotonic_s(), clock.now_s(), clock.monotonic_s()
        tries.append((after_s - before_s, now_s - (before_s + after_s) / 2))
    return min(tries)[1]


@dataclass(frozen=True, slots=True)
class Tracing:
    """The tracer of the doors, the way of the decider to its counters, and the thread behind."""

    tracer: CallTracer
    store: TimedStore
    spans: SpanThread


@dataclass(frozen=True, slots=True)
class CallTracing:
    """Tracing of a service whose calls are answered one by one."""

    tracer: QueueingTracer
    spans: SpanThread


def set_up_call_tracing(
    settings: Settings,
    service_name: str,
    clock: Clock,
    count: Callable[[str, int], None],
    random_bits: Callable[[int], int],
) -> CallTracing:
    """The same of another service, which is called `service_name` unless the settings name one."""
    own = settings.tracing
    if own.service_name == TracingSettings().service_name:
        own = replace(own, service_name=service_name)
    waiting = WaitingRecords()
    tracer = QueueingTracer(
        own.sampling_rate, waiting, lambda: None, clock.monotonic_s, random_bits
    )
    outlet = _outlet(replace(settings, tracing=own), clock, random_bits)
    return CallTracing(tracer, SpanThread(waiting, outlet, count))


def set_up_tracing(
    settings: Settings,
    store: CounterStore,
    clock: Clock,
    count: Callable[[str, int], None],
    random_bits: Callable[[int], int],
) -> Tracing:
    """Tracing by these settings, not yet started."""
    timed = TimedStore(store, clock.monotonic_s)
    waiting = WaitingRecords()
    rate = settings.tracing.sampling_rate
    tracer = QueueingTracer(rate, waiting, timed.take_counted, clock.monotonic_s, random_bits)
    outlet = _outlet(settings, clock, random_bits)
    return Tracing(tracer, timed, SpanThread(waiting, outlet, count))


def _outlet(settings: Settings, clock: Clock, random_bits: Callable[[int], int]) -> SpanOutlet:
    # Only here, for whoever does without tracing does without OpenTelemetry.
    from tollgate.serve.ratelimit.tracing.otlp import OtlpOutlet, SpanSources
    from tollgate.serve.ratelimit.tracing.span_writer import STORE_SPANS

    sources = SpanSources(
        random_uuid(random_bits),
        STORE_SPANS[settings.counting.backend],
        random_bits,
        partial(epoch_offset_s, clock),
    )
    return OtlpOutlet(settings.tracing, settings.otlp, sources)
