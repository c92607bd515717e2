"""Writes the proto3 JSON form of an answer (B16), as `protobuf` would and ten times as fast.

Fields stand in the order of B16, zeros are left out, and what few answers have (headers, metadata)
is left to the libraries.
"""

import json
from functools import lru_cache
from typing import Any

from google.protobuf import json_format

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.serve.ratelimit.codec.messages import ResponseMessage

LIMITS_KEPT_MAX = 4_096

_CODES = ("UNKNOWN", "OK", "OVER_LIMIT")


def response_to_json(payload: bytes) -> bytes:
    """The JSON of a serialised RateLimitResponse that Tollgate made."""
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
