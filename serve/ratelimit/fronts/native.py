"""The front on pygrpc_native: HTTP/2 in Rust, calls handed to Python in batches.

    recv_batch -> decide_batch -> respond, in each of `pumps` threads

While one pump decides, calls queue in Rust and the next pump takes them all: batches grow with the
load. Health and reflection go to a grpcio server behind it, over a private unix socket.

The library has no graceful end: `close` fails whatever is in flight. So a drain reports unhealthy,
keeps answering until no call came for QUIET_S, or the grace is over, and only then closes. It has
no bound on the size of a message either: a request is in memory, decompressed, before anyone can
refuse it. So it is for callers one trusts; the grpcio front bounds what it reads.
"""

import shutil
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from pygrpc_native import NativeGrpcFront

from tollgate.serve.ratelimit.codec.messages import METHOD_NAME, METHOD_PATH
from tollgate.serve.ratelimit.fronts.aio_server import AioServer, cannot_listen
from tollgate.serve.ratelimit.fronts.front import (
    BATCH_MAX,
    STREAMS_PER_CONNECTION_MAX,
    ErrorStatus,
    ListenAddress,
    Service,
    host_port,
    unfailing,
)
from tollgate.serve.ratelimit.fronts.health_service import HealthService, ReflectionService
from tollgate.serve.ratelimit.health import Component

QUIET_S = 1.0  # callers that ask for health once a second have heard by then
QUIET_CHECK_S = 0.025
# `close` wakes only one of the threads that wait for calls, so none may wait for ever.
RECEIVE_TIMEOUT_MS = 100
# Once the front is closed nobody is left to wait for, but what a decision holds up.
INNER_GRACE_S = 1.0
PUMP_END_S = 1.0


@dataclass(frozen=True, slots=True)
class NativeTuning:
    """Sizes of this front; the defaults were the best of those measured on two cores.

    `pumps` threads decide batches, `io_threads` speak HTTP/2. `socket_dir` is where the private
    folder of its inner socket is made.
    """

    socket_dir: Path
    pumps: int = 2
    io_threads: int = 1


class NativeFront:
    """A Front (see there) with up to `tuning.pumps` batches in flight."""

    def __init__(self, listen: ListenAddress, service: Service, tuning: NativeTuning) -> None:
        self._listen = listen
        self._service = service
        self._tuning = tuning
        self._address = ""
        self._pumps: list[_Pump] = []
        self._to_close = ExitStack()

    @property
    def address(self) -> str:
        return self._address

    def start(self) -> None:
        with ExitStack() as to_close:
            # mkdtemp makes it for this user alone (0700).
            inner_dir = Path(tempfile.mkdtemp(prefix="grpc-", dir=self._tuning.socket_dir))
            to_close.callback(shutil.rmtree, inner_dir)
            inner_socket = str(inner_dir / "inner.sock")
            inner = AioServer((HealthService(self._service), ReflectionService()))
            inner.start(ListenAddress(unix_socket=inner_socket))
            to_close.callback(inner.stop, INNER_GRACE_S)
            front = _listening(self._listen, self._tuning)
            to_close.callback(front.close)
            front.set_fallback(inner_socket)
            front.start()
            self._to_close = to_close.pop_all()
        self._pumps = [_Pump(front, self._service) for _ in range(self._tuning.pumps)]
        self._address = host_port(self._listen.host, front.bound_port)

    def drain(self, grace_s: float) -> None:
        self._service.health.set(Component.SIGTERM, is_healthy=False)
        self._wait_until_quiet(grace_s)
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

    def _calls_taken(self) -> int:
        return sum(pump.calls_taken for pump in self._pumps)


def _listening(listen: ListenAddress, tuning: NativeTuning) -> NativeGrpcFront:
    try:
        return NativeGrpcFront(
            listen.target,
            [(METHOD_PATH, False)],
            io_threads=tuning.io_threads,
            max_concurrent_streams=STREAMS_PER_CONNECTION_MAX,
            reuse_port=listen.is_port_shared,
        )
    except OSError:
        raise cannot_listen(listen) from None


class _Pump(Thread):
    """One thread's loop: take what is queued, decide, answer; until the front is closed."""

    def __init__(self, front: NativeGrpcFront, service: Service) -> None:
        super().__init__(name="grpc-pump", daemon=True)
        self._front = front
        self._decide_batch = unfailing(service)
        self._clock = service.clock
        self._observe = service.observe
        self.is_deciding = False
        self.calls_taken = 0
        self.start()

    def run(self) -> None:
        front, monotonic_s = self._front, self._clock.monotonic_s
        # Every event is a call: cancellations are only reported for streams, and there are none.
        while (events := front.recv_batch(BATCH_MAX, RECEIVE_TIMEOUT_MS)) is not None:
            if not events:
                continue
            self.is_deciding = True
            self.calls_taken += len(events)
            started_s = monotonic_s()
            payloads = [payload for _, _, _, payload, _ in events if payload is not None]
            answers = self._decide_batch(payloads)
            # A caller that gave up meanwhile makes both of these say False, and nothing else.
            for (_, call_id, _, _, _), answer in zip(events, answers, strict=True):
                if isinstance(answer, ErrorStatus):
                    front.fail(call_id, answer.code, answer.message)
                else:
                    front.respond(call_id, answer)
            self._observe(METHOD_NAME, len(events), monotonic_s() - started_s)
            self.is_deciding = False
