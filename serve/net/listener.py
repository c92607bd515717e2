"""Runs an ASGI app on an address, inside an event loop that is already running."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import uvicorn
from starlette.types import ASGIApp

GRACE_S = 5
"""The longest wait of a stop for the answers that are under way."""


class Listener:
    """An app that listens on `host` and `port` until it is stopped."""

    def __init__(
        self, server: "_Server", serving: asyncio.Task[None], host: str, port: int
    ) -> None:
        self.host = host
        self.port = port
        self._server = server
        self._serving = serving

    async def stop(self) -> None:
        """Take no more calls, let those under way finish for `GRACE_S`, and free the port."""
        self._server.should_exit = True
        await self._serving

    async def __aenter__(self) -> "Listener":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


async def listen(
    app: ASGIApp, host: str, port: int, *, what: str, is_shared: bool = False
) -> Listener:
    """Listen with `app`; returns when calls are answered.

    An empty `host` is every address, port 0 a free port: the listener knows which. `what` names the
    port in errors, such as "debug". `is_shared`: other processes of ours listen there as well, and
    each connection goes to one of them. Raises OSError with one line that says what, where and why.
    """
    listening = _bound_socket(host, port, what, is_shared=is_shared)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        # Its other parser of HTTP reads heads without a bound; this one up to 64 KiB.
        http="h11",
        ws="none",
        # What a caller says about its address is not believed.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listening]), name=f"{what} port")
    await server.is_ready.wait()
    bound_host, bound_port = listening.getsockname()[:2]
    return Listener(server, serving, bound_host, bound_port)


class _Server(uvicorn.Server):
    """uvicorn as a guest: it leaves the process's signals alone and says when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_ready.set()


def _bound_socket(host: str, port: int, what: str, *, is_shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, reuse_port=is_shared)
    except OSError as error:
        # Python repeats the address behind the reason.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise OSError(
            error.errno,
            f"cannot listen for {what} on {host or '0.0.0.0'}:{port}: {reason}; "
            f"free the address or set another",
        ) from error
