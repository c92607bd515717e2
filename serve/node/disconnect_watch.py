"""Serve's watch for callers who hang up, switched off by the header that Serve has for it.

For every call Serve makes two tasks, one that serves and one that waits for the caller to hang up,
and ends the first when the second does. That is a fifth of what a short call costs, and a payment
that has been ordered is better finished. What reads a body sees a hang-up by itself, and reads it
from the server, which stops taking it in when nobody does: Serve's watch has a queue without end.
"""

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

UNWATCHED = (b"x-request-disconnect-disabled", b"?1")


class Unwatched:
    """Calls as they are, with that header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], UNWATCHED]
        await self._app(scope, receive, send)


def middlewares() -> list[Middleware]:
    """What Serve puts before every replica (RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH)."""
    return [Middleware(Unwatched)]
