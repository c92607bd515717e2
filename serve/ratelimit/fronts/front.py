"""A front is a listening gRPC socket that hands raw requests, in batches, to one function.

    start -> serving -> drain -> closed        each step once, in this order

A front decodes nothing. It adds transport and no meaning: what a request says, and whether it may
pass, is the business of `DecideBatch`. Two implementations exist and are chosen here: the native
one is an order of magnitude faster, the grpcio one can do everything a gRPC server can.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.ratelimit.health import Health
from tollgate.serve.settings.choices import GrpcFront

BATCH_MAX = 1024
# Calls that one connection may have open: with it, a client that never waits is held back.
STREAMS_PER_CONNECTION_MAX = 1024


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
class Refused:
    """Ends the call with an error status. `code`: a gRPC status code other than OK."""

    code: int
    message: str

    def __post_init__(self) -> None:
        assert 1 <= self.code <= 16, "a refusal has a gRPC status code other than OK"


# A serialised RateLimitResponse, or a refusal.
Answer = bytes | Refused


class DecideBatch(Protocol):
    """Answers serialised RateLimitRequests: same order, same length. Blocks; thread-safe."""

    def __call__(self, payloads: Sequence[bytes]) -> list[Answer]: ...


class Observe(Protocol):
    """Told of `calls` calls to `method` that were answered after `seconds` each."""

    def __call__(self, method: str, calls: int, seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Service:
    """What a front serves, and whom it tells.

    `on_error` is called once per batch for which `decide_batch` raised.
    """

    decide_batch: DecideBatch
    health: Health
    clock: Clock
    observe: Observe
    on_error: Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Paths of PEM files. With `client_ca_file`, clients must show a certificate that it signed;
    with `client_san` too, one that carries this DNS name."""

    cert_file: str
    key_file: str
    client_ca_file: str = ""
    client_san: str = ""


@dataclass(frozen=True, slots=True)
class Door:
    """Where and how a front listens (B15).

    `unix_socket`, a path, takes the place of host and port. `connection_age_s` and its grace are
    None unless somebody configured them. Fronts of several processes share one port when each says
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
    """A gRPC door."""

    def start(self) -> None:
        """Binds and serves. OSError when the address cannot be bound, TlsError for bad files."""

    @property
    def address(self) -> str:
        """What is bound, with the real port."""

    def drain(self, grace_s: float) -> None:
        """Reports unhealthy, lets the calls in flight finish within the grace, then closes."""


@dataclass(frozen=True, slots=True)
class NativeTuning:
    """Sizes of the native front; the defaults were the best of those measured on two cores.

    `pumps` threads decide batches, `io_threads` speak HTTP/2. `socket_dir` is where the private
    folder of its inner socket is made.
    """

    socket_dir: Path
    pumps: int = 2
    io_threads: int = 1


def choose_front(choice: GrpcFront, door: Door, service: Service, tuning: NativeTuning) -> Front:
    """The front for `door`: with AUTO the native one, unless the door asks for what only the
    grpcio one does. ValueError when NATIVE is asked for and cannot serve the door."""
    needs = _needs_grpcio(door)
    if choice is GrpcFront.NATIVE and needs:
        raise ValueError(
            f"GRPC_FRONT=native cannot serve {' or '.join(needs)}: "
            "remove GRPC_FRONT, or set it to grpcio"
        )
    # Imported here because both implement what this module declares.
    if choice is GrpcFront.GRPCIO or needs:
        from tollgate.serve.ratelimit.fronts.grpcio import GrpcioFront

        return GrpcioFront(door, service)
    from tollgate.serve.ratelimit.fronts.native import NativeFront

    return NativeFront(door, service, tuning)


def _needs_grpcio(door: Door) -> list[str]:
    needs = []
    if door.tls is not None:
        needs.append("TLS")
    if door.unix_socket:
        needs.append("a unix socket")
    if door.connection_age_s is not None or door.connection_age_grace_s is not None:
        needs.append("a maximum connection age")
    return needs
