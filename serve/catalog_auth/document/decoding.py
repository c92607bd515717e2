"""Bytes to a JSON value, strictly (RFC 8259), and why not when they are none."""

import json
import re
from codecs import BOM_UTF8

import msgspec

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.net.json_values import excess

_decoder = msgspec.json.Decoder()
_AT_BYTE = re.compile(r"\(byte (\d+)\)")
# The largest of the public documents that the cases were taken from has 5,000 values, in 217 kB; a
# page of 100 public Sentinel-2 items has 105,000, in 3 MB.
VALUES_MAX = 120_000
# Where the operator lets documents be fetched: 8 MiB of such pages.
FETCHED_VALUES_MAX = 300_000
STRING_BYTES_MAX = 256 * 1024
EXPLAINED_BYTES_MAX = 512 * 1024
_NOT_UTF_8 = "the text is not UTF-8"
_TOO_DEEP = "it is nested too deeply: some hundred levels are read"


class UnreadableError(ValueError):
    """The bytes are no JSON text. `line` and `column` count from 1, columns in characters."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(f"line {line}, column {column}: {reason}")
        self.line = line
        self.column = column
        self.reason = reason


class TooMuchError(UnreadableError):
    """A text that holds more than is read of texts from outside."""


def decode_foreign(raw: bytes, values_max: int = VALUES_MAX) -> JsonValue:
    """The value of a text from outside, for whoever serves others as well, whom no step may hold up
    for long: to decode is one, and so is every search in a string.

    Raises:
        UnreadableError: as `decode`.
        TooMuchError: it holds more values than `values_max`, or a string of more than
            STRING_BYTES_MAX.
    """
    if reason := excess(raw, values_max, STRING_BYTES_MAX):
        raise TooMuchError(1, 1, reason)
    return decode(raw)


def decode(raw: bytes) -> JsonValue:
    """The value of a JSON text. A repeated member counts with its last value.

    Raises:
        UnreadableError: it is malformed, not UTF-8, too deep, or has a number out of range.
    """
    if raw.startswith(BOM_UTF8):
        raise UnreadableError(1, 1, "the text begins with a byte order mark: save it without one")
    try:
        value: JsonValue = _decoder.decode(raw)
    except RecursionError:
        raise UnreadableError(1, 1, _TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _explained(raw, str(error)) from None
    return value


def _explained(raw: bytes, reason: str) -> UnreadableError:
    """The fast decoder gives a rough place: the standard library's says it to the character, but
    takes too long to read a large text with."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        return UnreadableError(*_place(before, len(before)), _NOT_UTF_8)
    try:
        if len(raw) <= EXPLAINED_BYTES_MAX:
            json.loads(text)
    except json.JSONDecodeError as error:
        message = error.msg[0].lower() + error.msg[1:]
        return UnreadableError(error.lineno, error.colno, message)
    except RecursionError:
        return UnreadableError(1, 1, _TOO_DEEP)
    except ValueError:
        return UnreadableError(1, 1, "a number has too many digits")
    # It reads more than RFC 8259 allows: NaN, half a surrogate pair, numbers beyond a double.
    found = _AT_BYTE.search(reason)
    offset = len(raw[: int(found[1])].decode(errors="ignore")) if found else len(text)
    return UnreadableError(*_place(text, offset), _AT_BYTE.sub("", reason).strip())


def _place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
