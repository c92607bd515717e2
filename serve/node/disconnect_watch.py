"""Switches off Serve's watch for callers who disconnect, by the header that Serve has for it.

For every call Serve makes two tasks, one that serves and one that waits for a disconnect, and ends
the first when the second does. That is a fifth of the price of a short call, and a payment that has
been ordered is better finished. Code that reads a body notices a disconnect by itself, with the
server's flow control, while the queue of Serve's watch has no end.
"""

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.serve.node.replica_health import HealthyUntilClosed

DISCONNECTS_UNWATCHED = (b"x-request-disconnect-disabled", b"?1")


class WithoutDisconnectWatch:
    """Hands calls on with that header added."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], DISCONNECTS_UNWATCHED]
        await self._app(scope, receive, send)


def middlewares() -> list[Middleware]:
    """The middleware of every replica (RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH)."""
    return [Middleware(WithoutDisconnectWatch), Middleware(HealthyUntilClosed)]
