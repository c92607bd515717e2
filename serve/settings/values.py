"""Parsers of settings: the text of a variable in, its value out or a refusal.

The message of the `BadValueError` continues the sentence `NAME: 'text' ...`. The syntax is the
reference's (B22) with the additions of part A: durations may also be plain seconds.
Nothing here echoes the text, because it may be a secret.
"""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from typing import TypeVar

T = TypeVar("T")
Parser = Callable[[str], T]
Pairs = tuple[tuple[str, str], ...]

DURATION_NS_MAX = 2**63 - 1
PORT_MAX = 65_535

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_AMOUNT = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_NS_PER_UNIT = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # U+00B5, the micro sign
    "μs": 10**3,  # U+03BC, the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3_600 * 10**9,
}
# (an amount begins where no other goes on, so that a long one is read once)
_DURATION_PART = re.compile(f"(?<![0-9.])({_AMOUNT})({'|'.join(_NS_PER_UNIT)})")
_DURATION = re.compile(f"(?:{_DURATION_PART.pattern})+")
_PLAIN_SECONDS = re.compile(_AMOUNT)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAIL_ADDRESS = r"[^\s@<>,;:\"]+@[^\s@<>,;:\"]+"
_MAIL_SENDER = re.compile(rf"{_MAIL_ADDRESS}|[^<>@,;:\"\r\n]+ <{_MAIL_ADDRESS}>")
_SRV_NAME = re.compile(r"_[^.\s]+\._[^.\s]+\.\S+")


class BadValueError(ValueError):
    """A text that is not a value of its variable; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on or call. `host` empty: every interface; `port` 0: a free one."""

    host: str
    port: int


def text(value: str) -> str:
    """Any text, as it is."""
    return value


def folder(value: str) -> str:
    """The path of a folder."""
    if not value.strip():
        raise BadValueError("is not the name of a folder")
    return value


def boolean(value: str) -> bool:
    """Go's ParseBool (B22)."""
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise BadValueError(
        "is neither true nor false (1, t, T, TRUE, true, True, 0, f, F, FALSE, ...)"
    )


def whole_number(lowest: int, highest: int) -> Parser[int]:
    """A decimal integer from `lowest` to `highest`."""
    message = f"is not a whole number between {lowest} and {highest}"

    def parse(value: str) -> int:
        # The length is bounded first: Python refuses to convert thousands of digits.
        if len(value) > 20 or not _WHOLE.fullmatch(value):
            raise BadValueError(message)
        number = int(value)
        if not lowest <= number <= highest:
            raise BadValueError(message)
        return number

    return parse


def number(lowest: float, highest: float) -> Parser[float]:
    """A decimal number from `lowest` to `highest`."""
    message = f"is not a number between {lowest:g} and {highest:g}"

    def parse(value: str) -> float:
        if not _NUMBER.fullmatch(value) or not lowest <= float(value) <= highest:
            raise BadValueError(message)
        return float(value)

    return parse


