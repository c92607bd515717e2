"""The front on pygrpc_native: HTTP/2 in Rust, calls handed to Python in batches.

    recv_batch -> decide_batch -> respond, in each of `pumps` threads

While one pump decides, calls queue in Rust and the next pump takes them all: batches grow with the
load, up to what takes a few milliseconds (`batch_size`). Health and reflection go to a grpcio
server behind it, over a private unix socket.

A call whose deadline has passed, or whose caller has gone, is neither decided nor counted; of too
many that wait, the oldest are refused (see `call_queue`).

The library has no graceful end: `close` says GOAWAY and cuts whatever is in flight. So a drain
reports unhealthy and goes on answering until no call came for QUIET_S, or the grace is over; then
new calls are refused as UNAVAILABLE until the last decision is answered, and only then it closes.
Where others go on at its port, it sends its callers there first (`hand_over`).
It has no bound on the size of a message either: a request is in memory, decompressed, before anyone
can refuse it. So it is for callers one trusts; the grpcio front bounds what it reads.
"""

import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from pygrpc_native import NativeGrpcFront

from tollgate.actors.kernel.clock import thread_cpu_s
from tollgate.serve.ratelimit.codec.messages import METHOD_NAME, METHOD_PATH
from tollgate.serve.ratelimit.fronts.aio_server import AioServer, cannot_listen
from tollgate.serve.ratelimit.fronts.batch_size import BatchSize
from tollgate.serve.ratelimit.fronts.call_queue import QUEUE_MAX, CallQueue, QueuedCall
from tollgate.serve.ratelimit.fronts.front import (
    BATCH_MAX,
    CALLS_EXPIRED,
    CALLS_SHED,
    OVERLOADED,
    STREAMS_PER_CONNECTION_MAX,
    CallTracer,
    ErrorStatus,
    ListenAddress,
    Service,
    StatusCode,
    WireReply,
    host_port,
    unfailing,
)
from tollgate.serve.ratelimit.fronts.hand_over import AnswerGate, hand_over
from tollgate.serve.ratelimit.fronts.health_service import HealthService, ReflectionService
from tollgate.serve.ratelimit.fronts.inner_socket import SOCKET_NAME, inner_socket_folder
from tollgate.serve.ratelimit.health import Component

QUIET_S = 1.0  # callers that ask for health once a second have heard by then
QUIET_CHECK_S = 0.025
# `close` wakes only one of the threads that wait for calls, so none may wait for ever.
RECEIVE_TIMEOUT_MS = 100
# Once the front is closed nobody is left to wait for, but what a decision holds up.
INNER_GRACE_S = 1.0
PUMP_END_S = 1.0
# The library does not tell when it has written the answers that it was given.
WRITTEN_WITHIN_S = 0.1

_OVERLOADED = ErrorStatus(StatusCode.RESOURCE_EXHAUSTED, OVERLOADED)
_SHUTTING_DOWN = ErrorStatus(StatusCode.UNAVAILABLE, "the service is shutting down")

if TYPE_CHECKING:
    from pygrpc_native._native import DetailedEvent


@dataclass(frozen=True, slots=True)
class NativeTuning:
    """Sizes of this front; the defaults were the best of those measured on two cores.

    `pumps` threads decide batches, each with a queue of `queue_max` calls; `io_threads` speak
    HTTP/2. `socket_dir` is where the private folder of its inner socket is made.
    """

    socket_dir: Path
    pumps: int = 2
    io_threads: int = 1
    queue_max: int = QUEUE_MAX


class NativeFront:
    """A Front (see there) with up to `tuning.pumps` batches in flight."""

    def __init__(self, listen: ListenAddress, service: Service, tuning: NativeTuning) -> None:
        self._listen = listen
        self._service = service
        self._tuning = tuning
        self._address = ""
        self._gate = AnswerGate()
        self._pumps: list[_Pump] = []
        self._to_close = ExitStack()

    @property
    def address(self) -> str:
        return self._address

    def start(self) -> None:
        with ExitStack() as to_close:
            inner_dir = inner_socket_folder(self._tuning.socket_dir)
            to_close.callback(shutil.rmtree, inner_dir)
            inner_socket = str(inner_dir / SOCKET_NAME)
            inner = AioServer((HealthService(self._service), ReflectionService()))
            inner.start(ListenAddress(unix_socket=inner_socket))
            to_close.callback(inner.stop, INNER_GRACE_S)
            front = _listening(self._listen, self._tuning)
            to_close.callback(front.close)
            front.set_fallback(inner_socket)
            front.start()
            self._to_close = to_close.pop_all()
        service, queue_max = self._service, self._tuning.queue_max
        self._pumps = [
            _Pump(front, service, self._gate, queue_max)
            if service.tracer is None
            else _TracedPump(front, service, self._gate, queue_max, service.tracer)
            for _ in range(self._tuning.pumps)
        ]
        self._address = host_port(self._listen.host, front.bound_port)

    @property
    def has_ended_threads(self) -> bool:
        return not all(pump.is_alive() for pump in self._pumps)

    def drain(self, grace_s: float, *, hands_over: bool = False) -> None:
        if hands_over and self._pumps:
            grace_s = hand_over(self._address, grace_s, self._service.clock, self._gate)
        else:
            self._service.health.set(Component.SIGTERM, is_healthy=False)
        self._wait_until_quiet(grace_s)
        self._end_decisions()
        self._to_close.close()
        for pump in self._pumps:
            pump.join(PUMP_END_S)
        self._pumps = []

    def _wait_until_quiet(self, grace_s: float) -> None:
        clock = self._service.clock
        quiet_since_s = clock.monotonic_s()
        deadline_s = quiet_since_s + grace_s
        taken = self._calls_taken()
        while (now_s := clock.monotonic_s()) < deadline_s:
            taken_before, taken = taken, self._calls_taken()
            if taken != taken_before or any(pump.is_deciding for pump in self._pumps):
                quiet_since_s = now_s
            elif now_s - quiet_since_s >= QUIET_S:
                return
            time.sleep(QUIET_CHECK_S)

    def _end_decisions(self) -> None:
        """Refuses new calls until those that are being decided have their answers."""
        clock = self._service.clock
        for pump in self._pumps:
            pump.is_refusing = True
        give_up_s = clock.monotonic_s() + PUMP_END_S
        while any(p.is_deciding for p in self._pumps) and clock.monotonic_s() < give_up_s:
            time.sleep(QUIET_CHECK_S)
        time.sleep(WRITTEN_WITHIN_S)

    def _calls_taken(self) -> int:
        return sum(pump.calls_taken for pump in self._pumps)


