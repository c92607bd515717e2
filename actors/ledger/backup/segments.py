"""Segments: the journal as it is shipped to a second place (F9), and what a restore needs beside.

A segment is text, one JSON object per line:

    {"header": …}     its number, and the SHA-256 of the segment before it
    {"head": …}       where each book stands that has entries here, after them
    {"entry": …}      entries that no earlier segment has, book by book, in order
    {"operation": …}  what became of these entries' operations
    {"row": …}        tables that are not made from the journal, whole
    {"end": …}        how many lines came before, and the SHA-256 of their bytes

Segments form a chain, as the entries of a book do. What is left out (heads, entities, keys,
checkpoints) is made again from the entries.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from msgspec import Struct, ValidationError
from msgspec.json import Decoder, Encoder

from tollgate.actors.ledger.law.rows import Entry, OperationRow
from tollgate.actors.ledger.law.values import BookId

FORMAT = 1
NO_SEGMENT = "0" * 64
LINE_BYTES_MAX = 8 * 2**20

Scalar = str | int | bool | None


class SegmentHeader(Struct, frozen=True):
    """`previous`: the SHA-256 of the whole segment before; `tables`: their version."""

    format: int
    number: int
    previous: str
    tables: str
    made_ms: int


class StateRow(Struct, frozen=True):
    """A row of a table that is shipped whole."""

    table: str
    values: dict[str, Scalar]


class BookPosition(Struct, frozen=True):
    """A book after its entry `seq`."""

    book: BookId
    seq: int
    hash: str


class SegmentEnd(Struct, frozen=True):
    lines: int
    sha256: str


class SegmentRecord(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line: exactly one of these."""

    header: SegmentHeader | None = None
    entry: Entry | None = None
    operation: OperationRow | None = None
    row: StateRow | None = None
    head: BookPosition | None = None
    end: SegmentEnd | None = None


class BrokenSegment(Exception):  # noqa: N818 - what was found, not what went wrong
    """A segment is not what was written; the text says where."""


_encode = Encoder().encode
_decode = Decoder(SegmentRecord).decode


class SegmentText:
    """Makes the lines of a segment, one after another, and at last its end."""

    def __init__(self) -> None:
        self._digest = sha256()
        self._lines = 0

    def line(self, record: SegmentRecord) -> bytes:
        line = _encode(record) + b"\n"
        self._digest.update(line)
        self._lines += 1
        return line

    def end(self) -> bytes:
        return _encode(SegmentRecord(end=SegmentEnd(self._lines, self._digest.hexdigest()))) + b"\n"


def segment_records(
    name: str, lines: Iterable[bytes], number: int, previous: str | None
) -> Iterator[SegmentRecord]:
    """The records of a segment, its header first, which must have this number and predecessor.

    `previous` None: whichever segment came before.
    Raises BrokenSegment, at the end at the latest: nothing of it counts before that is reached.
    """
    digest, count = sha256(), 0
    for line in lines:
        record = _record(name, count + 1, line)
        if (record.header is None) == (count == 0):
            raise BrokenSegment(f"{name}, line {count + 1}: a segment has one header, at its start")
        if record.header is not None:
            _check_header(name, record.header, number, previous)
        if record.end is not None:
            if record.end != SegmentEnd(count, digest.hexdigest()):
                raise BrokenSegment(f"{name}: it was changed: its end does not fit what it holds")
            return
        digest.update(line)
        count += 1
        yield record
    raise BrokenSegment(f"{name}: it has no end: it was cut off after line {count}")


def _record(name: str, number: int, line: bytes) -> SegmentRecord:
    if len(line) > LINE_BYTES_MAX:
        raise BrokenSegment(f"{name}, line {number}: is longer than any line of a segment")
    try:
        record = _decode(line)
    except (ValidationError, ValueError) as error:
        raise BrokenSegment(f"{name}, line {number}: is not a line of a segment: {error}") from None
    given = [field for field in record.__struct_fields__ if getattr(record, field) is not None]
    if len(given) != 1:
        raise BrokenSegment(f"{name}, line {number}: holds {len(given)} records and not one")
    return record


def _check_header(name: str, header: SegmentHeader, number: int, previous: str | None) -> None:
    if header.format != FORMAT:
        raise BrokenSegment(
            f"{name}: has format {header.format}, and this Tollgate reads {FORMAT}: use a newer one"
        )
    if header.number != number:
        raise BrokenSegment(f"{name}: is segment {header.number} and not {number}")
    if previous not in (None, header.previous):
        raise BrokenSegment(
            f"{name}: follows another segment {header.number - 1} than the one that is here"
        )
