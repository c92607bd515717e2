"""Who calls Tollgate in these tests: gRPC clients with Envoy's own message classes, and traffic."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

import grpc
import httpx

from tests.support.ratelimit.engine import entries
from tests.support.ratelimit.service_stub import RateLimitServiceStub
from tests.support.waiting import until
from tollgate.serve.ratelimit.codec.messages import RequestMessage

# Nobody waits this long when all is well: a call that ends so has hung.
CALL_TIMEOUT_S = 20.0
CALLS_MAX = 200_000


def question(domain: str, *descriptors: str, hits: int = 0) -> Any:
    """A RateLimitRequest; a descriptor is written `key=value,key=value`."""
    request = RequestMessage(domain=domain, hits_addend=hits)
    for descriptor in descriptors:
        added = request.descriptors.add()
        for key, value in entries(descriptor):
            added.entries.add(key=key, value=value)
    return request


def own_connection(
    address: str, credentials: grpc.ChannelCredentials | None = None
) -> grpc.Channel:
    """A channel that shares its connection with no other."""
    options: list[tuple[str, Any]] = [("grpc.use_local_subchannel_pool", 1)]
    if address.startswith("unix:"):
        # The host that certificates of the other side are checked for.
        options.append(("grpc.default_authority", "localhost"))
    if credentials is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, credentials, options)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has ended. `limit` and `remaining` are of the only descriptor."""

    about: str
    started_s: float
    ended_s: float
    error: str = ""
    code: int = 0
    limit: int = 0
    remaining: int = 0

    @property
    def took_s(self) -> float:
        return self.ended_s - self.started_s


class Traffic:
    """Calls one after the other in several threads, until stopped. Each thread has a subject and a
    connection of its own, and goes on after a call that failed."""

    def __init__(self) -> None:
        self._is_stopped = Event()
        self._calls: list[Call] = []

    @property
    def calls(self) -> list[Call]:
        """What has ended so far."""
        return list(self._calls)

    def stop(self) -> None:
        """Send no new calls."""
        self._is_stopped.set()

    def next_call(self, about: Callable[[Call], bool], what: str) -> Call:
        """The first call that begins from now on and of which `about` is true."""
        now_s = time.monotonic()
        seen = len(self._calls)

        def found() -> Call | None:
            nonlocal seen
            new = self._calls[seen:]
            seen += len(new)
            return next((c for c in new if c.started_s >= now_s and about(c)), None)

        call = until(found, what)
        assert call is not None
        return call

    def run(self, subject: str, ask: Callable[[], Call]) -> None:
        """The loop of one thread."""
        while not self._is_stopped.is_set():
            self._calls.append(ask())
            assert len(self._calls) < CALLS_MAX, f"more than {CALLS_MAX} calls: {subject}"


@contextmanager
def running(asks: dict[str, Callable[[], Call]]) -> Iterator[Traffic]:
    """Traffic of one thread per item; inside, it flows."""
    traffic = Traffic()
    with ThreadPoolExecutor(len(asks)) as threads:
        loops = [threads.submit(traffic.run, subject, ask) for subject, ask in asks.items()]
        try:
            yield traffic
        finally:
            traffic.stop()
    for loop in loops:
        loop.result()


@contextmanager
def grpc_traffic(
    address: str,
    domain: str,
    descriptors: Sequence[str],
    credentials: grpc.ChannelCredentials | None = None,
) -> Iterator[Traffic]:
    """One thread per descriptor, over gRPC; what a call is about is its descriptor."""
    channels = {descriptor: own_connection(address, credentials) for descriptor in descriptors}
    try:
        with running({d: _grpc_ask(c, domain, d) for d, c in channels.items()}) as traffic:
            yield traffic
    finally:
        for channel in channels.values():
            channel.close()


def _grpc_ask(channel: grpc.Channel, domain: str, descriptor: str) -> Callable[[], Call]:
    stub = RateLimitServiceStub(channel)
    request = question(domain, descriptor)

    def ask() -> Call:
        started_s = time.monotonic()
        try:
            answer = stub.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)
        except grpc.RpcError as error:
            text = f"{error.code().name}: {error.details()}"
            return Call(descriptor, started_s, time.monotonic(), error=text)
        status = answer.statuses[0]
        return Call(
            descriptor,
            started_s,
            time.monotonic(),
            code=answer.overall_code,
            limit=status.current_limit.requests_per_unit,
            remaining=status.limit_remaining,
        )

    return ask


def http_ask(about: str, client: httpx.Client, request: httpx.Request) -> Callable[[], Call]:
    """An asker over HTTP: the code of its calls is the HTTP status."""

    def ask() -> Call:
        started_s = time.monotonic()
        try:
            answer = client.send(request)
        except httpx.TransportError as error:
            return Call(
                about, started_s, time.monotonic(), error=f"{type(error).__name__}: {error}"
            )
        remaining = int(answer.headers.get("x-ratelimit-remaining", -1))
        return Call(
            about, started_s, time.monotonic(), code=answer.status_code, remaining=remaining
        )

    return ask
