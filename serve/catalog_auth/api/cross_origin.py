"""Calls by pages of other origins: which of them a browser lets read the replies (Fetch, CORS).

Most calls tell nothing but what follows from their own body, so that any page may make them. What
acts in the operator's name, by signing with their keys or by fetching from where they are, is for
the origins that they trust. Credentials that a browser keeps (cookies, say) are asked of nobody: a
key is shown in a header, by a page that has it.
"""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

TRUSTED_PATHS = frozenset({"/sign", "/validate/crawl"})
_METHODS = ("GET", "HEAD", "POST")
# Beyond those that every page may send.
_HEADERS = ("Authorization", "Content-Encoding", "Content-Type", "X-API-Key")
# Beyond those that every page may read.
_EXPOSED = ("Allow", "Retry-After", "WWW-Authenticate")
PREFLIGHT_KEPT_FOR_S = 3_600


class CrossOrigin:
    """The application, open to pages of `origins`, and to those of `trusted` for all calls."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...], trusted: tuple[str, ...]) -> None:
        self._reading = _open_to((*origins, *trusted), app)
        self._acting = _open_to(trusted, app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        app = self._acting if path in TRUSTED_PATHS else self._reading
        await app(scope, receive, send)


def _open_to(origins: tuple[str, ...], app: ASGIApp) -> ASGIApp:
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=_METHODS,
        allow_headers=_HEADERS,
        expose_headers=_EXPOSED,
        max_age=PREFLIGHT_KEPT_FOR_S,
    )
