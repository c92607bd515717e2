"""The wire forms: what is read, what is refused and in which words, what is written."""

import json
from typing import Any

import pytest

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.response import REMAINING_UNLIMITED
from tollgate.actors.ratelimit.rules.descriptors import (
    DESCRIPTORS_PER_REQUEST_MAX,
    ENTRIES_PER_DESCRIPTOR_MAX,
    ENTRY_BYTES_MAX,
    REQUEST_BYTES_MAX,
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.serve.ratelimit.codec.answers import (
    STATUS_UNLIMITED,
    STATUS_WITHOUT_LIMIT,
    current_limit_bytes,
    response_bytes,
    response_of_one,
    status_bytes,
)
from tollgate.serve.ratelimit.codec.json_answers import response_to_json
from tollgate.serve.ratelimit.codec.json_requests import JSON_COMPLAINT_CHARS_MAX, request_from_json
from tollgate.serve.ratelimit.codec.messages import RequestMessage, ResponseMessage
from tollgate.serve.ratelimit.codec.requests import (
    MalformedRequest,
    RequestOutOfBounds,
    decode_request,
)

OK, OVER_LIMIT = ResponseMessage.OK, ResponseMessage.OVER_LIMIT


def request_message(**fields: Any) -> Any:
    return RequestMessage(**fields)


# --- requests -------------------------------------------------------------------------------------


def test_a_request_keeps_every_field() -> None:
    message = request_message(domain="edge", hits_addend=7)
    first = message.descriptors.add()
    first.entries.add(key="path", value="/a")
    first.entries.add(key="path", value="")
    first.limit.requests_per_unit = 42
    first.limit.unit = Unit.WEEK
    second = message.descriptors.add(is_negative_hits=True)
    second.hits_addend.value = 2**64 - 1
    assert decode_request(message.SerializeToString()) == RateLimitRequest(
        domain="edge",
        descriptors=(
            RateLimitDescriptor((("path", "/a"), ("path", "")), Override(42, Unit.WEEK)),
            RateLimitDescriptor((), None, 2**64 - 1, is_negative_hits=True),
        ),
        hits_addend=7,
    )


def test_an_addend_of_zero_is_not_an_absent_addend() -> None:
    message = request_message(domain="d")
    message.descriptors.add().hits_addend.value = 0
    message.descriptors.add()
    decoded = decode_request(message.SerializeToString())
    assert [descriptor.hits_addend for descriptor in decoded.descriptors] == [0, None]


@pytest.mark.parametrize("unit", [0, 8, 99, -1])
def test_an_override_with_an_unknown_unit_says_so(unit: int) -> None:
    message = request_message(domain="d")
    message.descriptors.add().limit.unit = unit
    assert decode_request(message.SerializeToString()).descriptors[0].override == Override(0, None)


def test_nothing_is_an_empty_request() -> None:
    assert decode_request(b"") == RateLimitRequest("", ())


def test_fields_of_the_future_are_passed_over() -> None:
    assert decode_request(b"\x0a\x01d" + b"\xfa\x7f\x03new") == RateLimitRequest("d", ())


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff",
        b"\x0a\x05abc",
        b'{"domain": "d"}',
        b"\x0a\x02\xc3\x28",  # a domain that is not UTF-8
        b"\x12\x06\x0a\x04\x0a\x02\xc3\x28",  # so is a key
    ],
)
def test_garbage_is_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedRequest, match=r"^request is not a serialised RateLimitRequest$"):
        decode_request(payload)


def with_entries(*entries: tuple[str, str], before: int = 0) -> bytes:
    """A request whose descriptor number `before` has these entries; those before it have none."""
    message = request_message(domain="d")
    for _ in range(before):
        message.descriptors.add()
    descriptor = message.descriptors.add()
    for key, value in entries:
        descriptor.entries.add(key=key, value=value)
    return bytes(message.SerializeToString())


FULL = "x" * ENTRY_BYTES_MAX


