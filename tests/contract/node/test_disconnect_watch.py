"""Serve reads in a header of its own, which we add, that it need not watch for hang-ups."""

import asyncio
from pathlib import Path
from typing import Any

from ray.serve._private.http_util import (
    call_function_from_import_path,
    parse_disconnect_disabled_header,
    validate_http_proxy_callback_return,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from tollgate.serve.node.environment import node_environment
from tollgate.serve.settings import Settings

VARIABLE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"


def headers_behind(kind: str, folder: str) -> dict[bytes, bytes]:
    """The headers of a call as Serve sees them behind what a node's environment names."""
    settings = Settings.from_environment({"TOLLGATE_DATA": folder})
    named = call_function_from_import_path(node_environment(settings)[VARIABLE])
    seen: list[Any] = []

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(scope["headers"])

    async def nothing(*_: object) -> Any:
        raise AssertionError("neither reads nor writes")

    app: ASGIApp = serve
    for each in validate_http_proxy_callback_return(named):
        app = each.cls(app, *each.args, **each.kwargs)
    scope = {"type": kind, "path": "/json", "headers": [(b"accept", b"*/*")]}
    asyncio.run(app(scope, nothing, nothing))
    return dict(seen)


def test_serve_does_not_watch_a_call_for_a_hang_up(tmp_path: Path) -> None:
    headers = headers_behind("http", str(tmp_path))
    assert parse_disconnect_disabled_header(headers)
    assert headers[b"accept"] == b"*/*"


def test_a_web_socket_is_left_alone(tmp_path: Path) -> None:
    assert not parse_disconnect_disabled_header(headers_behind("websocket", str(tmp_path)))
