"""A restore: everything is replayed into empty tables, in one transaction.

Whatever is not as it was written ends it, and then nothing was restored: an entry that does not
follow the one before, an entry that nobody would have made, a book that does not end where it must.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sqlalchemy import Boolean, Column, func, select

from tollgate.actors.ledger.backup.segments import (
    BookPosition,
    BrokenSegment,
    Scalar,
    SegmentRecord,
    StateRow,
)
from tollgate.actors.ledger.backup.shipment import STATE_TABLES
from tollgate.actors.ledger.law.rows import Entry, OperationRow
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.proof.table_rebuild import Rebuilder
from tollgate.actors.ledger.storage import tables as schema
from tollgate.actors.ledger.storage.connections.connection import Connection, RowValues, transaction
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.location import shown_url
from tollgate.actors.ledger.storage.connections.statements import insert, query
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason

BATCH_MAX = 500


@dataclass(slots=True)
class Restored:
    """The amount that was restored. `heads`: where each book must stand, and does. `marks`: of what
    the books belong to and is kept elsewhere, by its name."""

    entries: int = 0
    operations: int = 0
    heads: dict[BookId, BookPosition] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)


async def restore_records(
    database: Database,
    records: AsyncIterator[SegmentRecord],
    progress: Callable[[int], None],
    marks: Mapping[str, str] = MappingProxyType({}),
) -> Restored:
    """All that the records say, of whatever segments, in their order. `marks`: of what is here.

    Raises StorageError when there is anything in the tables already, or the books belong to
    something else than what is here; BrokenJournal, BrokenSegment.
    """
    writing = await database.writing()
    try:
        async with transaction(writing, database.begin_writing):
            await _refuse_if_used(database, writing)
            restoring = _Restoring(database, writing, progress, marks)
            try:
                async for record in records:
                    await restoring.take(record)
            except BrokenSegment:
                # If it is an entry that was changed, this says which one.
                await restoring.flush()
                raise
            restored = await restoring.end()
    except FAILURES as failure:
        raise StorageError(
            f"{shown_url(database.url)}: nothing was restored: {reason(failure)}"
        ) from failure
    finally:
        await writing.close()
    return restored


async def _refuse_if_used(database: Database, connection: Connection) -> None:
    for table in (schema.entries, schema.heads, schema.entities, schema.operations, schema.keys):
        counted = query(database.dialect, select(func.count()).select_from(table))
        (count,) = await counted.first(connection)
        if count:
            raise StorageError(
                f"{shown_url(database.url)}: is not empty (table {table.name} has {count} rows): "
                "restore into another, and set TOLLGATE_STORAGE_URL to it"
            )


class _Restoring:
    def __init__(
        self,
        database: Database,
        connection: Connection,
        progress: Callable[[int], None],
        marks: Mapping[str, str],
    ) -> None:
        self._dialect = database.dialect
        self._connection = connection
        self._rebuilder = Rebuilder(database.dialect, connection)
        self._progress = progress
        self._marks = marks
        self._entries: list[Entry] = []
        self._operations: list[OperationRow] = []
        self._rows: list[StateRow] = []
        self._restored = Restored()

    async def take(self, record: SegmentRecord) -> None:
        if record.entry is not None:
            if self._entries and self._entries[-1].book != record.entry.book:
                await self.flush()
            self._entries.append(record.entry)
        elif record.operation is not None:
            self._operations.append(record.operation)
        elif record.row is not None:
            self._rows.append(record.row)
        elif record.head is not None:
            self._restored.heads[record.head.book] = record.head
        elif record.header is not None:
            # Of the tables that are shipped whole, the last segment's holds.
            self._rows.clear()
        if max(len(self._entries), len(self._operations)) >= BATCH_MAX:
            await self.flush()

    async def end(self) -> Restored:
        await self.flush()
        await self._check_heads()
        self._check_marks()
        for table in STATE_TABLES:
            rows: list[RowValues] = [
                tuple(_value(column, row.values.get(column.name)) for column in table.columns)
                for row in self._rows
                if row.table == table.name
            ]
            await insert(self._dialect, table).run(self._connection, rows)
        return self._restored

    async def flush(self) -> None:
        """The entries of one book and the operations that have gathered."""
        entries, self._entries = self._entries, []
        operations, self._operations = self._operations, []
        made = await self._rebuilder.replay(entries[0].book, entries) if entries else []
        await self._rebuilder.write(made, operations, has_journal=True)
        self._restored.entries += len(entries)
        self._restored.operations += len(operations)
        self._progress(self._restored.entries)

    async def _check_heads(self) -> None:
        table = schema.heads
        rows = await query(self._dialect, select(table.c.book, table.c.seq, table.c.hash)).rows(
            self._connection
        )
        found = {BookId(book): BookPosition(BookId(book), seq, hash_) for book, seq, hash_ in rows}
        for book in sorted(found.keys() | self._restored.heads.keys()):
            is_, must = found.get(book), self._restored.heads.get(book)
            if is_ != must:
                raise StorageError(
                    f"book {book}: the backup ends with {_named(must)}, what was restored of it "
                    f"with {_named(is_)}"
                )

    def _check_marks(self) -> None:
        """Books beside another secret than theirs would be books that nobody can use."""
        of_books = self._restored.marks
        for row in self._rows:
            if row.table == schema.installation.name:
                of_books[str(row.values["name"])] = str(row.values["mark"])
        for name, mark in self._marks.items():
            if of_books.get(name, mark) != mark:
                raise StorageError(
                    f"nothing was restored: these books belong to the {name} with the mark "
                    f"{of_books[name]}, and the file of the one here has {mark}: put theirs in its "
                    "place, from its own backup, and restore again"
                )


def _value(column: Column[Any], value: Scalar) -> Scalar:
    """SQLite ships truth as a number."""
    return bool(value) if isinstance(column.type, Boolean) and value is not None else value


def _named(position: BookPosition | None) -> str:
    return "nothing" if position is None else f"entry {position.seq}, hash {position.hash}"
