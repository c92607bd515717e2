"""Reads the proto3 JSON form of a question, as strictly as B16 wants it."""

import json
import re
from typing import NoReturn

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor as MessageDescriptor
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tollgate.actors.ratelimit.rules.descriptors import DEFAULT_BOUNDS, RequestBounds
from tollgate.serve.net.json_values import holds_more_values
from tollgate.serve.ratelimit.codec.messages import RequestMessage
from tollgate.serve.ratelimit.codec.requests import (
    MalformedRequest,
    RequestOutOfBounds,
    check_bound,
)

JSON_COMPLAINT_CHARS_MAX = 200
# An entry is an object with two members; all else of a descriptor has fewer.
VALUES_PER_ENTRY, VALUES_PER_DESCRIPTOR = 3, 16
NUMBER_CHARS_MAX = 40
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)


def request_from_json(body: bytes, bounds: RequestBounds = DEFAULT_BOUNDS) -> bytes:
    """The serialised RateLimitRequest for a proto3 JSON one; strict, as B16 wants it.

    Raises MalformedRequest for anything else. The caller bounds the body.
    """
    per_descriptor = VALUES_PER_DESCRIPTOR + VALUES_PER_ENTRY * bounds.entries_max
    values_max = VALUES_PER_DESCRIPTOR + per_descriptor * bounds.descriptors_max
    if holds_more_values(body, values_max):
        raise RequestOutOfBounds(f"body holds more than {values_max} values")
    try:
        document = json.loads(
            body.decode(),
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_no_constant,
            parse_int=_short_integer,
        )
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(_short(f"body is not JSON: {error}")) from error
    _check_counts(document, bounds)
    _check_message(document, RequestMessage.DESCRIPTOR, "request", bounds.entry_bytes_max)
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


def _check_counts(document: object, bounds: RequestBounds) -> None:
    """Refuses too many descriptors or entries before anything is made of them: to read them takes
    a hundred times as long as to count them."""
    descriptors = _list_in(document, "descriptors")
    check_bound(len(descriptors), bounds.descriptors_max, "request", "descriptors")
    for i, descriptor in enumerate(descriptors):
        entries = _list_in(descriptor, "entries")
        check_bound(len(entries), bounds.entries_max, f"descriptors[{i}]", "entries")


def _list_in(value: object, name: str) -> list[object]:
    """The list of that name in an object; empty when there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _short_integer(text: str) -> int:
    if len(text) > NUMBER_CHARS_MAX:
        raise ValueError("a number is too long")
    return int(text)


def _check_message(value: object, descriptor: MessageDescriptor, where: str, text_max: int) -> None:
    """Refuses what protobuf's reader lets pass: lists or strings in an object's place, a field by
    both its names, and strings like "1_0" for numbers. What passes is no deeper than a request, and
    its texts have at most `text_max` characters."""
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
                _check_field(element, field, f"{where}.{name}", text_max)


def _check_field(value: object, field: FieldDescriptor, where: str, text_max: int) -> None:
    if isinstance(value, str):
        check_bound(len(value), text_max, where, "characters")
    message = field.message_type
    is_wrapper = message is not None and message.full_name == "google.protobuf.UInt64Value"
    is_number = is_wrapper or field.cpp_type == FieldDescriptor.CPPTYPE_UINT32
    if message is not None and not is_wrapper:
        _check_message(value, message, where, text_max)
    elif field.enum_type is not None:
        is_known_name = isinstance(value, str) and value in field.enum_type.values_by_name
        if not is_known_name and type(value) is not int:
            raise MalformedRequest(f"{where} is neither a known name nor a number")
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not isinstance(value, str):
        raise MalformedRequest(f"{where} is not a text")
    elif is_number and isinstance(value, str) and not _JSON_NUMBER.fullmatch(value):
        raise MalformedRequest(f"{where} is not a number")
