"""A grpcio server in an event loop and thread of its own, for callers that have no loop."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Coroutine, Sequence
from contextlib import ExitStack
from threading import Thread
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio
import uvloop

from tollgate.serve.ratelimit.fronts.front import (
    STREAMS_PER_CONNECTION_MAX,
    ListenAddress,
    host_port,
)

T = TypeVar("T")

# gRPC's default, which the reference leaves alone (B15). It holds for what is decompressed, too.
MESSAGE_BYTES_MAX = 4 * 1024 * 1024


class AioService(Protocol):
    """A service of a server: added before it starts, and notified when it drains."""

    def install(self, server: grpc.aio.Server) -> None:
        """Registers the handlers. Runs in the loop."""

    def drain(self) -> None:
        """Ends the calls that would never end by themselves. Runs in the loop."""


class AioServer:
    """`start` binds and serves, once; `stop` lets calls finish. From any thread but its own.

    `options` are grpcio's channel arguments.
    """

    def __init__(
        self,
        services: Sequence[AioService],
        options: Sequence[tuple[str, Any]] = (),
        interceptors: "Sequence[grpc.aio.ServerInterceptor[Any, Any]]" = (),
    ) -> None:
        self._services = services
        self._options = options
        self._interceptors = interceptors
        self._to_close = ExitStack()
        self._server: grpc.aio.Server | None = None

    def start(
        self, listen: ListenAddress, credentials: grpc.ServerCredentials | None = None
    ) -> str:
        """Listens there, in plain text without credentials; returns the bound address.

        OSError when it cannot be bound.
        """
        with ExitStack() as to_close:
            self._loop = uvloop.new_event_loop()
            to_close.callback(self._loop.close)
            thread = Thread(target=self._loop.run_forever, name="grpcio-front", daemon=True)
            self._thread = thread
            thread.start()
            to_close.callback(thread.join)
            to_close.callback(self._loop.call_soon_threadsafe, self._loop.stop)
            address = self._run(self._start(listen, credentials))
            self._to_close = to_close.pop_all()
        return address

    @property
    def is_running(self) -> bool:
        """False once the thread of its loop has ended."""
        return self._thread.is_alive()

    def stop(self, grace_s: float) -> None:
        """No new calls; those in flight complete within the grace, then everything is closed."""
        if self._server is not None:
            self._run(self._stop(self._server, grace_s))
            self._server = None
        self._to_close.close()

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result()

    async def _start(
        self, listen: ListenAddress, credentials: grpc.ServerCredentials | None
    ) -> str:
        server = grpc.aio.server(
            interceptors=tuple(self._interceptors),
            options=(
                ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                ("grpc.max_concurrent_streams", STREAMS_PER_CONNECTION_MAX),
                ("grpc.so_reuseport", int(listen.is_port_shared)),
                *self._options,
            ),
        )
        address = _bind(server, listen, credentials)
        for service in self._services:
            service.install(server)
        await server.start()
        self._server = server
        return address

    async def _stop(self, server: grpc.aio.Server, grace_s: float) -> None:
        for service in self._services:
            service.drain()
        await server.stop(grace_s)


def _bind(
    server: grpc.aio.Server, listen: ListenAddress, credentials: grpc.ServerCredentials | None
) -> str:
    try:
        if credentials is None:
            port = server.add_insecure_port(listen.target)
        else:
            port = server.add_secure_port(listen.target, credentials)
    except RuntimeError:
        raise cannot_listen(listen) from None
    return listen.target if listen.unix_socket else host_port(listen.host, port)


def cannot_listen(listen: ListenAddress) -> OSError:
    """The error for an address that a gRPC server failed to bind, with the system's reason.

    gRPC libraries do not say why, or each in its own way.
    """
    try:
        _bind_once(listen)
        code, reason = None, "gRPC refused the address, though the system would have taken it"
    except OSError as error:
        code, reason = error.errno, error.strerror or str(error)
    return OSError(code, f"gRPC cannot listen on {listen.target}: {reason}")


def _bind_once(listen: ListenAddress) -> None:
    if listen.unix_socket:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.bind(listen.unix_socket)
        with contextlib.suppress(OSError):
            os.unlink(listen.unix_socket)
        return
    flags = socket.AI_PASSIVE
    addresses = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=flags)
    for family, kind, protocol, _, address in addresses:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
