"""The quick reader of ordinary requests reads what protobuf reads, or leaves it alone."""

from hypothesis import example, given
from hypothesis import strategies as st

from tests.property.ratelimit.test_codec_agrees import REQUESTS, message_of
from tollgate.actors.ratelimit.rules.descriptors import (
    RateLimitDescriptor,
    RateLimitRequest,
    RequestBounds,
)
from tollgate.serve.ratelimit.codec.ordinary_requests import ordinary_request
from tollgate.serve.ratelimit.codec.requests import (
    MalformedRequest,
    RequestOutOfBounds,
    decode_request,
    decode_with_protobuf,
)

HUGE = 2**40
UNBOUNDED = RequestBounds(HUGE, HUGE, HUGE, HUGE)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=90)
ORDINARY = st.builds(
    RateLimitRequest,
    TEXT,
    st.lists(
        st.lists(st.tuples(TEXT, st.just("") | TEXT), max_size=4)
        .map(tuple)
        .map(RateLimitDescriptor),
        max_size=4,
    ).map(tuple),
    st.integers(0, 127),
)
# What a request is made of, whole and in parts, to be put together in any way.
FRAGMENTS = st.one_of(
    st.sampled_from([bytes([tag]) for tag in (0x0A, 0x12, 0x18, 0x1A, 0x20, 0x08, 0x10, 0x0B)]),
    st.integers(0, 12).map(lambda length: bytes([length])),
    st.sampled_from([b"\x80", b"\xff", b"\x80\x01", b"\x82\x00", b"\xff\x7f", b"\x80\x80\x01"]),
    st.sampled_from([b"\n\x01d", b"\n\x01k", b"\x12\x01v", b"\x12\x00", b"\x12\x08\n\x06\n\x01k"]),
    st.sampled_from([b"\n\x06\n\x01k\x12\x01v", b"\x12\x08\n\x06\n\x01k\x12\x01v", b"\x18\x05"]),
    st.sampled_from([b"\xc3\xa9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]),
)
PUT_TOGETHER = st.lists(FRAGMENTS, max_size=14).map(b"".join)
WRITTEN = (ORDINARY | REQUESTS).map(lambda request: bytes(message_of(request).SerializeToString()))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """What protobuf wrote, with a few bytes lost, added or changed."""
    payload = bytearray(draw(WRITTEN))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(payload)))
        payload[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2) | FRAGMENTS)
    return bytes(payload)


def by_protobuf(payload: bytes) -> RateLimitRequest | None:
    try:
        return decode_with_protobuf(payload, UNBOUNDED)
    except MalformedRequest:
        return None


@given(WRITTEN | damaged() | PUT_TOGETHER | st.binary(max_size=60))
@example(b"\n\x01d\x12\x08\n\x06\n\x01k\x12\x01v")
@example(b"\n\x83\x00abc")
@example(b"\n\x01d\x12\x08\n\x06\n\x01k\x12\x01")  # cut off in its last value
@example(b"\n\x01d\x12\x02\n\x00\n")  # an entry without anything, and the tag of a next one
@example(b"\n\x01d\x12\x08\n\x06\n\x03k\x12\x01v")  # a key longer than its entry
@example(b"\n\x05d")
@example(b"\n\x01d\x18\x80")
def test_it_is_read_as_protobuf_reads_it_or_not_at_all(payload: bytes) -> None:
    found = ordinary_request(payload, UNBOUNDED)
    if found is not None:
        assert found == by_protobuf(payload)


@given(ORDINARY)
def test_what_is_ordinary_is_read(request: RateLimitRequest) -> None:
    assert ordinary_request(message_of(request).SerializeToString()) == request


BOUNDS = st.builds(
    RequestBounds, st.integers(0, 3), st.integers(0, 3), st.integers(0, 200), st.integers(0, 400)
)


@given(WRITTEN, BOUNDS)
def test_bounds_hold_for_the_ordinary_too(payload: bytes, bounds: RequestBounds) -> None:
    answers: list[object] = []
    for decode in (decode_request, decode_with_protobuf):
        try:
            answers.append(decode(payload, bounds))
        except RequestOutOfBounds as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
