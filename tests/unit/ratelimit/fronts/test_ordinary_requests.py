"""The quick reader of ordinary requests ends where a request has too many parts."""

from typing import Any

import pytest

from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RequestBounds
from tollgate.serve.ratelimit.codec import ordinary_requests
from tollgate.serve.ratelimit.codec.ordinary_requests import ordinary_request
from tollgate.serve.ratelimit.codec.requests import RequestOutOfBounds, decode_request

BOUNDS = RequestBounds(descriptors_max=4, entries_max=3)
DOMAIN = b"\n\x01d"
DESCRIPTOR = b"\x12\x00"
ENTRY = b"\n\x03\n\x01k"


class Watched(bytes):
    """Bytes that count the texts that are cut out of them."""

    texts = 0

    def __getitem__(self, at: Any) -> Any:
        self.texts += isinstance(at, slice)
        return super().__getitem__(at)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[RateLimitDescriptor]:
    """The descriptors that are built."""
    built: list[RateLimitDescriptor] = []

    def build(*arguments: Any) -> RateLimitDescriptor:
        built.append(RateLimitDescriptor(*arguments))
        return built[-1]

    monkeypatch.setattr(ordinary_requests, "RateLimitDescriptor", build)
    return built


def test_no_more_descriptors_are_built_than_a_request_may_have(
    built: list[RateLimitDescriptor],
) -> None:
    with pytest.raises(RequestOutOfBounds, match="has 2046 descriptors, at most 4 are allowed"):
        decode_request(DOMAIN + DESCRIPTOR * 2046, BOUNDS)
    assert len(built) == 4
    request = decode_request(DOMAIN + DESCRIPTOR * 4, BOUNDS)
    assert [id(each) for each in request.descriptors] == [id(each) for each in built[4:]]


def test_no_more_entries_are_read_than_a_descriptor_may_have() -> None:
    for count, is_read in ((3, True), (4, False), (20, False)):
        entries = ENTRY * count
        payload = Watched(DOMAIN + b"\x12" + bytes([len(entries)]) + entries)
        assert (ordinary_request(payload, BOUNDS) is not None) is is_read
        assert payload.texts == 1 + 3  # the domain and the keys
