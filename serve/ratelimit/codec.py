"""The wire forms of a rate-limit question and its answer: protobuf and proto3 JSON (B14 to B16).

Requests are parsed by protobuf's own classes. Answers are the hot path and composed by hand: every
`*_bytes` function returns a complete, framed protobuf field, and protobuf concatenates, so an
answer is a join:

    response_bytes(overall, [status_bytes(code, current_limit_bytes(...), remaining, reset_s), ...])

A rule's `current_limit_bytes` never change, so they are made once and kept with the rule. Zero
values are left out, as proto3 does; field numbers are those of B15.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

from envoy.service.ratelimit.v3 import rls_pb2
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.descriptor import Descriptor as MessageDescriptor
from google.protobuf.descriptor import FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message

from actors.ratelimit.descriptors import (
    DEFAULT_BOUNDS,
    Bounds,
    Descriptor,
    Override,
    Request,
)
from actors.ratelimit.windows import Unit

JSON_COMPLAINT_CHARS_MAX = 200
VARINTS_KEPT_MAX = 16_384
LIMITS_KEPT_MAX = 4_096
REMAINING_UNLIMITED = 2**32 - 1

SERVICE_NAME = "envoy.service.ratelimit.v3.RateLimitService"
METHOD_NAME = "ShouldRateLimit"
METHOD_PATH = f"/{SERVICE_NAME}/{METHOD_NAME}"


class MalformedRequest(ValueError):  # noqa: N818 (a refusal reads as what is refused)
    """The request is not a RateLimitRequest in the form it claims to be in."""


class RequestOutOfBounds(MalformedRequest):
    """The request is well formed and larger than a bound of part A allows."""


# --- message classes ------------------------------------------------------------------------------


def _message_pool(root: FileDescriptor) -> descriptor_pool.DescriptorPool:
    """A pool of our own that holds `root` and all it imports, and knows `is_negative_hits`.

    The published classes lack that field (part A, Refunds), and the default pool, which other
    libraries share, refuses a second version of a file.
    """
    pool = descriptor_pool.DescriptorPool()
    names_added: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in names_added:
            return
        names_added.add(file.name)
        for dependency in file.dependencies:
            add(dependency)
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        if proto.package == "envoy.extensions.common.ratelimit.v3":
            _add_is_negative_hits(proto)
        pool.Add(proto)

    add(root)
    return pool


def _add_is_negative_hits(file: descriptor_pb2.FileDescriptorProto) -> None:
    descriptor = next(m for m in file.message_type if m.name == "RateLimitDescriptor")
    if all(field.name != "is_negative_hits" for field in descriptor.field):
        descriptor.field.add(
            name="is_negative_hits",
            json_name="isNegativeHits",
            number=4,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
        )


MESSAGE_POOL = _message_pool(rls_pb2.DESCRIPTOR)


# The classes are made at run time, so a type checker cannot know their fields: hence `Any`.
def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(MESSAGE_POOL.FindMessageTypeByName(name))


RequestMessage = _message_class("envoy.service.ratelimit.v3.RateLimitRequest")
ResponseMessage = _message_class("envoy.service.ratelimit.v3.RateLimitResponse")
_Struct = _message_class("google.protobuf.Struct")


# --- requests -------------------------------------------------------------------------------------

_UNITS: dict[int, Unit] = {int(unit): unit for unit in Unit}
UTF8_BYTES_MAX = 4  # per character: a string short enough need not be encoded to know its bytes


def decode_request(payload: bytes, bounds: Bounds = DEFAULT_BOUNDS) -> Request:
    """The question in a serialised RateLimitRequest.

    Raises MalformedRequest when the bytes are something else, RequestOutOfBounds when they are too
    much. An override whose unit is absent or unknown comes out with `unit` None (B4).
    """
    _check_bound(len(payload), bounds.request_bytes_max, "request", "bytes")
    try:
        message = RequestMessage.FromString(payload)
    except DecodeError as error:
        raise MalformedRequest("request is not a serialised RateLimitRequest") from error
    descriptors = message.descriptors
    _check_bound(len(descriptors), bounds.descriptors_max, "request", "descriptors")
    return Request(
        message.domain,
        tuple([_descriptor(descriptor, i, bounds) for i, descriptor in enumerate(descriptors)]),
        message.hits_addend,
    )


def _descriptor(message: Any, position: int, bounds: Bounds) -> Descriptor:
    entries = tuple([(entry.key, entry.value) for entry in message.entries])
    if len(entries) > bounds.entries_max:
        where = f"descriptors[{position}]"
        _check_bound(len(entries), bounds.entries_max, where, "entries")
    surely_short = bounds.entry_bytes_max // UTF8_BYTES_MAX
    for key, value in entries:
        if len(key) > surely_short or len(value) > surely_short:
            _check_entries(entries, position, bounds.entry_bytes_max)
    override = None
    if message.HasField("limit"):
        limit = message.limit
        override = Override(limit.requests_per_unit, _UNITS.get(limit.unit))
    hits_addend = message.hits_addend.value if message.HasField("hits_addend") else None
    return Descriptor(entries, override, hits_addend, message.is_negative_hits)


def _check_entries(entries: Sequence[tuple[str, str]], position: int, bytes_max: int) -> None:
    for i, entry in enumerate(entries):
        for part, text in zip(("key", "value"), entry, strict=True):
            where = f"descriptors[{position}].entries[{i}].{part}"
            _check_bound(len(text.encode()), bytes_max, where, "bytes")


def _check_bound(count: int, count_max: int, where: str, what: str) -> None:
    if count > count_max:
        raise RequestOutOfBounds(f"{where} has {count} {what}, at most {count_max} are allowed")


# --- answers --------------------------------------------------------------------------------------


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
def _remaining_field(remaining: int) -> bytes:
    return b"\x18" + _varint(remaining) if remaining else b""


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
    """
    response = _CODE_FIELDS[overall_code] + b"".join(statuses)
    for name, value in headers:
        response += _framed(3, _text_field(1, name) + _text_field(2, value))
    if dynamic_metadata is not None:
        struct = _Struct()
        json_format.ParseDict(_plain(dynamic_metadata), struct)
        response += _framed(6, struct.SerializeToString(deterministic=True))
    return response


