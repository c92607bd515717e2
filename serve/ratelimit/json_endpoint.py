"""Answers `/json` and `/healthcheck` over HTTP (B16).

    /healthcheck, any method   200 "OK" while healthy, else 500 with an empty body
    /json, any method          200 or 429 with the decision; 400 "Bad Request" for whatever fails
    another service's          503 with Retry-After: it is starting, and not reached yet
    anything else              404 "404 page not found"

With precise status codes an error has a JSON body with its reason: 400 if it is the caller's, 503
if it is ours.
"""

import json
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tollgate.actors.ratelimit.decision.response import OK, OVER_LIMIT
from tollgate.actors.ratelimit.rules.descriptors import DEFAULT_BOUNDS, RequestBounds
from tollgate.serve.net.work_threads import WorkThreads
from tollgate.serve.ratelimit.codec.json_form import request_from_json, response_to_json
from tollgate.serve.ratelimit.codec.requests import MalformedRequest
from tollgate.serve.ratelimit.fronts.front import OVERLOADED, ErrorStatus, StatusCode, WireReply
from tollgate.serve.ratelimit.health import Health

HTTP_STATUS_OF_CODE = {OK: 200, OVER_LIMIT: 429}
BODIES_KEPT_MAX = 4_096
KEPT_BODY_BYTES_MAX = 2 * 1024
# A body of empty entries takes 1 ms per KiB to read; larger ones are read in a thread.
LARGE_BODY_BYTES = 8 * 1024
CALLERS_FAULT = (StatusCode.UNKNOWN, StatusCode.INVALID_ARGUMENT)


class OverloadedError(Exception):
    """Too many large bodies wait to be read."""


class JsonEndpoint:
    """Answers HTTP requests; `decide` is one call's way into the batches. `elsewhere`: prefixes of
    the paths of other services here."""

    def __init__(
        self,
        decide: Callable[[bytes], Awaitable[WireReply]],
        health: Health,
        *,
        is_precise: bool,
        bounds: RequestBounds = DEFAULT_BOUNDS,
        elsewhere: tuple[str, ...] = (),
    ) -> None:
        self._bounds = bounds
        # Proxies ask the same questions over and over.
        self._kept_payload = lru_cache(maxsize=BODIES_KEPT_MAX)(self._payload)
        self._threads = WorkThreads("json-body", LARGE_BODY_BYTES, OverloadedError)
        self._decide = decide
        self._health = health
        self._is_precise = is_precise
        self._elsewhere = elsewhere

    async def answer(self, request: Request) -> Response:
        path = request.scope["path"]
        if path == "/json":
            return await self._decision(request)
        if path == "/healthcheck":
            is_healthy = self._health.is_healthy
            return Response(b"OK" if is_healthy else b"", 200 if is_healthy else 500)
        if self._elsewhere and f"{path}/".startswith(self._elsewhere):
            return Response(status_code=503, headers={"Retry-After": "1"})
        return _plain(404, "404 page not found\n")

    async def _decision(self, request: Request) -> Response:
        try:
            body = await _body(request, self._bounds.request_bytes_max)
            read = self._kept_payload if len(body) <= KEPT_BODY_BYTES_MAX else self._payload
            payload = await self._threads.run(len(body), partial(read, body))
        except MalformedRequest as error:
            return self._refused(ErrorStatus(StatusCode.INVALID_ARGUMENT, str(error)))
        except OverloadedError:
            return self._refused(ErrorStatus(StatusCode.RESOURCE_EXHAUSTED, OVERLOADED))
        answer = await self._decide(payload)
        if isinstance(answer, ErrorStatus):
            return self._refused(answer)
        return json_reply(answer)

    def _payload(self, body: bytes) -> bytes:
        return request_from_json(body, self._bounds)

    def _refused(self, refused: ErrorStatus) -> Response:
        if not self._is_precise:
            return _plain(400, "Bad Request\n")
        status = 400 if refused.code in CALLERS_FAULT else 503
        body = json.dumps({"code": StatusCode(refused.code).name, "message": refused.message})
        return Response(body, status, media_type="application/json")


def json_reply(payload: bytes | None) -> Response:
    """A serialised RateLimitResponse as HTTP: its overall code decides the status (B16)."""
    if payload is None:
        return _plain(500, "Internal Server Error\n")
    # The overall code is the first field of the message, and left out when it is UNKNOWN.
    overall = payload[1] if payload[:1] == b"\x08" else 0
    status = HTTP_STATUS_OF_CODE.get(overall, 500)
    return Response(response_to_json(payload), status, media_type="application/json")


async def _body(request: Request, bytes_max: int) -> bytes:
    """The request's body, read no further than its bound."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > bytes_max:
                raise MalformedRequest(f"body is larger than {bytes_max} bytes")
    except ClientDisconnect:
        raise MalformedRequest("body ended early: the client went away") from None
    return bytes(body)


def _plain(status: int, text: str) -> Response:
    return Response(
        text,
        status,
        {"X-Content-Type-Options": "nosniff"},
        media_type="text/plain; charset=utf-8",
    )
