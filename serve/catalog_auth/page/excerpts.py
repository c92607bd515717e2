"""The lines of a text around a place in it, short enough to be looked at."""

from dataclasses import dataclass

from tollgate.serve.catalog_auth.document.positions import TextPosition

LINES_BEFORE = 1
LINES_AFTER = 2
# Of a longer line, what is around the column.
LINE_LENGTH_MAX = 160
BEFORE_COLUMN = 40
CUT = "…"


@dataclass(frozen=True, slots=True)
class ShownLine:
    """`is_marked`: it is the line that is spoken of."""

    number: int
    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines around `line`, `column`, which both count from 1."""

    line: int
    column: int
    lines: tuple[ShownLine, ...]


def excerpt_of(lines: list[str], place: TextPosition) -> Excerpt:
    """The excerpt at a place of the text with these lines."""
    first = max(0, place.line - 1 - LINES_BEFORE)
    shown = lines[first : place.line + LINES_AFTER]
    return Excerpt(
        place.line,
        place.column,
        tuple(
            ShownLine(
                number,
                _cut(text, place.column if number == place.line else 1),
                number == place.line,
            )
            for number, text in enumerate(shown, start=first + 1)
        ),
    )


def _cut(line: str, column: int) -> str:
    if len(line) <= LINE_LENGTH_MAX:
        return line
    start = max(0, min(column - 1 - BEFORE_COLUMN, len(line) - LINE_LENGTH_MAX))
    end = start + LINE_LENGTH_MAX
    return f"{CUT if start else ''}{line[start:end]}{CUT if end < len(line) else ''}"
