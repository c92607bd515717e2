"""The journal shipped to a folder: a chain of segments, each written once and never changed (F9).

    segment-000001.ndjson, segment-000002.ndjson, …     complete: they got their name at the end
    .lock                                               held while one is written

A segment is made durable before it gets its name; what was broken off is written anew.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import BinaryIO

from tollgate.actors.kernel.atomic_file import make_durable
from tollgate.actors.ledger.backup.segments import (
    FORMAT,
    LINE_BYTES_MAX,
    NO_SEGMENT,
    BookPosition,
    SegmentHeader,
    SegmentRecord,
    SegmentText,
    segment_records,
)
from tollgate.actors.ledger.backup.shipment import ship
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.migration import newest_revision


class ArchiveError(Exception):
    """The folder cannot be used; the text is one line with what to do."""


@dataclass(frozen=True, slots=True)
class Shipment:
    """A segment that was written: its file, how many entries and books are in it."""

    file: Path
    entries: int
    books: int


class LedgerArchive:
    """A folder of segments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def segments(self) -> list[Path]:
        """Oldest first. Raises ArchiveError when one is missing."""
        files = sorted(self._folder.glob("segment-*.ndjson"))
        for number, file in enumerate(files, start=1):
            if file != self._file(number):
                raise ArchiveError(f"{self._file(number)}: is missing, and later ones are there")
        return files

    def records(self) -> Iterator[SegmentRecord]:
        """Yields all records, segment by segment. Raises ArchiveError, BrokenSegment."""
        previous = NO_SEGMENT
        for number, file in enumerate(self.segments(), start=1):
            with file.open("rb") as lines:
                yield from segment_records(str(file), _lines(lines), number, previous)
            previous = _digest(file)

    async def add(
        self, database: Database, now_ms: int, progress: Callable[[int], None]
    ) -> Shipment | None:
        """Writes a segment with everything that is new; None when nothing is.

        Raises ArchiveError, BrokenSegment, StorageError, StorageDown.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            files = self.segments()
            number = len(files) + 1
            previous = _digest(files[-1]) if files else NO_SEGMENT
            header = SegmentHeader(FORMAT, number, previous, newest_revision(), now_ms)
            unfinished = self._folder / f".segment-{number:06}.draft"
            unfinished.unlink(missing_ok=True)
            entries, books = await self._write(unfinished, header, database, progress)
            if not books:
                unfinished.unlink()
                return None
            unfinished.replace(self._file(number))
            make_durable(self._folder)
            return Shipment(self._file(number), entries, books)

    async def _write(
        self,
        unfinished: Path,
        header: SegmentHeader,
        database: Database,
        progress: Callable[[int], None],
    ) -> tuple[int, int]:
        """The numbers of entries and of their books."""
        text, entries, books = SegmentText(), 0, 0
        with open(unfinished, "wb", opener=_private) as file:
            file.write(text.line(SegmentRecord(header=header)))
            async with aclosing(ship(database, self._positions(), progress)) as records:
                async for record in records:
                    file.write(text.line(record))
                    entries += record.entry is not None
                    books += record.head is not None
            file.write(text.end())
            file.flush()
            os.fsync(file.fileno())
        return entries, books

    def _positions(self) -> dict[BookId, BookPosition]:
        """The positions that the segments have got to: their heads stand before everything else."""
        positions: dict[BookId, BookPosition] = {}
        for number, file in enumerate(self.segments(), start=1):
            with file.open("rb") as lines:
                for record in segment_records(str(file), _lines(lines), number, previous=None):
                    if record.head is not None:
                        positions[record.head.book] = record.head
                    elif record.header is None:
                        break
        return positions

    def _file(self, number: int) -> Path:
        return self._folder / f"segment-{number:06}.ndjson"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self._folder / ".lock", "wb", opener=_private) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArchiveError(
                    f"{self._folder}: another backup is writing to it: wait for its end"
                ) from None
            yield


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return iter(partial(file.readline, LINE_BYTES_MAX + 1), b"")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
