"""Replies out (part A, "Lists", "Status codes", "Errors").

    a command that was done     the status of its kind, its body; Idempotency-Replayed if a replay
    a list                      `[`, one element per line, `]`: clients read it line by line
    a rejected field            [{"field", "message"}]                      always JSON
    a processing error          {code, message, text, client, merchant, …}  always JSON
    any other error             {code, message, requestId} if Accept names JSON, else nothing

A body that is empty has no content type: clients crash on JSON of no length. Every reply carries
X-Request-ID.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.json import Encoder
from starlette.types import Send

from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.serve.payments.api import rejections

JSON = b"application/json"
LIST_BEGIN, LIST_END = b"[\n", b"\n]\n"
Header = tuple[bytes, bytes]
encode_json = Encoder().encode

# What is answered is for the caller alone, and what it says it is.
_ALWAYS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

# A replay is answered from the same table as the first time.
STATUS_OF = {
    DoneKind.MADE: 201,
    DoneKind.CHANGED: 204,
    # A failed attempt is stored, and its reply is a processing error (part A, "Errors").
    DoneKind.ATTEMPT_FAILED: 400,
}
REPLAYED: tuple[Header, ...] = ((b"idempotency-replayed", b"true"),)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whole. `media_type` counts only when there is a body."""

    status: int
    body: bytes = b""
    media_type: bytes = JSON
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer in pieces, too large to be made at once."""

    chunks: AsyncIterator[bytes]
    media_type: bytes
    headers: tuple[Header, ...] = ()


def done_reply(done: Done, body: bytes | None = None) -> Reply:
    """The reply to a command that was done; `body` in place of its own."""
    return Reply(
        STATUS_OF[done.kind],
        done.body if body is None else body,
        headers=REPLAYED if done.is_replay else (),
    )


def as_list(documents: Sequence[str]) -> bytes:
    """Documents, which hold no line breaks, as a list."""
    if not documents:
        return b"[\n]\n"
    return LIST_BEGIN + ",\n".join(documents).encode() + LIST_END


def under(name: str, document: str) -> bytes:
    """A document as the only field of an object."""
    return f'{{"{name}":{document}}}'.encode()


def rejected(rejection: rejections.Rejection, *, accepts_json: bool, request_id: str) -> Reply:
    """The reply of a rejection."""
    headers = headers_of(rejection)
    if isinstance(rejection, rejections.BadRequest):
        fields = [{"field": each.field, "message": each.message} for each in rejection.errors]
        return Reply(400, encode_json(fields), headers=headers)
    if isinstance(rejection, rejections.AttemptFailed):
        return Reply(400, encode_json(_attempt(rejection)), headers=headers)
    return error_reply(
        rejection.status,
        rejection.code,
        rejection.message,
        accepts_json=accepts_json,
        request_id=request_id,
        headers=headers,
    )


def error_reply(
    status: int,
    code: str,
    message: str,
    *,
    accepts_json: bool,
    request_id: str,
    headers: tuple[Header, ...] = (),
) -> Reply:
    """An error without fields: it speaks only to those who asked for JSON."""
    if not accepts_json:
        return Reply(status, headers=headers)
    body = {"code": code, "message": message, "requestId": request_id}
    return Reply(status, encode_json(body), headers=headers)


def accepts_json(accept: str) -> bool:
    """True if an Accept header names JSON; a wildcard does not."""
    for part in accept.lower().split(","):
        media_type, *parameters = (each.strip() for each in part.split(";"))
        if media_type == "application/json" or media_type.endswith("+json"):
            weights = [each[2:] for each in parameters if each.startswith("q=")]
            return not weights or weights[0].strip("0.") != ""
    return False


async def send_reply(send: Send, reply: Reply | Stream, request_id: str) -> None:
    """Send a reply over ASGI, with this request id; empty: somebody else adds it."""
    headers = [*_ALWAYS, *reply.headers]
    if request_id:
        headers.append((b"x-request-id", request_id.encode("latin-1")))
    if isinstance(reply, Stream):
        headers.append((b"content-type", reply.media_type))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for chunk in reply.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        return
    if reply.body:
        headers.append((b"content-type", reply.media_type))
    if reply.status != 204:
        headers.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


def _attempt(failed: rejections.AttemptFailed) -> dict[str, Any]:
    return {
        "code": failed.number,
        "message": failed.message,
        "text": failed.text,
        "client": failed.is_client,
        "merchant": failed.is_merchant,
    }


def headers_of(rejection: rejections.Rejection) -> tuple[Header, ...]:
    """The headers that tell a caller what to do."""
    match rejection:
        case rejections.TooMany() | rejections.Unavailable():
            return ((b"retry-after", b"%d" % rejection.retry_after_s),)
        case rejections.Unauthorised():
            return ((b"www-authenticate", b'Basic realm="Tollgate", charset="UTF-8"'),)
        case rejections.WrongMethod():
            return ((b"allow", ", ".join(rejection.allowed).encode()),)
    return ()
