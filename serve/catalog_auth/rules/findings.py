"""Findings about a document: severity, place, message and repair.

A finding never carries a secret: whoever writes a message about one writes `redacted(secret)`.
"""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from tollgate.actors.kernel.json_value import JsonValue

# Steps from the root of a document: names of members and indices of lists.
Path = tuple[str | int, ...]

# A value in a message is cut after so many characters.
SHOWN_LENGTH_MAX = 80
# Of a secret, so many characters are shown.
REDACTED_LENGTH = 4


class Severity(StrEnum):
    """The severity of a finding; ordered by `rank`."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


# Structs where other values of this code are dataclasses: a document may have hundreds of these,
# and a frozen dataclass takes ten times as long to make.
class Operation(Struct, frozen=True):
    """One step of a JSON Patch (RFC 6902). `source` is the `from` of a move."""

    op: Literal["add", "remove", "replace", "move"]
    path: Path
    value: JsonValue = None
    source: Path | None = None


# Steps that belong together: all of them are applied, in order, or none.
Fix = tuple[Operation, ...]


class Suggestion(Struct, frozen=True):
    """A repair that loses something or guesses something: a person picks it, by its `title`."""

    title: str
    steps: Fix


class Finding(Struct, frozen=True):
    """`path` is where the reader has to look; it always exists, except for what is missing, where
    it is the place that should have it.

    `fix` is there when the repair is mechanical: it loses no value of the document and guesses
    nothing. Every other repair is one of `suggestions`, which are alternatives.
    """

    rule: str
    severity: Severity
    path: Path
    message: str
    fix: Fix | None = None
    suggestions: tuple[Suggestion, ...] = ()


def steps_below(below: Path, steps: Fix) -> Fix:
    """The steps of a document that stands at `below` in another one."""
    return tuple(
        Operation(
            step.op,
            (*below, *step.path),
            step.value,
            None if step.source is None else (*below, *step.source),
        )
        for step in steps
    )


def suggestion(title: str, *steps: Operation) -> tuple[Suggestion]:
    """A single alternative."""
    return (Suggestion(title, steps),)


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path; the root's is empty."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def redacted(secret: str) -> str:
    """What may be said of a secret: its length, and its first 4 characters when that is at most
    half of it."""
    start = secret[:REDACTED_LENGTH] if len(secret) >= 2 * REDACTED_LENGTH else ""
    return f"{_printable(start)}… ({len(secret)} characters)"


def shown(value: object) -> str:
    """A value for a message: as JSON, cut when it is long, control characters escaped."""
    if isinstance(value, str):
        # Escaping only lengthens a text: what is beyond the cut need not be looked at.
        text = _printable(json.dumps(value[: SHOWN_LENGTH_MAX + 1], ensure_ascii=False))
    elif isinstance(value, dict):
        text = f"an object of {len(value)} member{'s' * (len(value) > 1)}" if value else "{}"
    elif isinstance(value, list):
        text = f"a list of {len(value)}" if value else "[]"
    else:
        text = json.dumps(value)
    if len(text) <= SHOWN_LENGTH_MAX:
        return text
    return f"{text[:SHOWN_LENGTH_MAX]}…"


def _printable(text: str) -> str:
    """Control characters, and those that turn or hide text, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
