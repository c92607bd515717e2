"""A front is a listening gRPC socket that hands raw requests, in batches, to one function.

    start -> serving -> drain -> closed        each step once, in this order

A front decodes nothing. It adds transport and no meaning: what a request says, and whether it may
pass, is the business of `DecideBatch`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.ratelimit.health import Health

LOG = logging.getLogger(__name__)

BATCH_MAX = 1024
# Calls that one connection may have open: with it, a client that never waits is held back.
STREAMS_PER_CONNECTION_MAX = 1024


OVERLOADED = "too many calls are waiting for a decision, try again later"
# Calls that nobody waited for any more, and calls refused because too many waited.
CALLS_EXPIRED = "ratelimit.front.calls_expired"
CALLS_SHED = "ratelimit.front.calls_shed"


class StatusCode(IntEnum):
    """The gRPC status codes that Tollgate answers with."""

    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    INTERNAL = 13
    UNAVAILABLE = 14


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """Ends the call with an error status. `code`: a gRPC status code other than OK."""

    code: int
    message: str

    def __post_init__(self) -> None:
        assert 1 <= self.code <= 16, "a refusal has a gRPC status code other than OK"


# A serialised RateLimitResponse, or a refusal.
WireReply = bytes | ErrorStatus


class DecideBatch(Protocol):
    """Answers serialised RateLimitRequests: same order, same length. Blocks; thread-safe."""

    def __call__(self, payloads: Sequence[bytes]) -> list[WireReply]: ...


class Observe(Protocol):
    """Told of `calls` calls to `method` that were answered after `seconds` each."""

    def __call__(self, method: str, calls: int, seconds: float) -> None: ...


Metadata = Iterable[tuple[str, str | bytes]]
"""What a call brings beside its request: names in lower case, and values."""


class BegunCall(NamedTuple):
    """A call that is being traced. `headers`: what its caller said about the trace.

    `trace_id`: of a trace that begins here. `arrived_s` is monotonic, as all times of a call.
    """

    trace_id: int
    span_id: int
    headers: tuple[tuple[str, str], ...]
    arrived_s: float


class CallTracer(Protocol):
    """Told of calls as they come and go. It never raises, and waits for nobody."""

    def begin(self, metadata: Metadata) -> BegunCall | None:
        """A call has come; None when it is not traced."""

    def end(self, calls: Iterable[tuple[BegunCall | None, bytes, WireReply]]) -> None:
        """A batch is answered, in the thread that decided it: its requests and replies."""

    def rendered(self, calls: Iterable[BegunCall | None], decided_s: float) -> None:
        """Replies that were there at this time have now been written as JSON."""


@dataclass(frozen=True, slots=True)
class Service:
    """The service behind a front: its decisions, and its observers.

    `on_error` is called once per batch for which `decide_batch` raised; `count` adds to a service
    counter. Without a `tracer` nothing is traced.
    """

    decide_batch: DecideBatch
    health: Health
    clock: Clock
    observe: Observe
    on_error: Callable[[Exception], None]
    count: Callable[[str, int], None]
    tracer: CallTracer | None = None


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Paths of PEM files. With `client_ca_file`, clients must show a certificate that it signed;
    with `client_san` too, one that carries this DNS name."""

    cert_file: str
    key_file: str
    client_ca_file: str = ""
    client_san: str = ""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address of a front, and how it listens there (B15).

    `unix_socket`, a path, takes the place of host and port. `connection_age_s` and its grace:
    None for no end. Fronts of several processes share one port when each says
    `is_port_shared`; the kernel then spreads connections over them.
    """

    host: str = "0.0.0.0"
    port: int = 8081
    unix_socket: str = ""
    tls: ServerTls | None = None
    connection_age_s: float | None = None
    connection_age_grace_s: float | None = None
    is_port_shared: bool = False

    @property
    def target(self) -> str:
        """`host:port`, with an IPv6 host in brackets, or `unix:path`."""
        return f"unix:{self.unix_socket}" if self.unix_socket else host_port(self.host, self.port)


def host_port(host: str, port: int) -> str:
    """The usual text for a host and a port; an IPv6 address gets its brackets."""
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


class Front(Protocol):
    """A listening gRPC server."""

    def start(self) -> None:
        """Binds and serves. OSError when the address cannot be bound, TlsError for bad files."""

    @property
    def address(self) -> str:
        """The bound address, with the real port."""

    @property
    def has_ended_threads(self) -> bool:
        """True when a thread that it needs has ended though it serves."""

    def drain(self, grace_s: float, *, hands_over: bool = False) -> None:
        """Reports unhealthy, lets the calls in flight finish within the grace, then closes.

        `hands_over`: others go on at the shared port. Then it stays healthy, for who asks for
        health means all of them, and moves its connections over to the others.
        """


_REPLY_TYPES = {bytes, ErrorStatus}
_INTERNAL_ERROR = ErrorStatus(StatusCode.INTERNAL, "internal error, see the log of the service")


def unfailing(service: Service) -> DecideBatch:
    """`service.decide_batch`, but never raising: a batch that fails is refused as a whole.

    The service hears of every such batch; the log gets one trace per failure in a row.
    """
    is_failing = False

    def decide_batch(payloads: Sequence[bytes]) -> list[WireReply]:
        nonlocal is_failing
        try:
            answers = service.decide_batch(payloads)
            assert len(answers) == len(payloads), "decide_batch gives one answer per request"
            assert set(map(type, answers)) <= _REPLY_TYPES, "an answer is bytes or Refused"
        except Exception as error:
            if not is_failing:
                LOG.exception("A batch of %d calls could not be decided", len(payloads))
            is_failing = True
            service.on_error(error)
            return [_INTERNAL_ERROR] * len(payloads)
        is_failing = False
        return answers

    return decide_batch
