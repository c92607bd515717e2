"""What the tests of the gRPC doors put on both sides of them: decisions, and callers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.ratelimit.codec.messages import METHOD_PATH
from tollgate.serve.ratelimit.fronts import native
from tollgate.serve.ratelimit.fronts.choice import make_front
from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress, Service, WireReply
from tollgate.serve.ratelimit.fronts.native import NativeTuning
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.settings.choices import GrpcFront

# How long anything may take before a test fails; nothing waits that long when all is well.
PATIENCE_S = 60.0
GRACE_S = 20.0


def echo(payloads: Sequence[bytes]) -> list[WireReply]:
    return [b"re:" + payload for payload in payloads]


@dataclass
class Decisions:
    """A `decide_batch` that can be held, and remembers its batches."""

    answer: Callable[[Sequence[bytes]], list[WireReply]] = echo
    batches: list[list[bytes]] = field(default_factory=list)
    is_open: threading.Event = field(default_factory=threading.Event)
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        self.is_open.set()

    def __call__(self, payloads: Sequence[bytes]) -> list[WireReply]:
        self.batches.append(list(payloads))
        self.entered.release()
        assert self.is_open.wait(PATIENCE_S)
        return self.answer(payloads)

    def hold(self) -> None:
        """Batches that come now are waited for, and stay until they are released."""
        self.is_open.clear()
        while self.entered.acquire(blocking=False):
            pass

    def release(self) -> None:
        self.is_open.set()

    def wait_for_a_batch(self) -> None:
        assert self.entered.acquire(timeout=PATIENCE_S)


@dataclass
class World:
    """A front with everything around it that a test looks at."""

    decisions: Decisions = field(default_factory=Decisions)
    health: Health = field(default_factory=Health)
    observed: list[tuple[str, int, float]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    def front(
        self, choice: GrpcFront, socket_dir: Path, listen: ListenAddress | None = None
    ) -> Front:
        tuning = NativeTuning(socket_dir)
        return make_front(choice, listen or ListenAddress("127.0.0.1", 0), self.service(), tuning)

    def service(self) -> Service:
        return Service(
            self.decisions,
            self.health,
            SystemClock(),
            lambda *observation: self.observed.append(observation),
            self.errors.append,
            lambda name, by: self.counted.update({name: by}),
        )

    def calls_observed(self, method: str) -> int:
        return sum(calls for name, calls, _ in self.observed if name == method)


def end(front: Front) -> None:
    """Ends a front that nobody expects an answer of: it leaves no time to write any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "WRITTEN_WITHIN_S", 0.0)
        front.drain(0)


class Caller:
    """A real gRPC client on one connection of its own."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.decide = channel.unary_unary(METHOD_PATH)
        form = (
            health_pb2.HealthCheckRequest.SerializeToString,
            health_pb2.HealthCheckResponse.FromString,
        )
        self._check = channel.unary_unary("/grpc.health.v1.Health/Check", *form)
        self._watch = channel.unary_stream("/grpc.health.v1.Health/Watch", *form)

    def check(self, service: str) -> int:
        request = health_pb2.HealthCheckRequest(service=service)
        return int(self._check(request, timeout=PATIENCE_S).status)

    def watch(self, service: str) -> Any:
        return self._watch(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE_S)

    def start(self, payloads: Sequence[bytes]) -> list[Any]:
        """Starts one call per payload; returns once the door has them all.

        A door takes the calls of one connection, once there is one, in order: it has these when it
        answers a later one.
        """
        self.check("")
        calls = [self.decide.future(payload, timeout=PATIENCE_S) for payload in payloads]
        self.check("")
        return calls


@contextmanager
def caller(address: str, credentials: grpc.ChannelCredentials | None = None) -> Iterator[Caller]:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
    channel = (
        grpc.insecure_channel(address, options)
        if credentials is None
        else grpc.secure_channel(address, credentials, options)
    )
    with channel:
        yield Caller(channel)
