"""The hand-made codec agrees with protobuf's own classes, and nothing makes it fall over."""

import json
from typing import Any

from google.protobuf import json_format
from hypothesis import example, given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import (
    ENTRY_BYTES_MAX,
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.serve.ratelimit.codec.answers import (
    current_limit_bytes,
    response_bytes,
    response_of_one,
    status_bytes,
)
from tollgate.serve.ratelimit.codec.json_answers import response_to_json
from tollgate.serve.ratelimit.codec.json_requests import request_from_json
from tollgate.serve.ratelimit.codec.messages import RequestMessage, ResponseMessage
from tollgate.serve.ratelimit.codec.requests import MalformedRequest, decode_request

UINT32 = st.integers(0, 2**32 - 1)
UINT64 = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
OVERRIDES = st.builds(Override, UINT32, st.sampled_from(Unit) | st.none())
DESCRIPTORS = st.builds(
    RateLimitDescriptor,
    st.lists(st.tuples(TEXT, TEXT), max_size=5).map(tuple),
    override=st.none() | OVERRIDES,
    hits_addend=st.none() | UINT64,
    is_negative_hits=st.booleans(),
)
REQUESTS = st.builds(RateLimitRequest, TEXT, st.lists(DESCRIPTORS, max_size=5).map(tuple), UINT32)

CODES = st.sampled_from([ResponseMessage.UNKNOWN, ResponseMessage.OK, ResponseMessage.OVER_LIMIT])
LIMITS = st.tuples(UINT32, st.sampled_from(Unit), TEXT)
RESETS_S = st.integers(0, 366 * 86_400)
STATUSES = st.tuples(CODES, st.none() | LIMITS, UINT32, st.none() | RESETS_S)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e300, 1e300) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


def message_of(request: RateLimitRequest) -> Any:
    message = RequestMessage(domain=request.domain, hits_addend=request.hits_addend)
    for descriptor in request.descriptors:
        added = message.descriptors.add(is_negative_hits=descriptor.is_negative_hits)
        for key, value in descriptor.entries:
            added.entries.add(key=key, value=value)
        if descriptor.override is not None:
            added.limit.requests_per_unit = descriptor.override.requests_per_unit
            added.limit.unit = descriptor.override.unit or 0
            added.limit.SetInParent()
        if descriptor.hits_addend is not None:
            added.hits_addend.value = descriptor.hits_addend
    return message


@given(REQUESTS)
def test_what_protobuf_writes_is_read(request: RateLimitRequest) -> None:
    assert decode_request(message_of(request).SerializeToString()) == request


@given(REQUESTS, st.booleans())
def test_what_protobuf_writes_as_json_is_read(
    request: RateLimitRequest, has_proto_names: bool
) -> None:
    body = json_format.MessageToJson(
        message_of(request), preserving_proto_field_name=has_proto_names
    )
    assert decode_request(request_from_json(body.encode())) == request


@given(
    CODES,
    st.lists(STATUSES, max_size=4),
    st.lists(st.tuples(TEXT, TEXT), max_size=4),
    st.none() | st.dictionaries(TEXT, JSON_VALUES, max_size=3),
)
@example(1, [(1, (10, Unit.MINUTE, "n" * 117), 2**32 - 1, 60)], [], None)  # a long status
def test_answers_are_written_as_protobuf_writes_them(
    overall: int,
    statuses: list[tuple[int, tuple[int, Unit, str] | None, int, int | None]],
    headers: list[tuple[str, str]],
    metadata: dict[str, object] | None,
) -> None:
    expected = ResponseMessage(overall_code=overall)
    for code, limit, remaining, reset_s in statuses:
        status = expected.statuses.add(code=code, limit_remaining=remaining)
        if limit is not None:
            status.current_limit.requests_per_unit, status.current_limit.unit = limit[:2]
            status.current_limit.name = limit[2]
        if reset_s is not None:
            status.duration_until_reset.seconds = reset_s
            status.duration_until_reset.SetInParent()
    for key, value in headers:
        expected.response_headers_to_add.add(key=key, value=value)
    if metadata is not None:
        json_format.ParseDict(metadata, expected.dynamic_metadata)
        expected.dynamic_metadata.SetInParent()

    payload = response_bytes(
        overall,
        [
            status_bytes(code, current_limit_bytes(*limit) if limit else b"", remaining, reset_s)
            for code, limit, remaining, reset_s in statuses
        ],
        headers,
        metadata,
    )
    assert ResponseMessage.FromString(payload) == expected
    if len(statuses) == 1 and None not in statuses[0] and not headers and metadata is None:
        ((code, only, remaining, reset_s),) = statuses
        assert only is not None
        assert reset_s is not None
        limit_wire = current_limit_bytes(*only)
        assert payload == response_of_one(overall, code, limit_wire, remaining, reset_s)
    if metadata is None:
        assert payload == expected.SerializeToString(deterministic=True)
    assert json.loads(response_to_json(payload)) == json_format.MessageToDict(expected)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    try:
        request = decode_request(payload)
    except MalformedRequest:
        return
    assert all(
        len(text.encode()) <= ENTRY_BYTES_MAX
        for descriptor in request.descriptors
        for entry in descriptor.entries
        for text in entry
    )


FIELD_NAMES = st.sampled_from(
    [
        *("domain", "descriptors", "hitsAddend", "hits_addend", "entries", "key", "value"),
        *("limit", "requestsPerUnit", "unit", "isNegativeHits", "@type", ""),
    ]
)
LEAVES = st.sampled_from(
    [None, True, 0, 1, -1, 1.5, 1e308, 2**64, "", "1", "1e999", "DAY", "\ud800", [], {}]
)
LIKE_REQUESTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=4),
    max_leaves=15,
)


@given(LIKE_REQUESTS)
def test_any_json_is_read_or_refused(document: object) -> None:
    try:
        payload = request_from_json(json.dumps(document).encode())
    except MalformedRequest:
        return
    decode_request(payload)
    assert isinstance(document, dict)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(body: str) -> None:
    try:
        request_from_json(body.encode("utf-8", "surrogatepass"))
    except MalformedRequest:
        return
    assert isinstance(json.loads(body), dict)
