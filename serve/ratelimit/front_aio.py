"""A grpcio server in an event loop and thread of its own, for callers that have no loop."""

import asyncio
from collections.abc import Coroutine, Sequence
from threading import Thread
from typing import Any, Protocol, TypeVar

import grpc
import grpc.aio
import uvloop

from serve.ratelimit.front import Door, host_port
from serve.ratelimit.front_binding import cannot_listen

T = TypeVar("T")

# The fronts' own answers are small; this bounds what one caller may make us hold. It is gRPC's
# default, and the reference leaves it alone (B15).
MESSAGE_BYTES_MAX = 4 * 1024 * 1024


class AioService(Protocol):
    """What a server offers: added before it starts, and told when it drains."""

    def install(self, server: grpc.aio.Server) -> None:
        """Registers the handlers. Runs in the loop."""

    def drain(self) -> None:
        """Ends the calls that would never end by themselves. Runs in the loop."""


class AioServer:
    """`start` binds and serves; `stop` lets calls finish. Each once, from any thread but its own.

    `credentials` None: plain text. `options` are grpcio's channel arguments.
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
        self._loop = uvloop.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="grpcio-front", daemon=True)
        self._server: grpc.aio.Server | None = None

    def start(self, door: Door, credentials: grpc.ServerCredentials | None = None) -> str:
        """Listens at `door`; returns the bound address. OSError when it cannot be bound."""
        self._thread.start()
        is_serving = False
        try:
            address = self._run(self._start(door, credentials))
            is_serving = True
        finally:
            if not is_serving:
                self._end_loop()
        return address

    def stop(self, grace_s: float) -> None:
        """No new calls; those in flight complete within the grace, then everything is closed."""
        self._run(self._stop(grace_s))
        self._end_loop()

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self, door: Door, credentials: grpc.ServerCredentials | None) -> str:
        server = grpc.aio.server(
            interceptors=tuple(self._interceptors),
            options=(
                ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                ("grpc.so_reuseport", int(door.is_port_shared)),
                *self._options,
            ),
        )
        for service in self._services:
            service.install(server)
        address = _bind(server, door, credentials)
        await server.start()
        self._server = server
        return address

    async def _stop(self, grace_s: float) -> None:
        assert self._server is not None, "only a started server is stopped"
        for service in self._services:
            service.drain()
        await self._server.stop(grace_s)


def _bind(server: grpc.aio.Server, door: Door, credentials: grpc.ServerCredentials | None) -> str:
    try:
        if credentials is None:
            port = server.add_insecure_port(door.target)
        else:
            port = server.add_secure_port(door.target, credentials)
    except RuntimeError:
        raise cannot_listen(door) from None
    return door.target if door.unix_socket else host_port(door.host, port)
