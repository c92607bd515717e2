"""Reads a serialised RateLimitRequest into values, within bounds (B14, B15)."""

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import (
    DEFAULT_BOUNDS,
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
    RequestBounds,
)
from tollgate.serve.ratelimit.codec.messages import RequestMessage
from tollgate.serve.ratelimit.codec.ordinary_requests import ordinary_request

_UNITS: dict[int, Unit] = {int(unit): unit for unit in Unit}
UTF8_BYTES_MAX = 4  # per character: a string short enough need not be encoded to know its bytes


class MalformedRequest(ValueError):  # noqa: N818 (a refusal reads as what is refused)
    """The request is not a RateLimitRequest in the form it claims to be in."""


class RequestOutOfBounds(MalformedRequest):
    """The request is well formed and larger than a bound of part A allows."""


def decode_request(payload: bytes, bounds: RequestBounds = DEFAULT_BOUNDS) -> RateLimitRequest:
    """The question in a serialised RateLimitRequest.

    Raises MalformedRequest when the bytes are something else, RequestOutOfBounds when they are too
    much. An override whose unit is absent or unknown comes out with `unit` None (B4).
    """
    size = len(payload)
    # What is no longer than an entry may be has no part that is.
    if size <= bounds.entry_bytes_max and size <= bounds.request_bytes_max:
        request = ordinary_request(payload, bounds)
        if request is not None:
            return request
    return decode_with_protobuf(payload, bounds)


def decode_with_protobuf(
    payload: bytes, bounds: RequestBounds = DEFAULT_BOUNDS
) -> RateLimitRequest:
    """As `decode_request`, by protobuf alone."""
    check_bound(len(payload), bounds.request_bytes_max, "request", "bytes")
    try:
        message = RequestMessage.FromString(payload)
    except DecodeError as error:
        raise MalformedRequest("request is not a serialised RateLimitRequest") from error
    domain = message.domain
    check_bound(len(domain.encode()), bounds.entry_bytes_max, "domain", "bytes")
    descriptors = message.descriptors
    check_bound(len(descriptors), bounds.descriptors_max, "request", "descriptors")
    return RateLimitRequest(
        domain,
        tuple([_descriptor(descriptor, i, bounds) for i, descriptor in enumerate(descriptors)]),
        message.hits_addend,
    )


def _descriptor(message: Any, position: int, bounds: RequestBounds) -> RateLimitDescriptor:
    found = message.entries
    if len(found) > bounds.entries_max:
        check_bound(len(found), bounds.entries_max, f"descriptors[{position}]", "entries")
    entries = tuple([(entry.key, entry.value) for entry in found])
    surely_short = bounds.entry_bytes_max // UTF8_BYTES_MAX
    for key, value in entries:
        if len(key) > surely_short or len(value) > surely_short:
            _check_entries(entries, position, bounds.entry_bytes_max)
    override = None
    if message.HasField("limit"):
        limit = message.limit
        override = Override(limit.requests_per_unit, _UNITS.get(limit.unit))
    hits_addend = message.hits_addend.value if message.HasField("hits_addend") else None
    return RateLimitDescriptor(entries, override, hits_addend, message.is_negative_hits)


def _check_entries(entries: Sequence[tuple[str, str]], position: int, bytes_max: int) -> None:
    for i, entry in enumerate(entries):
        for part, text in zip(("key", "value"), entry, strict=True):
            where = f"descriptors[{position}].entries[{i}].{part}"
            check_bound(len(text.encode()), bytes_max, where, "bytes")


def check_bound(count: int, count_max: int, where: str, what: str) -> None:
    """Raises RequestOutOfBounds when there are more than are allowed."""
    if count > count_max:
        raise RequestOutOfBounds(f"{where} has {count} {what}, at most {count_max} are allowed")
