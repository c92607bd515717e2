"""Reads the ordinary request straight from its bytes, several times as fast as through protobuf.

    0x0a <length> domain
    0x12 <length> descriptor, any number:    0x0a <length> entry, any number:
                                                 0x0a <length> key   0x12 <length> value
    0x18 <hits_addend>, at the end or left out

Lengths take one or two bytes and the addend takes one. An empty value may be left out, as proto3
does. Everything else, rare, malformed or more than an ordinary number of parts, is None here and
left to protobuf: this file refuses nothing, and reads nothing otherwise than protobuf does. What is
read in vain is read twice, so it ends with the first part that is too many.
"""

from tollgate.actors.ratelimit.rules.descriptors import (
    DEFAULT_BOUNDS,
    Entries,
    RateLimitDescriptor,
    RateLimitRequest,
    RequestBounds,
)

# Tags: the number of a field << 3 | its type on the wire.
_DOMAIN, _DESCRIPTOR, _HITS_ADDEND = 0x0A, 0x12, 0x18
_ENTRY, _KEY, _VALUE = 0x0A, 0x0A, 0x12
_ONE_BYTE_MAX = 0x7F


def ordinary_request(
    payload: bytes, bounds: RequestBounds = DEFAULT_BOUNDS
) -> RateLimitRequest | None:
    """The request in an ordinary payload; None for any other, and for one with too many parts."""
    size = len(payload)
    descriptors_max, entries_max = bounds.descriptors_max, bounds.entries_max
    try:
        if payload[0] != _DOMAIN:
            return None
        at = 2
        end = payload[1]
        if end > _ONE_BYTE_MAX:
            end, at = _two_bytes(end, payload, at)
        end += at
        domain = payload[at:end].decode()
        descriptors: list[RateLimitDescriptor] = []
        while end < size and payload[end] == _DESCRIPTOR:
            at = end + 2
            end = payload[end + 1]
            if end > _ONE_BYTE_MAX:
                end, at = _two_bytes(end, payload, at)
            end += at
            if len(descriptors) >= descriptors_max:
                return None
            descriptors.append(RateLimitDescriptor(_entries(payload, at, end, entries_max)))
        hits_addend = 0
        # An end beyond the payload has no byte to look at: what should be there was cut off.
        if end != size:
            hits_addend = payload[end + 1]
            if payload[end] != _HITS_ADDEND or hits_addend > _ONE_BYTE_MAX or end + 2 != size:
                return None
    except (_NotOrdinary, IndexError, UnicodeDecodeError):
        return None
    return RateLimitRequest(domain, tuple(descriptors), hits_addend)


class _NotOrdinary(Exception):  # noqa: N818 (it never leaves this file)
    pass


def _entries(payload: bytes, at: int, descriptor_end: int, entries_max: int) -> Entries:
    """The entries from `at` up to the end of their descriptor."""
    entries: list[tuple[str, str]] = []
    while at < descriptor_end:
        if payload[at] != _ENTRY or len(entries) >= entries_max:
            raise _NotOrdinary
        end = payload[at + 1]
        at += 2
        if end > _ONE_BYTE_MAX:
            end, at = _two_bytes(end, payload, at)
        end += at
        if payload[at] != _KEY:
            raise _NotOrdinary
        key_end = payload[at + 1]
        at += 2
        if key_end > _ONE_BYTE_MAX:
            key_end, at = _two_bytes(key_end, payload, at)
        key_end += at
        key = payload[at:key_end].decode()
        at = key_end
        value = ""
        if at != end:
            if payload[at] != _VALUE:
                raise _NotOrdinary
            value_end = payload[at + 1]
            at += 2
            if value_end > _ONE_BYTE_MAX:
                value_end, at = _two_bytes(value_end, payload, at)
            if value_end + at != end:
                raise _NotOrdinary
            value = payload[at:end].decode()
            at = end
        entries.append((key, value))
    if at != descriptor_end:
        raise _NotOrdinary
    return tuple(entries)


def _two_bytes(low: int, payload: bytes, at: int) -> tuple[int, int]:
    """The length that `low` begins and the byte at `at` ends, and the position behind it."""
    high = payload[at]
    if high > _ONE_BYTE_MAX:
        raise _NotOrdinary
    return low - 0x80 + (high << 7), at + 1