def _listening(listen: ListenAddress, tuning: NativeTuning) -> NativeGrpcFront:
    try:
        return NativeGrpcFront(
            listen.target,
            [(METHOD_PATH, False)],
            io_threads=tuning.io_threads,
            call_details=True,
            max_concurrent_streams=STREAMS_PER_CONNECTION_MAX,
            reuse_port=listen.is_port_shared,
        )
    except OSError:
        raise cannot_listen(listen) from None


class _Pump(Thread):
    """One thread's loop: take what is queued, decide, answer; until the front is closed."""

    def __init__(
        self, front: NativeGrpcFront, service: Service, gate: AnswerGate, queue_max: int
    ) -> None:
        super().__init__(name="grpc-pump", daemon=True)
        self._front = front
        self._service = service
        self._decide_batch = gate.held(unfailing(service))
        self._monotonic_s = service.clock.monotonic_s
        self._queue = CallQueue(queue_max)
        self._size = BatchSize()
        self.is_deciding = False
        self.is_refusing = False
        self.calls_taken = 0
        self.start()

    def run(self) -> None:
        while self._receive():
            calls, expired = self._queue.take(self._monotonic_s(), self._size.calls)
            if expired:
                self._service.count(CALLS_EXPIRED, expired)
            if calls and self.is_refusing:
                self._fail(calls, _SHUTTING_DOWN)
            elif calls:
                self.is_deciding = True
                begun_cpu_s = thread_cpu_s()
                self._decide(calls)
                self._size.note(len(calls), thread_cpu_s() - begun_cpu_s)
                self.is_deciding = False

    def _receive(self) -> bool:
        """Queues what has come; waits only with nothing to do. False: the front is closed."""
        timeout_ms = 0 if len(self._queue) else RECEIVE_TIMEOUT_MS
        while (events := self._front.recv_batch_details(BATCH_MAX, timeout_ms)) is not None:
            if events:
                self._enqueue(events)
            if len(events) < BATCH_MAX:
                return True
            # There is more: the queue has to know how long it is, to shed what came first.
            timeout_ms = 0
        return False

    def _enqueue(self, events: "list[DetailedEvent]") -> None:
        calls, gone = self._sorted(events)
        self.calls_taken += len(calls)
        shed = self._queue.add(calls)
        if shed:
            self._service.count(CALLS_SHED, len(shed))
            self._fail(shed, _OVERLOADED)
        if gone and (expired := self._queue.forget(gone)):
            self._service.count(CALLS_EXPIRED, expired)

    def _sorted(self, events: "list[DetailedEvent]") -> tuple[list[QueuedCall], set[int]]:
        """The calls that have come, and those whose callers have gone."""
        now_s = self._monotonic_s()
        calls: list[QueuedCall] = []
        gone: set[int] = set()
        for _, call_id, _, payload, _, details in events:
            if payload is None:
                gone.add(call_id)
                continue
            left_s = None if details is None else details[2]
            calls.append(QueuedCall(call_id, payload, inf if left_s is None else now_s + left_s))
        return calls, gone

    def _decide(self, calls: list[QueuedCall]) -> list[WireReply]:
        started_s = self._monotonic_s()
        respond = self._front.respond
        replies = self._decide_batch([call.payload for call in calls])
        # A caller that gave up meanwhile makes both of these say False, and nothing else.
        for call, reply in zip(calls, replies, strict=True):
            if isinstance(reply, ErrorStatus):
                self._front.fail(call.id, reply.code, reply.message)
            else:
                respond(call.id, reply)
        self._service.observe(METHOD_NAME, len(calls), self._monotonic_s() - started_s)
        return replies

    def _fail(self, calls: list[QueuedCall], status: ErrorStatus) -> None:
        for call in calls:
            self._front.fail(call.id, status.code, status.message)


class _TracedPump(_Pump):
    """A pump that tells a tracer of its calls."""

    def __init__(
        self,
        front: NativeGrpcFront,
        service: Service,
        gate: AnswerGate,
        queue_max: int,
        tracer: CallTracer,
    ) -> None:
        self._tracer = tracer
        super().__init__(front, service, gate, queue_max)

    def _sorted(self, events: "list[DetailedEvent]") -> tuple[list[QueuedCall], set[int]]:
        calls, gone = super()._sorted(events)
        begin = self._tracer.begin
        metadata = {event[1]: event[5][0] for event in events if event[5] is not None}
        return [QueuedCall(*call[:3], begin(metadata.get(call.id, ()))) for call in calls], gone

    def _decide(self, calls: list[QueuedCall]) -> list[WireReply]:
        replies = super()._decide(calls)
        self._tracer.end(
            (call.begun, call.payload, reply) for call, reply in zip(calls, replies, strict=True)
        )
        return replies
