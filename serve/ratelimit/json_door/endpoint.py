"""Answers the JSON door's calls that come by Serve (B16)."""

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tollgate.serve.net.work_threads import WorkThreads
from tollgate.serve.ratelimit.fronts.front import WireReply
from tollgate.serve.ratelimit.json_door.exchange import (
    DECISION_PATH,
    LARGE_BODY_BYTES,
    HttpAnswer,
    JsonExchange,
)


class OverloadedError(Exception):
    """Too many large bodies wait to be read."""


class JsonEndpoint:
    """Answers HTTP requests; `decide` is one call's way into the batches."""

    def __init__(
        self, decide: Callable[[bytes], Awaitable[WireReply]], exchange: JsonExchange
    ) -> None:
        self._decide = decide
        self._exchange = exchange
        self._threads = WorkThreads("json-body", LARGE_BODY_BYTES, OverloadedError)

    async def answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == DECISION_PATH:
            answer = await self._decision(request)
        else:
            answer = self._exchange.undecided(path)
        return Response(answer.body, answer.status, dict(answer.headers))

    async def _decision(self, request: Request) -> HttpAnswer:
        exchange = self._exchange
        try:
            body = await _body(request, exchange.body_bytes_max)
            if body is None:
                return exchange.body_too_large()
            payload = await self._threads.run(len(body), partial(exchange.payload, body))
        except ClientDisconnect:
            return exchange.malformed("body ended early: the client went away")
        except OverloadedError:
            return exchange.too_busy()
        if isinstance(payload, HttpAnswer):
            return payload
        return await self._decided(request, payload)

    async def _decided(self, request: Request, payload: bytes) -> HttpAnswer:
        return self._exchange.decided(await self._decide(payload))


async def _body(request: Request, bytes_max: int) -> bytes | None:
    """The request's body; None when there is more than the bound, read no further."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > bytes_max:
            return None
    return bytes(body)
