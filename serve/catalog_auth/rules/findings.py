"""Findings about a document: severity, place, message and repair.

A finding never carries a secret: whoever writes a message about one writes `redacted(secret)`.
"""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.paths import Path, length_of


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


def length_of_steps(steps: Fix) -> int:
    """The characters of the pointers in steps."""
    return sum([length_of(step.path) + length_of(step.source or ()) for step in steps])


def suggestion(title: str, *steps: Operation) -> tuple[Suggestion]:
    """A single alternative."""
    return (Suggestion(title, steps),)
