"""The lines of a file, as CSV or as lines of JSON, each with its number (part D, Files of the
network).

A file whose first character is `{` is lines of JSON, any other is CSV with a header (RFC 4180).
Empty lines mean nothing. What cannot be read is refused as a whole, with the lines that are wrong.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

from tollgate.serve.payments.api.bodies.readers import NAME_SHOWN_MAX
from tollgate.serve.payments.api.bodies.strict_json import JsonError, read_json

FILE_LENGTH_MAX = 2 * 1024 * 1024
LINE_LENGTH_MAX = 8 * 1024
RECORDS_MAX = 5_000
COLUMNS_MAX = 50
_BYTE_ORDER_MARK = "\ufeff"


class FileProblem(Exception):  # noqa: N818 - what was found, not what went wrong
    """A file that cannot be read; `line` 0: as a whole. The text says what is wrong."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)


@dataclass(frozen=True, slots=True)
class FileLine:
    """A record of a file. `is_text`: its values are texts, as CSV has them."""

    number: int
    fields: Mapping[str, object]
    is_text: bool


def read_lines(text: str) -> list[FileLine]:
    """The records of a file. Raises FileProblem."""
    if len(text) > FILE_LENGTH_MAX:
        raise FileProblem(0, f"has more than {FILE_LENGTH_MAX} characters: send it in parts")
    text = text.removeprefix(_BYTE_ORDER_MARK)
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LINE_LENGTH_MAX:
            raise FileProblem(number, f"has more than {LINE_LENGTH_MAX} characters")
    found: list[FileLine] = []
    for each in _json_lines(text) if text.lstrip().startswith("{") else _rows(text):
        if len(found) >= RECORDS_MAX:
            raise FileProblem(each.number, f"is one too many: a file holds {RECORDS_MAX} records")
        found.append(each)
    if not found:
        raise FileProblem(0, "holds no record")
    return found


def _json_lines(text: str) -> Iterator[FileLine]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = read_json(line.encode())
        except (JsonError, UnicodeEncodeError) as error:
            raise FileProblem(number, str(error)) from None
        if not isinstance(value, dict):
            raise FileProblem(number, "is no object of JSON")
        yield FileLine(number, value, is_text=False)


def _rows(text: str) -> Iterator[FileLine]:
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    header: Sequence[str] = ()
    begun = 1
    try:
        for row in reader:
            number, begun = begun, reader.line_num + 1
            if not any(value.strip() for value in row):
                continue
            if not header:
                header = _header(number, row)
                continue
            if len(row) != len(header):
                why = f"has {len(row)} values, and the header names {len(header)}"
                raise FileProblem(number, why)
            yield FileLine(number, dict(zip(header, row, strict=True)), is_text=True)
    except csv.Error as error:
        raise FileProblem(begun, f"is not CSV: {error}") from None


def _header(number: int, row: Sequence[str]) -> Sequence[str]:
    """The names of the columns."""
    names = [name.strip() for name in row]
    if len(names) > COLUMNS_MAX:
        raise FileProblem(number, f"the header names more than {COLUMNS_MAX} columns")
    for name in names:
        if not name or names.count(name) > 1:
            what = f"{name[:NAME_SHOWN_MAX]} twice" if name else "a column without a name"
            raise FileProblem(number, f"the header has {what}")
    return names
