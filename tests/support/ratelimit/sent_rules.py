"""Rules as a control plane sends them, written byte by byte from the numbers in B20: so the classes
that Tollgate has made for itself are held to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf import any_pb2, struct_pb2

TYPE_URL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
UNITS = {"second": 1, "minute": 2, "hour": 3, "day": 4, "month": 5, "year": 6, "week": 7}


@dataclass(frozen=True, slots=True)
class SentLimit:
    """A RateLimitPolicy. `unit`: a name, or a number of the wire."""

    requests: int = 0
    unit: str | int = 0
    is_unlimited: bool = False
    name: str = ""
    replaces: Sequence[str] = ()

    def written(self) -> bytes:
        unit = UNITS[self.unit] if isinstance(self.unit, str) else self.unit
        replaced = b"".join(_nested(5, _text(1, name)) for name in self.replaces)
        flags = _number(1, unit) + _number(2, self.requests) + _number(3, int(self.is_unlimited))
        return flags + _text(4, self.name) + replaced


@dataclass(frozen=True, slots=True)
class SentRule:
    """A RateLimitDescriptor."""

    key: str
    value: str = ""
    limit: SentLimit | None = None
    children: Sequence["SentRule"] = ()
    is_shadow: bool = False
    is_quota: bool = False
    has_detailed_metric: bool = False
    metadata: Mapping[str, Any] | None = None

    def written(self) -> bytes:
        parts = [_text(1, self.key), _text(2, self.value)]
        if self.limit is not None:
            parts.append(_nested(3, self.limit.written()))
        parts += [_nested(4, child.written()) for child in self.children]
        flags = (self.is_shadow, self.has_detailed_metric, self.is_quota)
        parts += [_number(number, int(flag)) for number, flag in enumerate(flags, start=5)]
        if self.metadata is not None:
            struct = struct_pb2.Struct()
            struct.update(dict(self.metadata))
            parts.append(_nested(8, struct.SerializeToString()))
        return b"".join(parts)


def written(name: str, domain: str, *rules: SentRule) -> bytes:
    """A serialised RateLimitConfig."""
    descriptors = b"".join(_nested(3, rule.written()) for rule in rules)
    return _text(1, name) + _text(2, domain) + descriptors


def resource(name: str, domain: str, *rules: SentRule) -> any_pb2.Any:
    """The same, as a response has it."""
    return any_pb2.Any(type_url=TYPE_URL, value=written(name, domain, *rules))


def limited(key: str, requests: int, unit: str = "year", value: str = "") -> SentRule:
    """A rule with a limit and nothing else."""
    return SentRule(key, value, SentLimit(requests, unit))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number) if number else b""


def _nested(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _nested(field, text.encode()) if text else b""
