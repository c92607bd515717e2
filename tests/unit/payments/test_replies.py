"""What is refused, as it goes over the wire: status, headers, and a body for those who want one."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tollgate.serve.payments.api.rejections import (
    AttemptFailed,
    BadRequest,
    FieldError,
    Forbidden,
    KeyReused,
    LostRace,
    NotFound,
    Rejection,
    TooMany,
    Unauthorised,
    Unavailable,
    WrongMethod,
)
from tollgate.serve.payments.api.replies import (
    Reply,
    Stream,
    accepts_json,
    as_list,
    rejected,
    send_reply,
    under,
)

PLAIN = [
    (
        Unauthorised(),
        401,
        "UNAUTHORIZED",
        {"www-authenticate": 'Basic realm="Tollgate", charset="UTF-8"'},
    ),
    (Forbidden("no"), 403, "FORBIDDEN", {}),
    (NotFound("no"), 404, "NOT_FOUND", {}),
    (WrongMethod(["GET", "PUT"]), 405, "METHOD_NOT_ALLOWED", {"allow": "GET, PUT"}),
    (LostRace("no"), 409, "CONFLICT", {}),
    (KeyReused("no"), 422, "IDEMPOTENCY_KEY_REUSED", {}),
    (TooMany("no", 7), 429, "TOO_MANY_REQUESTS", {"retry-after": "7"}),
    (Rejection("no"), 500, "INTERNAL", {}),
    (Unavailable("no", 2), 503, "UNAVAILABLE", {"retry-after": "2"}),
]


def headers(reply: Reply) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in reply.headers}


@pytest.mark.parametrize(("rejection", "status", "code", "added"), PLAIN)
def test_an_error_speaks_only_to_those_who_ask_for_json(
    rejection: Rejection, status: int, code: str, added: dict[str, str]
) -> None:
    silent = rejected(rejection, accepts_json=False, request_id="r")
    assert (silent.status, silent.body, headers(silent)) == (status, b"", added)
    told = rejected(rejection, accepts_json=True, request_id="r")
    assert (told.status, headers(told)) == (status, added)
    assert json.loads(told.body) == {"code": code, "message": rejection.message, "requestId": "r"}


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_fields_and_processing_errors_are_always_json(is_asked_for: bool) -> None:
    bad = BadRequest(FieldError("amount", "must be more"), FieldError("", "is empty"))
    told = rejected(bad, accepts_json=is_asked_for, request_id="r")
    assert told.status == 400
    assert json.loads(told.body) == [
        {"field": "amount", "message": "must be more"},
        {"field": "", "message": "is empty"},
    ]
    failed = AttemptFailed(8, "Declined", "Ask your bank", is_client=True, is_merchant=False)
    told = rejected(failed, accepts_json=is_asked_for, request_id="r")
    assert told.status == 400
    assert json.loads(told.body) == {
        "code": 8,
        "message": "Declined",
        "text": "Ask your bank",
        "client": True,
        "merchant": False,
    }


@pytest.mark.parametrize(
    ("accept", "wants"),
    [
        ("", False),
        ("*/*", False),
        ("application/*", False),
        ("text/html", False),
        ("application/json", True),
        ("text/html, Application/JSON", True),
        ("application/problem+json;v=1", True),
        ("application/json;q=0.5", True),
        ("application/json; q=0", False),
        ("application/json;q=0.000, */*", False),
        ("application/jsonp", False),
    ],
)
def test_a_wildcard_does_not_name_json(accept: str, wants: bool) -> None:
    assert accepts_json(accept) is wants


@pytest.mark.parametrize("documents", [[], ['{"a":1}'], ['{"a":1}', '{"a":2}', "{}"]])
def test_a_list_is_json_and_a_line_for_each_element(documents: list[str]) -> None:
    body = as_list(documents)
    assert json.loads(body) == [json.loads(each) for each in documents]
    assert [line.rstrip(",") for line in body.decode().splitlines()] == ["[", *documents, "]"]


def test_a_document_under_a_name() -> None:
    assert under("card", '{"id":"1"}') == b'{"card":{"id":"1"}}'


def sent(reply: Reply | Stream, request_id: str = "r") -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(send_reply(send, reply, request_id))
    return messages


@pytest.mark.parametrize(
    ("reply", "type_", "length"),
    [
        (Reply(200, b"{}"), b"application/json", b"2"),
        (Reply(201, b"a", b"text/csv"), b"text/csv", b"1"),
        (Reply(404), None, b"0"),
        (Reply(204), None, None),
    ],
)
def test_an_empty_body_has_no_type(reply: Reply, type_: bytes | None, length: bytes | None) -> None:
    start, body = sent(reply)
    found = dict(start["headers"])
    assert (start["status"], body["body"]) == (reply.status, reply.body)
    assert (found.get(b"content-type"), found.get(b"content-length")) == (type_, length)
    assert found[b"x-request-id"] == b"r"
    assert found[b"cache-control"] == b"no-store"


def test_an_id_that_somebody_else_adds_is_not_added_twice() -> None:
    assert b"x-request-id" not in dict(sent(Reply(200), "")[0]["headers"])


def test_a_stream_is_sent_as_it_comes() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"a"
        yield b"b"

    start, *bodies = sent(Stream(chunks(), b"text/csv"))
    assert dict(start["headers"])[b"content-type"] == b"text/csv"
    assert [each["body"] for each in bodies] == [b"a", b"b", b""]
    assert [each.get("more_body", False) for each in bodies] == [True, True, False]
