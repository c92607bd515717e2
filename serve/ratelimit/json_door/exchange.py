"""The calls of the JSON door and their answers, whoever carries them (B16).

    /healthcheck, any method   200 "OK" while healthy, else 500 with an empty body
    /json, any method          200 or 429 with the decision; 400 "Bad Request" for whatever fails
    another service's          503 with Retry-After: it is starting, and not reached yet
    anything else              404 "404 page not found"

With precise status codes an error has a JSON body with its reason: 400 if it is the caller's, 503
if it is ours.
"""

import json
from functools import lru_cache
from typing import NamedTuple

from tollgate.actors.ratelimit.decision.response import OK, OVER_LIMIT
from tollgate.actors.ratelimit.rules.descriptors import DEFAULT_BOUNDS, RequestBounds
from tollgate.serve.ratelimit.codec.json_answers import response_to_json
from tollgate.serve.ratelimit.codec.json_requests import request_from_json
from tollgate.serve.ratelimit.codec.requests import MalformedRequest
from tollgate.serve.ratelimit.fronts.front import OVERLOADED, ErrorStatus, StatusCode, WireReply
from tollgate.serve.ratelimit.health import Health

DECISION_PATH = "/json"
BODIES_KEPT_MAX = 4_096
KEPT_BODY_BYTES_MAX = 2 * 1024
# A body of empty entries takes 1 ms per KiB to read; larger ones are read in a thread.
LARGE_BODY_BYTES = 8 * 1024
RETRY_AFTER_S = 1
HTTP_STATUS_OF_CODE = {OK: 200, OVER_LIMIT: 429}
CALLERS_FAULT = (StatusCode.UNKNOWN, StatusCode.INVALID_ARGUMENT)


class HttpAnswer(NamedTuple):
    """A status, a body, and the headers that go with them; the carrier adds the length."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


_JSON = (("Content-Type", "application/json"),)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))

HEALTHY = HttpAnswer(200, b"OK")
UNHEALTHY = HttpAnswer(500, b"")
ELSEWHERE = HttpAnswer(503, b"", (("Retry-After", str(RETRY_AFTER_S)),))
NOT_FOUND = HttpAnswer(404, b"404 page not found\n", _TEXT)
BAD_REQUEST = HttpAnswer(400, b"Bad Request\n", _TEXT)


class JsonExchange:
    """What the calls mean. `elsewhere`: prefixes of the paths of other services here."""

    def __init__(
        self,
        health: Health,
        *,
        is_precise: bool,
        bounds: RequestBounds = DEFAULT_BOUNDS,
        elsewhere: tuple[str, ...] = (),
    ) -> None:
        self._health = health
        self._is_precise = is_precise
        self._bounds = bounds
        self._elsewhere = elsewhere
        # Proxies ask the same questions over and over.
        self._kept_payload = lru_cache(maxsize=BODIES_KEPT_MAX)(self._payload)

    @property
    def body_bytes_max(self) -> int:
        return self._bounds.request_bytes_max

    def payload(self, body: bytes) -> bytes | HttpAnswer:
        """The serialised request of a body, or the answer to a body that is none."""
        try:
            if len(body) <= KEPT_BODY_BYTES_MAX:
                return self._kept_payload(body)
            return self._payload(body)
        except MalformedRequest as error:
            return self.malformed(str(error))

    def decided(self, reply: WireReply) -> HttpAnswer:
        """The answer that a decision makes: its overall code decides the status."""
        if isinstance(reply, ErrorStatus):
            return self.refused(reply)
        # The overall code is the first field of the message, and left out when it is UNKNOWN.
        overall = reply[1] if reply[:1] == b"\x08" else 0
        return HttpAnswer(HTTP_STATUS_OF_CODE.get(overall, 500), response_to_json(reply), _JSON)

    def malformed(self, complaint: str) -> HttpAnswer:
        """The answer to a call that is not as it should be."""
        return self.refused(ErrorStatus(StatusCode.INVALID_ARGUMENT, complaint))

    def body_too_large(self) -> HttpAnswer:
        """The answer to a body beyond the bound."""
        return self.malformed(f"body is larger than {self.body_bytes_max} bytes")

    def too_busy(self) -> HttpAnswer:
        """The answer to a call for which there is no room at this moment."""
        return self.refused(ErrorStatus(StatusCode.RESOURCE_EXHAUSTED, OVERLOADED))

    def refused(self, refused: ErrorStatus) -> HttpAnswer:
        """The answer to a call that ends with an error."""
        if not self._is_precise:
            return BAD_REQUEST
        status = 400 if refused.code in CALLERS_FAULT else 503
        reason = {"code": StatusCode(refused.code).name, "message": refused.message}
        return HttpAnswer(status, json.dumps(reason).encode(), _JSON)

    def undecided(self, path: str) -> HttpAnswer:
        """The answer to a path that asks for no decision."""
        if path == "/healthcheck":
            return HEALTHY if self._health.is_healthy else UNHEALTHY
        if self._elsewhere and f"{path}/".startswith(self._elsewhere):
            return ELSEWHERE
        return NOT_FOUND

    def _payload(self, body: bytes) -> bytes:
        return request_from_json(body, self._bounds)
