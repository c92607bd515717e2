"""Serialises a RateLimitResponse by hand (B13 to B15).

Answers are the hot path. Every `*_bytes` function returns a complete, framed protobuf field, and
protobuf concatenates, so an answer is a join:

    response_bytes(overall, [status_bytes(code, current_limit_bytes(...), remaining, reset_s), ...])

A rule's `current_limit_bytes` never change, so they are made once and kept with the rule. Zero
values are left out, as proto3 does; field numbers are those of B15.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from google.protobuf import json_format

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.response import REMAINING_UNLIMITED
from tollgate.serve.ratelimit.codec.messages import ResponseMessage, StructMessage

VARINTS_KEPT_MAX = 16_384
LIMITS_KEPT_MAX = 4_096


class UnencodableResponse(ValueError):  # noqa: N818 (a refusal reads as what is refused)
    """The values fit no RateLimitResponse."""


def _varint(number: int) -> bytes:
    assert number >= 0, "only unsigned numbers are encoded here"
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _framed(field_number: int, content: bytes) -> bytes:
    """`content` as the length-delimited field `field_number`."""
    return bytes([field_number << 3 | 2]) + _varint(len(content)) + content


def _text_field(field_number: int, text: str) -> bytes:
    return _framed(field_number, text.encode()) if text else b""


# `RateLimitResponse.overall_code` and `DescriptorStatus.code` are both field 1.
# The codes are UNKNOWN 0, OK 1 and OVER_LIMIT 2.
_CODE_FIELDS = (b"", b"\x08\x01", b"\x08\x02")


@lru_cache(maxsize=VARINTS_KEPT_MAX)
def _kept_remaining_field(remaining: int) -> bytes:
    return b"\x18" + _varint(remaining) if remaining else b""


@lru_cache(maxsize=VARINTS_KEPT_MAX)
def _remaining_start(low: int) -> bytes:
    return b"\x18" + bytes((low & 0x7F | 0x80, low >> 7 | 0x80))


_kept_varint = lru_cache(maxsize=VARINTS_KEPT_MAX)(_varint)


def _remaining_field(remaining: int) -> bytes:
    # What is left of a large limit is another number each time, but its halves are not.
    if remaining < VARINTS_KEPT_MAX:
        return _kept_remaining_field(remaining)
    return _remaining_start(remaining & 0x3FFF) + _kept_varint(remaining >> 14)


# What a status starts with, by the length of its content, where that length takes one byte.
_SHORT_STATUS_STARTS = [b"\x12" + bytes([length]) for length in range(0x80)]


@lru_cache(maxsize=VARINTS_KEPT_MAX)
def _reset_field(reset_s: int) -> bytes:
    return _framed(4, b"\x08" + _varint(reset_s) if reset_s else b"")


@lru_cache(maxsize=LIMITS_KEPT_MAX)
def current_limit_bytes(requests_per_unit: int, unit: Unit, name: str) -> bytes:
    """A rule's limit as a status shows it: `DescriptorStatus.current_limit`, framed."""
    content = b"\x08" + _varint(requests_per_unit) if requests_per_unit else b""
    content += b"\x10" + _varint(unit)
    return _framed(2, content + _text_field(3, name))


def status_bytes(code: int, current_limit: bytes, remaining: int, reset_s: int | None) -> bytes:
    """One descriptor's status, framed as an element of `RateLimitResponse.statuses`.

    `current_limit` is what `current_limit_bytes` gave, or empty; `reset_s` None leaves it out.
    """
    content = _CODE_FIELDS[code] + current_limit + _remaining_field(remaining)
    if reset_s is not None:
        content += _reset_field(reset_s)
    if len(content) < len(_SHORT_STATUS_STARTS):
        return _SHORT_STATUS_STARTS[len(content)] + content
    return _framed(2, content)


def response_of_one(
    overall_code: int, code: int, current_limit: bytes, remaining: int, reset_s: int
) -> bytes:
    """As `response_bytes` of one such status: the ordinary answer, put together at once."""
    content = (
        _CODE_FIELDS[code] + current_limit + _remaining_field(remaining) + _reset_field(reset_s)
    )
    size = len(content)
    if size < len(_SHORT_STATUS_STARTS):
        return _CODE_FIELDS[overall_code] + _SHORT_STATUS_STARTS[size] + content
    return _CODE_FIELDS[overall_code] + _framed(2, content)


STATUS_WITHOUT_LIMIT = status_bytes(ResponseMessage.OK, b"", 0, None)
STATUS_UNLIMITED = status_bytes(ResponseMessage.OK, b"", REMAINING_UNLIMITED, None)


def response_bytes(
    overall_code: int,
    statuses: Iterable[bytes],
    headers: Sequence[tuple[str, str]] = (),
    dynamic_metadata: Mapping[str, object] | None = None,
) -> bytes:
    """A serialised RateLimitResponse; `headers` become `response_headers_to_add` (B13).

    `dynamic_metadata` holds JSON-like values: None, bools, numbers, strings, lists, mappings (B14).
    Raises UnencodableResponse when it fits no message.
    """
    response = _CODE_FIELDS[overall_code] + b"".join(statuses)
    for name, value in headers:
        response += _framed(3, _text_field(1, name) + _text_field(2, value))
    if dynamic_metadata is not None:
        struct = StructMessage()
        try:
            json_format.ParseDict(_plain(dynamic_metadata), struct)
        except (json_format.ParseError, ValueError, RecursionError) as error:
            raise UnencodableResponse("the metadata of a rule fits no message") from error
        response += _framed(6, struct.SerializeToString(deterministic=True))
    return response


def _plain(value: object) -> Any:
    """`value` in the dicts and lists that protobuf's JSON reader insists on."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
