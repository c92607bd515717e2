"""Writes the proto3 JSON form of an answer (B16), as `protobuf` would and ten times as fast.

Fields stand in the order of B16, zeros are left out. Answers as `answers` writes nearly all of them
are read by hand, from their bytes; what few have (headers, metadata) is left to the libraries.
"""

import json
from functools import lru_cache
from typing import Any

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.serve.ratelimit.codec.messages import ResponseMessage

LIMITS_KEPT_MAX = 4_096
RESETS_KEPT_MAX = 4_096

# The fields of an answer and of its statuses, as they begin (B15).
_CODE, _STATUS, _LIMIT, _REMAINING, _RESET = b"\x08", 0x12, 0x12, 0x18, 0x22
_CODES = ("UNKNOWN", "OK", "OVER_LIMIT")


def response_to_json(payload: bytes) -> bytes:
    """The JSON of a serialised RateLimitResponse that Tollgate made."""
    try:
        return _ordinary(payload)
    except _Unusual:
        return _any(payload)


class _Unusual(Exception):  # noqa: N818 (it is no error)
    """The bytes hold more than nearly all answers do."""


def _ordinary(payload: bytes) -> bytes:
    """Of a code, and statuses of at most 127 bytes."""
    at, size = 0, len(payload)
    fields = []
    if payload[:1] == _CODE:
        fields.append(f'"overallCode":"{_CODES[payload[1]]}"')
        at = 2
    statuses = []
    while at < size:
        if payload[at] != _STATUS or (length := payload[at + 1]) > 0x7F:
            raise _Unusual
        at += 2 + length
        statuses.append(_ordinary_status(payload[at - length : at]))
    if statuses:
        fields.append(f'"statuses":[{",".join(statuses)}]')
    return f"{{{','.join(fields)}}}".encode()


def _ordinary_status(status: bytes) -> str:
    fields = []
    at, size = 0, len(status)
    if status[:1] == _CODE:
        fields.append(f'"code":"{_CODES[status[1]]}"')
        at = 2
    if at < size and status[at] == _LIMIT:
        start, at = at, at + 2 + status[at + 1]
        fields.append(_limit_of(status[start + 2 : at]))
    if at < size and status[at] == _REMAINING:
        remaining, at = _varint(status, at + 1)
        fields.append(f'"limitRemaining":{remaining}')
    if at < size and status[at] == _RESET:
        fields.append(_reset_of(status[at + 2 :]))
        at += 2 + status[at + 1]
    if at != size:
        raise _Unusual
    return f"{{{','.join(fields)}}}"


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    number = shift = 0
    while (byte := content[at]) > 0x7F:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return number | byte << shift, at + 1


@lru_cache(maxsize=LIMITS_KEPT_MAX)
def _limit_of(content: bytes) -> str:
    limit = ResponseMessage.RateLimit.FromString(content)
    return _limit(limit.requests_per_unit, limit.unit, limit.name)


@lru_cache(maxsize=RESETS_KEPT_MAX)
def _reset_of(content: bytes) -> str:
    return f'"durationUntilReset":"{Duration.FromString(content).seconds}s"'


def _any(payload: bytes) -> bytes:
    message = ResponseMessage.FromString(payload)
    fields = []
    if code := message.overall_code:
        fields.append(f'"overallCode":"{_CODES[code]}"')
    if message.statuses:
        fields.append(f'"statuses":[{",".join(map(_status, message.statuses))}]')
    if message.response_headers_to_add:
        headers = map(json_format.MessageToDict, message.response_headers_to_add)
        fields.append(f'"responseHeadersToAdd":{_dumps(list(headers))}')
    if message.HasField("dynamic_metadata"):
        metadata = json_format.MessageToDict(message.dynamic_metadata)
        fields.append(f'"dynamicMetadata":{_dumps(metadata)}')
    return f"{{{','.join(fields)}}}".encode()


def _status(status: Any) -> str:
    fields = []
    if code := status.code:
        fields.append(f'"code":"{_CODES[code]}"')
    if status.HasField("current_limit"):
        limit = status.current_limit
        fields.append(_limit(limit.requests_per_unit, limit.unit, limit.name))
    if remaining := status.limit_remaining:
        fields.append(f'"limitRemaining":{remaining}')
    if status.HasField("duration_until_reset"):
        fields.append(f'"durationUntilReset":"{status.duration_until_reset.seconds}s"')
    return f"{{{','.join(fields)}}}"


@lru_cache(maxsize=LIMITS_KEPT_MAX)
def _limit(requests_per_unit: int, unit: int, name: str) -> str:
    fields: dict[str, object] = {}
    if name:
        fields["name"] = name
    if requests_per_unit:
        fields["requestsPerUnit"] = requests_per_unit
    if unit:
        fields["unit"] = Unit(unit).name
    return f'"currentLimit":{_dumps(fields)}'


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