def ratio_float32(value: str) -> float:
    """A number from 0 to 1, rounded to the nearest float32, as B7 computes with it."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", number(0, 1)(value)))
    assert isinstance(rounded, float)
    return rounded


def duration(lowest: str = "0s", highest: str = "876000h") -> Parser[float]:
    """A duration in seconds: Go syntax (`1h30m`, `150us`) or plain seconds (`10`)."""
    lowest_ns, highest_ns = duration_ns(lowest), duration_ns(highest)

    def parse(value: str) -> float:
        nanoseconds = duration_ns(value)
        if not lowest_ns <= nanoseconds <= highest_ns:
            raise BadValueError(f"is not a duration between {lowest} and {highest}")
        return nanoseconds / 10**9

    return parse


def duration_or_zero(lowest: str, highest: str) -> Parser[float]:
    """A duration as above, or 0, which means never."""
    between, lowest_s = duration("0s", highest), duration_ns(lowest) / 10**9

    def parse(value: str) -> float:
        seconds = between(value)
        if 0 < seconds < lowest_s:
            raise BadValueError(f"is neither 0s nor a duration between {lowest} and {highest}")
        return seconds

    return parse


def duration_ns(value: str) -> int:
    """A duration in nanoseconds, truncated to whole ones; a sign may precede it."""
    sign = -1 if value.startswith("-") else 1
    body = value[1:] if value[:1] in ("+", "-") else value
    if _PLAIN_SECONDS.fullmatch(body):
        nanoseconds = int(Decimal(body) * 10**9)
    elif _DURATION.fullmatch(body):
        parts = _DURATION_PART.findall(body)
        nanoseconds = sum(int(Decimal(amount) * _NS_PER_UNIT[unit]) for amount, unit in parts)
    else:
        raise BadValueError("is not a duration such as 10s, 150us, 1h30m or 10 (seconds)")
    if nanoseconds > DURATION_NS_MAX:
        raise BadValueError("is a duration of more than 292 years")
    return sign * nanoseconds


def is_loopback_host(host: str) -> bool:
    """True for a host that only this machine reaches; other names than localhost are not."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def one_of(choices: Mapping[str, T], *, ignores_case: bool = False) -> Parser[T]:
    """One of a closed set of words."""
    message = f"is not one of {', '.join(choices)}"
    table = {word.lower(): choice for word, choice in choices.items()} if ignores_case else choices

    def parse(value: str) -> T:
        word = value.lower() if ignores_case else value
        if word not in table:
            raise BadValueError(message)
        return table[word]

    return parse


def words(value: str) -> tuple[str, ...]:
    """A comma-separated list; blanks around an item and empty items do not count."""
    return tuple(item.strip() for item in value.split(",") if item.strip())


def pairs(separator: str) -> Parser[Pairs]:
    """A map `k:v,k:v`, split at the first separator of each item; of equal keys the last wins."""

    def parse(value: str) -> Pairs:
        found: dict[str, str] = {}
        for position, item in enumerate(words(value), start=1):
            key, mark, content = item.partition(separator)
            if not mark or not key.strip():
                raise BadValueError(
                    f"has an item (number {position}) not written key{separator}value"
                )
            found[key.strip()] = content.strip()
        return tuple(found.items())

    return parse


def address(value: str) -> Address:
    """`host:port`, `:port` or `[ipv6]:port`."""
    host, mark, port_text = value.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not mark or (":" in host and not is_bracketed) or any(map(str.isspace, host)):
        raise BadValueError("is not an address such as host:9090, :9090 or [::1]:9090")
    try:
        port = whole_number(0, PORT_MAX)(port_text)
    except BadValueError as error:
        raise BadValueError(f"has a port that {error}") from None
    return Address(host[1:-1] if is_bracketed else host, port)


def peers(value: str) -> tuple[Address, ...]:
    """A comma-separated list of `host:port` to connect to."""
    found = tuple(address(item) for item in words(value))
    if not all(peer.host and peer.port for peer in found):
        raise BadValueError("has an item without a host or with port 0")
    return found


def url_path(value: str) -> str:
    """The path of a page."""
    if not value.startswith("/") or any(map(str.isspace, value)):
        raise BadValueError("is not a path such as /metrics")
    return value


def header_name(value: str) -> str:
    """The name of a response header."""
    if not _HEADER_NAME.fullmatch(value):
        raise BadValueError("is not the name of a header")
    return value


def srv_name(value: str) -> str:
    """The name of an SRV record, or empty."""
    if value and not _SRV_NAME.fullmatch(value):
        raise BadValueError("is not the name of an SRV record such as _memcache._tcp.example.com")
    return value


def mail_sender(value: str) -> str:
    """`address` or `Name <address>`, or empty."""
    if value and not _MAIL_SENDER.fullmatch(value):
        raise BadValueError("is not a sender such as Tollgate <tollgate@example.com>")
    return value


def waiting_pool(value: str) -> str:
    """The behaviour of an empty pool: it waits, and no other can be chosen."""
    if value.upper() in ("CREATE", "ERROR"):
        raise BadValueError(
            "is not supported: an empty pool always waits; use WAIT or a larger pool"
        )
    return value
