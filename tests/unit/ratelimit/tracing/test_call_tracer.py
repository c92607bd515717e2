"""Decided calls on their way to where they wait: which do, what is kept of them, and the bounds."""

from collections.abc import Mapping, Sequence

import pytest
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    LimitedHits,
    PartitionCounts,
    Unreachable,
)
from tollgate.serve.ratelimit.fronts.front import BegunCall, ErrorStatus
from tollgate.serve.ratelimit.tracing.call_tracer import QueueingTracer
from tollgate.serve.ratelimit.tracing.decided_calls import (
    MESSAGE_BYTES_MAX,
    RECORD_BYTES,
    Counted,
    DecidedCall,
    RenderedReply,
    WaitingRecords,
)
from tollgate.serve.ratelimit.tracing.timed_store import TimedStore

PARENT = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
REQUEST = b"\x0a\x01d"


class Bench:
    """A tracer with a clock that stands still, and ids that are counted."""

    def __init__(self, rate: float = 1.0, records_max: int = 10) -> None:
        self.clock = ManualClock(100)
        self.waiting = WaitingRecords(records_max)
        self.counted: Counted | None = None
        self.next_id = 1
        self.tracer = QueueingTracer(
            rate, self.waiting, lambda: self.counted, self.clock.monotonic_s, self._next_id
        )

    def _next_id(self, bits: int) -> int:
        drawn = self.next_id
        self.next_id += 1
        return drawn

    def begun(self, *headers: tuple[str, str]) -> BegunCall:
        call = self.tracer.begin(headers)
        assert call is not None
        return call


def test_a_call_is_kept_with_what_its_spans_need() -> None:
    bench = Bench()
    bench.counted = Counted(1.0, 2.0)
    arrived_s = bench.clock.monotonic_s()
    begun = bench.begun(("host", "d"), PARENT)
    bench.clock.advance(3)
    bench.tracer.end([(begun, REQUEST, b"reply")])
    bench.tracer.rendered([begun], 5.0)
    assert begun == BegunCall(1, 2, (PARENT,), arrived_s)
    assert bench.waiting.take(10) == [
        DecidedCall(begun, REQUEST, len(REQUEST), b"reply", bench.counted, arrived_s + 3),
        RenderedReply(begun, 5.0, arrived_s + 3),
    ]


def test_of_what_is_large_little_is_kept() -> None:
    bench = Bench()
    large = b"\x12\xff\x0f" + b"x" * 2_047
    bench.tracer.end([(bench.begun(), REQUEST + large * 10, b"r" * (MESSAGE_BYTES_MAX + 1))])
    (record,) = bench.waiting.take(10)
    assert isinstance(record, DecidedCall)
    assert record.request == REQUEST + large
    assert record.request_bytes == len(REQUEST) + 10 * len(large)
    assert record.reply == b""


def test_what_is_not_traced_is_not_kept() -> None:
    bench = Bench(rate=0.0)
    assert bench.tracer.begin([]) is None
    assert bench.tracer.begin([("traceparent", PARENT[1][:-1] + "0")]) is None
    assert bench.tracer.begin([("traceparent", "whatever")]) is None
    bench.tracer.end([(None, REQUEST, b"")])
    bench.tracer.rendered([None], 0.0)
    assert len(bench.waiting) == 0
    # What the caller wants is traced at any rate.
    assert bench.tracer.begin([PARENT]) is not None


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_a_rate_is_a_share_of_the_ids_as_for_the_sampler(rate: float) -> None:
    ids = [(0xABC << 64) + (step << 64) // 10 for step in range(10)] + [2**128 - 1]
    sampler = TraceIdRatioBased(rate)
    drawn = 0
    for trace_id in ids:
        bench = Bench(rate)
        bench.next_id = trace_id
        is_drawn = bench.tracer.begin([("tracestate", "a=b")]) is not None
        decision = sampler.should_sample(None, trace_id, "").decision
        assert is_drawn == decision.is_sampled()
        drawn += is_drawn
    assert drawn == round(rate * 10) + (rate == 1.0)


def test_what_finds_no_room_is_counted_once() -> None:
    bench = Bench(records_max=3)
    calls = [(bench.begun(), REQUEST, ErrorStatus(2, "no")) for _ in range(5)]
    bench.tracer.end(calls)
    bench.tracer.rendered([calls[0][0]], 0.0)
    assert len(bench.waiting) == 3
    assert (bench.waiting.take_lost(), bench.waiting.take_lost()) == (2, 0)
    assert len(bench.waiting.take(2)) == 2
    bench.tracer.end(calls[:2])
    assert len(bench.waiting.take(10)) == 3
    assert bench.waiting.take(10) == []


def test_what_waits_is_bounded_in_bytes_whatever_it_consists_of() -> None:
    long = "x" * 1_000
    begun = BegunCall(1, 2, (("tracestate", long),), 0.0)
    for record in (
        DecidedCall(begun, b"", 0, b"", None, 0.0),
        DecidedCall(BegunCall(1, 2, (), 0.0), b"x" * 1_000, 1_000, b"", None, 0.0),
        DecidedCall(BegunCall(1, 2, (), 0.0), b"", 0, b"x" * 1_000, None, 0.0),
        DecidedCall(BegunCall(1, 2, (), 0.0), b"", 0, ErrorStatus(2, long), None, 0.0),
        RenderedReply(begun, 0.0, 0.0),
    ):
        waiting = WaitingRecords(records_max=10, bytes_max=2 * (1_020 + RECORD_BYTES))
        waiting.add([record] * 4)
        assert len(waiting) == 2
        assert waiting.take_lost() == (2 if isinstance(record, DecidedCall) else 0)
        # What was taken makes room again, and no more of it than it took.
        assert len(waiting.take(1)) == 1
        waiting.add([record] * 4)
        assert len(waiting) == 2


class SlowCounters:
    """A store that takes a second for each question."""

    partitions = 2

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.answer: PartitionCounts = [[1]]

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        self._clock.advance(1)
        return {0: self.answer}

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        self._clock.advance(1)
        return {0: self.answer}


@pytest.mark.parametrize("questions", [1, 2])
def test_a_store_is_timed_over_all_questions_of_a_batch(questions: int) -> None:
    clock = ManualClock(100)
    store = TimedStore(SlowCounters(clock), clock.monotonic_s)
    assert store.partitions == 2
    assert store.take_counted() is None
    started_s = clock.monotonic_s()
    for ask in [store.hit, store.hit_conditionally][:questions]:
        assert ask({}, 0) == {0: [[1]]}  # type: ignore[operator]
    assert store.take_counted() == Counted(started_s, started_s + questions)
    assert store.take_counted() is None


def test_a_store_that_fails_says_why() -> None:
    clock = ManualClock(100)
    counters = SlowCounters(clock)
    store = TimedStore(counters, clock.monotonic_s)
    counters.answer = Unreachable("nobody counts")
    store.hit({}, 0)
    counters.answer = [[1]]
    store.hit({}, 0)
    counted = store.take_counted()
    assert counted is not None
    assert counted.failure == "nobody counts"
