"""Regular expressions as the reference has them (B19): RE2's language, and its linear time.

Python's own backtrack: what a caller puts into a name could hold up the process that sums up for
seconds, and classes such as `[[:alnum:]]` mean something else to it without a word.
"""

from collections.abc import Mapping
from typing import Protocol, cast


class Expression(Protocol):
    """A compiled expression; Python's own are some, too."""

    @property
    def groups(self) -> int:
        """How many groups there are."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """The numbers of named groups."""

    def search(self, text: str, /) -> "ExpressionMatch | None":
        """The first place that matches, if there is one."""


class ExpressionMatch(Protocol):
    """A place where an expression matches."""

    @property
    def re(self) -> Expression:
        """The expression."""

    def __getitem__(self, group: int | str, /) -> str | None:
        """What a group matched; None: the group took no part."""


class BadExpressionError(ValueError):
    """A text that is not an expression; `str()` continues "… is not a regular expression: "."""


class _AnyTextExpression:
    """An expression that takes any text: what UTF-8 has no bytes for is matched as `?`."""

    __slots__ = ("_pattern",)

    def __init__(self, pattern: Expression) -> None:
        self._pattern = pattern

    @property
    def groups(self) -> int:
        return self._pattern.groups

    @property
    def groupindex(self) -> Mapping[str, int]:
        return self._pattern.groupindex

    def search(self, text: str, /) -> ExpressionMatch | None:
        return self._pattern.search(text.encode(errors="replace").decode())


def compiled(text: str) -> Expression:
    """The expression of a text. Raises BadExpressionError."""
    # (here, for few nodes have expressions, and every process reads settings)
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return _AnyTextExpression(cast(Expression, re2.compile(text, options)))
    except UnicodeEncodeError:
        raise BadExpressionError("it is not UTF-8") from None
    except re2.error as error:
        (reason,) = error.args
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadExpressionError(words) from None
