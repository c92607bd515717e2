"""A file of environment variables, read as those read it who start services from one.

    shell     `NAME=VALUE` with or without `export`; quotes are taken off, escapes behind `"` read,
              a `#` behind a blank begins a comment (also systemd's and dotenv's, near enough)
    docker    everything behind the `=` is the value, quotes and blanks too; a `#` only begins a
              comment where it begins the line

A line that is a name alone takes its value from whoever starts the service. Values are not
expanded: `$NAME` in one is told.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LINES_MAX = 100_000

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPORT = re.compile(r"export[ \t]+")
_EXPANSION = re.compile(r"\$(?:[A-Za-z_]\w*|\{[^}]*\}|\()")
_ESCAPED = '"\\$`'


@dataclass(frozen=True, slots=True)
class Variable:
    """A line that sets a variable. `value` None: it is whatever it is where the service is started.
    `note`: what is odd about it."""

    line: int
    name: str
    value: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class OddLine:
    """A line that sets nothing, and why. It is not quoted: it may hold a secret."""

    line: int
    fault: str


def read_variables(text: str, *, is_docker: bool) -> Iterator[Variable | OddLine]:
    """The lines of a file that are neither empty nor comments, in order."""
    lines = text.removeprefix("\ufeff").split("\n")
    for number, raw in enumerate(lines[:LINES_MAX], start=1):
        line = raw.removesuffix("\r").lstrip()
        if line.strip() and not line.startswith("#"):
            yield _docker_line(number, line) if is_docker else _shell_line(number, line)
    if len(lines) > LINES_MAX:
        yield OddLine(LINES_MAX + 1, f"is beyond the {LINES_MAX} lines that are read")


def _docker_line(number: int, line: str) -> Variable | OddLine:
    name, mark, value = line.partition("=")
    if not mark:
        name = name.rstrip()
    if not _NAME.fullmatch(name):
        return OddLine(number, "is not written NAME=VALUE")
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    note = "the quotes are part of the value" if is_quoted else ""
    return Variable(number, name, value if mark else None, note)


def _shell_line(number: int, line: str) -> Variable | OddLine:
    found = _EXPORT.match(line)
    name, mark, rest = line[found.end() if found else 0 :].partition("=")
    if not mark:
        name = name.partition("#")[0].rstrip()
    if not _NAME.fullmatch(name):
        return OddLine(number, "is not written NAME=VALUE")
    if not mark:
        return Variable(number, name, None)
    value = _unquoted(rest)
    if value is None:
        return OddLine(number, "has a quote that does not end on this line")
    expansion = _EXPANSION.search(_without_literals(rest))
    note = f"{expansion[0].strip('(')} in it is taken as it stands" if expansion else ""
    return Variable(number, name, value, note)


def _unquoted(text: str) -> str | None:
    """The value without its quotes and what follows it; None for a quote that does not end."""
    value: list[str] = []
    kept = 0  # so much of it was quoted, and is kept whatever it is
    position = 0
    while position < len(text):
        char = text[position]
        if char == "#" and (not position or text[position - 1] in " \t"):
            break
        if char in "'\"":
            quoted, position = _quoted(text, position)
            if position < 0:
                return None
            value += quoted
            kept = len(value)
            continue
        value.append(char)
        position += 1
    return (
        "".join(value[:kept]) + "".join(value[kept:]).rstrip() if kept else ("".join(value).strip())
    )


def _quoted(text: str, start: int) -> tuple[list[str], int]:
    """The characters between quotes, and the position behind them; -1: they do not end."""
    quote, position = text[start], start + 1
    found: list[str] = []
    while position < len(text):
        char = text[position]
        if char == quote:
            return found, position + 1
        if char == "\\" and quote == '"' and text[position + 1 : position + 2] in _ESCAPED:
            position += 1
            char = text[position : position + 1]
        found.append(char)
        position += 1
    return found, -1


def _without_literals(text: str) -> str:
    """The text without what stands between single quotes or behind a backslash."""
    return re.sub(r"'[^']*'|\\.", "", text)