def _plain(value: object) -> Any:
    """`value` in the dicts and lists that protobuf's JSON reader insists on."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# --- JSON -----------------------------------------------------------------------------------------

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)


def request_from_json(body: bytes) -> bytes:
    """The serialised RateLimitRequest for a proto3 JSON one; strict, as B16 wants it.

    Raises MalformedRequest for anything else. The caller bounds the body.
    """
    try:
        document = json.loads(
            body.decode(), object_pairs_hook=_object_without_duplicates, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(_short(f"body is not JSON: {error}")) from error
    _check_message(document, RequestMessage.DESCRIPTOR, "request")
    message: Message = RequestMessage()
    try:
        json_format.ParseDict(document, message)
    except (json_format.ParseError, OverflowError) as error:
        raise MalformedRequest(_short(f"body is not a RateLimitRequest: {error}")) from error
    return message.SerializeToString()


def _short(complaint: str) -> str:
    """One line of bounded length: a complaint may quote what the caller sent."""
    return " ".join(complaint.split())[:JSON_COMPLAINT_CHARS_MAX]


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("an object names a field twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _check_message(value: object, descriptor: MessageDescriptor, where: str) -> None:
    """Refuses what protobuf's reader lets pass: lists or strings in an object's place, a field by
    both its names, and strings like "1_0" for numbers. What passes is no deeper than a request."""
    if not isinstance(value, dict):
        raise MalformedRequest(f"{where} is not an object")
    names_seen: set[str] = set()
    for name, item in value.items():
        field = descriptor.fields_by_camelcase_name.get(name) or descriptor.fields_by_name.get(name)
        if field is None:
            raise MalformedRequest(_short(f"{where} has no field {name!r}"))
        if field.name in names_seen:
            raise MalformedRequest(f"{where} names the field {field.name} twice")
        names_seen.add(field.name)
        if item is not None:
            items = item if field.is_repeated and isinstance(item, list) else [item]
            for element in items:
                _check_field(element, field, f"{where}.{name}")


def _check_field(value: object, field: FieldDescriptor, where: str) -> None:
    message = field.message_type
    is_wrapper = message is not None and message.full_name == "google.protobuf.UInt64Value"
    is_number = is_wrapper or field.cpp_type == FieldDescriptor.CPPTYPE_UINT32
    if message is not None and not is_wrapper:
        _check_message(value, message, where)
    elif field.enum_type is not None:
        is_known_name = isinstance(value, str) and value in field.enum_type.values_by_name
        if not is_known_name and type(value) is not int:
            raise MalformedRequest(f"{where} is neither a known name nor a number")
    elif is_number and isinstance(value, str) and not _JSON_NUMBER.fullmatch(value):
        raise MalformedRequest(f"{where} is not a number")


def response_to_json(payload: bytes) -> bytes:
    """The proto3 JSON form of a serialised RateLimitResponse, fields in the order of B16."""
    document = json_format.MessageToDict(ResponseMessage.FromString(payload))
    for status in document.get("statuses", ()):
        limit = status.get("currentLimit")
        if limit and "name" in limit:
            status["currentLimit"] = {"name": limit.pop("name"), **limit}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