@pytest.mark.parametrize(
    "payload",
    [
        with_entries((FULL, FULL)),
        with_entries(("é" * (ENTRY_BYTES_MAX // 2), "")),
        with_entries(*[("k", "v")] * ENTRIES_PER_DESCRIPTOR_MAX),
        with_entries(before=DESCRIPTORS_PER_REQUEST_MAX - 1),
    ],
)
def test_what_fills_a_bound_is_read(payload: bytes) -> None:
    assert len(decode_request(payload).descriptors) > 0


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (
            with_entries((FULL + "x", "v"), before=2),
            "descriptors[2].entries[0].key has 4097 bytes, at most 4096 are allowed",
        ),
        (
            with_entries(("k", "v"), ("k", FULL + "x")),
            "descriptors[0].entries[1].value has 4097 bytes, at most 4096 are allowed",
        ),
        (
            with_entries(("k", "€" * 1366)),
            "descriptors[0].entries[0].value has 4098 bytes, at most 4096 are allowed",
        ),
        (
            with_entries(*[("k", "v")] * (ENTRIES_PER_DESCRIPTOR_MAX + 1)),
            "descriptors[0] has 65 entries, at most 64 are allowed",
        ),
        (
            with_entries(before=DESCRIPTORS_PER_REQUEST_MAX),
            "request has 257 descriptors, at most 256 are allowed",
        ),
        (
            RequestMessage(domain="€" * 1366).SerializeToString(),
            "domain has 4098 bytes, at most 4096 are allowed",
        ),
        (
            b"\x00" * (REQUEST_BYTES_MAX + 1),
            "request has 1048577 bytes, at most 1048576 are allowed",
        ),
    ],
    ids=["key", "value", "value in bytes", "entries", "descriptors", "domain", "request"],
)
def test_what_is_beyond_a_bound_is_refused_with_its_place(payload: bytes, message: str) -> None:
    with pytest.raises(RequestOutOfBounds) as refusal:
        decode_request(payload)
    assert str(refusal.value) == message


# --- answers --------------------------------------------------------------------------------------


def test_a_status_shows_its_limit() -> None:
    limit = current_limit_bytes(10, Unit.MINUTE, "per path")
    message = ResponseMessage.FromString(response_bytes(OK, [status_bytes(OK, limit, 9, 34)]))
    status = message.statuses[0]
    assert message.overall_code == OK
    assert (status.code, status.limit_remaining) == (OK, 9)
    assert status.duration_until_reset.seconds == 34
    assert status.current_limit.requests_per_unit == 10
    assert status.current_limit.unit == Unit.MINUTE
    assert status.current_limit.name == "per path"


@pytest.mark.parametrize("remaining", [0, 1, 127, 128, 16_383, 16_384, 2**21, 2**28, 2**32 - 1])
@pytest.mark.parametrize("name", ["", "n" * 200])
def test_the_answer_of_one_status_is_put_together_at_once(remaining: int, name: str) -> None:
    limit = current_limit_bytes(2**32 - 1, Unit.YEAR, name)
    payload = response_of_one(OK, OK, limit, remaining, 34)
    assert payload == response_bytes(OK, [status_bytes(OK, limit, remaining, 34)])
    assert ResponseMessage.FromString(payload).statuses[0].limit_remaining == remaining


def test_statuses_keep_their_order() -> None:
    statuses = [status_bytes(OVER_LIMIT, b"", 0, 1), STATUS_WITHOUT_LIMIT, STATUS_UNLIMITED]
    message = ResponseMessage.FromString(response_bytes(OVER_LIMIT, statuses))
    seen = [(status.code, status.limit_remaining) for status in message.statuses]
    assert seen == [(OVER_LIMIT, 0), (OK, 0), (OK, REMAINING_UNLIMITED)]
    assert not any(status.HasField("current_limit") for status in message.statuses)
    resets = [status.HasField("duration_until_reset") for status in message.statuses]
    assert resets == [True, False, False]


def test_headers_and_metadata_are_added() -> None:
    metadata = {"domain": "d", "metadata": {"name": "s1", "tags": ("a", None, True, 2.5)}}
    payload = response_bytes(OK, (), [("RateLimit-Limit", "10"), ("X", "ü")], metadata)
    assert json.loads(response_to_json(payload)) == {
        "overallCode": "OK",
        "responseHeadersToAdd": [
            {"key": "RateLimit-Limit", "value": "10"},
            {"key": "X", "value": "ü"},
        ],
        "dynamicMetadata": {
            "domain": "d",
            "metadata": {"name": "s1", "tags": ["a", None, True, 2.5]},
        },
    }


def test_no_code_is_no_bytes() -> None:
    assert response_bytes(ResponseMessage.UNKNOWN, ()) == b""


# --- JSON -----------------------------------------------------------------------------------------


def test_json_has_the_field_order_of_b16() -> None:
    limit = current_limit_bytes(10, Unit.MINUTE, "n")
    payload = response_bytes(OK, [status_bytes(OK, limit, 9, 34)], [("H", "1")])
    assert response_to_json(payload) == (
        b'{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"n",'
        b'"requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":9,"durationUntilReset":"34s"}],'
        b'"responseHeadersToAdd":[{"key":"H","value":"1"}]}'
    )


def test_json_leaves_zeros_out() -> None:
    limit = current_limit_bytes(0, Unit.DAY, "")
    payload = response_bytes(OVER_LIMIT, [status_bytes(OVER_LIMIT, limit, 0, 26)])
    assert json.loads(response_to_json(payload)) == {
        "overallCode": "OVER_LIMIT",
        "statuses": [
            {
                "code": "OVER_LIMIT",
                "currentLimit": {"unit": "DAY"},
                "durationUntilReset": "26s",
            }
        ],
    }


def test_json_shows_an_unlimited_rule_as_the_largest_number() -> None:
    payload = response_bytes(OK, [STATUS_UNLIMITED])
    assert json.loads(response_to_json(payload))["statuses"] == [
        {"code": "OK", "limitRemaining": 4294967295}
    ]


def test_json_of_nothing_is_an_empty_object() -> None:
    assert response_to_json(b"") == b"{}"


@pytest.mark.parametrize(
    ("body", "descriptor"),
    [
        ({"hitsAddend": 3}, RateLimitDescriptor((), hits_addend=3)),
        ({"hitsAddend": "3"}, RateLimitDescriptor((), hits_addend=3)),
        ({"hits_addend": 3.0}, RateLimitDescriptor((), hits_addend=3)),
        ({"hitsAddend": None}, RateLimitDescriptor(())),
        ({"isNegativeHits": True}, RateLimitDescriptor((), is_negative_hits=True)),
        ({"is_negative_hits": True}, RateLimitDescriptor((), is_negative_hits=True)),
        (
            {"limit": {"requestsPerUnit": 10, "unit": "DAY"}},
            RateLimitDescriptor((), Override(10, Unit.DAY)),
        ),
        (
            {"limit": {"requests_per_unit": "10", "unit": 4}},
            RateLimitDescriptor((), Override(10, Unit.DAY)),
        ),
        ({"limit": {"unit": 99}}, RateLimitDescriptor((), Override(0, None))),
        ({"entries": [{"key": "k", "value": "😀"}]}, RateLimitDescriptor((("k", "😀"),))),
    ],
)
def test_json_requests_follow_the_proto3_mapping(
    body: dict[str, object], descriptor: RateLimitDescriptor
) -> None:
    text = json.dumps({"domain": "d", "descriptors": [body]})
    assert decode_request(request_from_json(text.encode())) == RateLimitRequest("d", (descriptor,))


@pytest.mark.parametrize(
    "body",
    [
        "",
        "}",
        "null",
        "[]",
        '""',
        "1",
        "{} x",
        "\ufeff{}",
        "{'domain': 'd'}",
        '{"domain": "d",}',
        '{"domain": 1}',
        '{"domain": "\\ud800"}',
        '{"domain": "a", "domain": "b"}',
        '{"unknown": 1}',
        '{"' + "x" * 1000 + '": 1}',
        '{"descriptors": "' + "x" * 1000 + '"}',
        '{"hitsAddend": 1, "hits_addend": 1}',
        '{"hitsAddend": -1}',
        '{"hitsAddend": 1.5}',
        '{"hitsAddend": 4294967296}',
        '{"hitsAddend": true}',
        '{"hitsAddend": NaN}',
        '{"hitsAddend": Infinity}',
        '{"hitsAddend": 1e400}',
        '{"hitsAddend": "1_0"}',
        '{"hitsAddend": "+1"}',
        '{"hitsAddend": "one"}',
        '{"hitsAddend": []}',
        '{"descriptors": {}}',
        '{"descriptors": [null]}',
        '{"descriptors": [[]]}',
        '{"descriptors": [""]}',
        '{"descriptors": ["a"]}',
        '{"descriptors": [{"entries": [{"key": 1}]}]}',
        '{"descriptors": [{"entries": [{"key": null, "value": {}}]}]}',
        '{"descriptors": [{"limit": []}]}',
        '{"descriptors": [{"limit": {"unit": "day"}}]}',
        '{"descriptors": [{"limit": {"unit": "4"}}]}',
        '{"descriptors": [{"limit": {"unit": true}}]}',
        '{"descriptors": [{"limit": {"unit": 99999999999}}]}',
        '{"descriptors": [{"isNegativeHits": 1}]}',
        '{"descriptors": [{"isNegativeHits": "true"}]}',
        '{"descriptors": [{"hitsAddend": {"value": 1}}]}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"hitsAddend": ' + "9" * 5000 + "}",
    ],
    ids=lambda body: repr(body[:50]),
)
def test_anything_else_in_json_is_malformed(body: str) -> None:
    with pytest.raises(MalformedRequest) as refusal:
        request_from_json(body.encode("utf-8", "surrogatepass"))
    complaint = str(refusal.value)
    assert len(complaint.splitlines()) == 1
    assert len(complaint) <= JSON_COMPLAINT_CHARS_MAX


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([{}] * 257, "request has 257 descriptors, at most 256 are allowed"),
        (
            [{}, {"entries": [{}] * 65}],
            "descriptors[1] has 65 entries, at most 64 are allowed",
        ),
        (
            [{"entries": [{"key": "k" * 4097}]}],
            "request.descriptors.entries.key has 4097 characters, at most 4096 are allowed",
        ),
        ([[0] * 60_000], "body holds more than 53264 values"),
    ],
    ids=["descriptors", "entries", "text", "values"],
)
def test_json_beyond_a_bound_is_refused_before_it_is_read(body: object, message: str) -> None:
    with pytest.raises(RequestOutOfBounds) as refusal:
        request_from_json(json.dumps({"domain": "d", "descriptors": body}).encode())
    assert str(refusal.value) == message


def test_json_of_the_most_that_is_allowed_is_read() -> None:
    entry = {"key": 'a,[{"' * 3, "value": "}],\\"}
    descriptor = {
        "entries": [entry] * ENTRIES_PER_DESCRIPTOR_MAX,
        "limit": {"requestsPerUnit": 5, "unit": "DAY"},
        "hitsAddend": "3",
        "isNegativeHits": True,
    }
    body = {"domain": "d", "descriptors": [descriptor] * DESCRIPTORS_PER_REQUEST_MAX}
    request = decode_request(request_from_json(json.dumps(body).encode()))
    assert len(request.descriptors) == DESCRIPTORS_PER_REQUEST_MAX


def test_json_is_utf_8() -> None:
    with pytest.raises(MalformedRequest, match=r"^body is not JSON: "):
        request_from_json(b'{"domain": "\xff"}')
