"""The content of a segment: the entries that are not shipped yet, and what a restore needs beside.

Also reads a copy of an SQLite file for a restore: from there, everything is new.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

from sqlalchemy import Table, bindparam, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.backup.segments import BookPosition, SegmentRecord, StateRow
from tollgate.actors.ledger.book.chain import hash_of
from tollgate.actors.ledger.book.head import GENESIS_HASH
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.proof.table_comparison import Tables
from tollgate.actors.ledger.storage import tables as schema
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.deliveries import tables as deliveries
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.reading.journal import JournalReader
from tollgate.actors.ledger.storage.reading.shard_state import StateReader

HEADS_PER_PIECE = 1_000

# Not made from the journal, and small: what was signed off, called and used.
STATE_TABLES: tuple[Table, ...] = (
    schema.anchors,
    schema.key_uses,
    schema.installation,
    deliveries.cursors,
    deliveries.retries,
    deliveries.dead,
)


async def ship(
    database: Database, shipped: Mapping[BookId, BookPosition], progress: Callable[[int], None]
) -> AsyncGenerator[SegmentRecord, None]:
    """The records of the next segment, of one moment; `progress` gets the entries so far.

    Raises StorageError when the journal is not the one that `shipped` comes from, or is broken.
    """
    async with database.report() as connection:
        shipper = _Shipper(database.dialect, connection)
        heads = [head async for head in shipper.heads_behind(shipped)]
        for head in heads:
            yield SegmentRecord(head=head)
        count = 0
        for head in heads:
            async for record in shipper.book(head, shipped.get(head.book)):
                count += record.entry is not None
                yield record
                progress(count)
        for table in STATE_TABLES if heads else ():
            # (names are SQLAlchemy's own kind of text, which no encoder knows)
            names = [str(column.name) for column in table.columns]
            async for row in Tables(database.dialect, connection).rows(table):
                values = dict(zip(names, row, strict=True))
                yield SegmentRecord(row=StateRow(str(table.name), values))


class _Shipper:
    def __init__(self, dialect: Dialect, connection: Connection) -> None:
        self._connection = connection
        self._journal = JournalReader(dialect)
        self._state = StateReader(dialect)
        heads = schema.heads
        self._heads = query(
            dialect,
            select(heads.c.book, heads.c.seq, heads.c.hash)
            .where(heads.c.book > bindparam("after"))
            .order_by(heads.c.book)
            .limit(HEADS_PER_PIECE),
        )

    async def heads_behind(
        self, shipped: Mapping[BookId, BookPosition]
    ) -> AsyncIterator[BookPosition]:
        """Of the books with entries that are not shipped, in order."""
        last, found = "", set()
        while piece := await self._heads.rows(self._connection, after=last):
            for book, seq, hash_ in piece:
                before = shipped[book].seq if book in shipped else 0
                if seq < before:
                    raise _foreign(book, before, f"here it ends with entry {seq}")
                if seq > before:
                    yield BookPosition(book, seq, hash_)
                found.add(book)
            last = piece[-1][0]
        for book in sorted(shipped.keys() - found):
            raise _foreign(book, shipped[book].seq, "here there is no such book")

    async def book(
        self, head: BookPosition, shipped: BookPosition | None
    ) -> AsyncIterator[SegmentRecord]:
        """Its entries behind a position, and their operations."""
        book = head.book
        place = shipped or BookPosition(book, 0, GENESIS_HASH)
        told: set[str] = set()
        async for piece in self._journal.pieces(self._connection, book, place.seq):
            for entry in piece:
                place = _following(place, entry)
                yield SegmentRecord(entry=entry)
            operations = {entry.operation for entry in piece}
            for row in await self._state.operations(
                self._connection, sorted(operations - told), []
            ):
                yield SegmentRecord(operation=row)
            told = operations
        if place != head:
            raise StorageError(
                f"book {book}: its head says entry {head.seq}, and its journal ends with entry "
                f"{place.seq}: run `tollgate ledger verify`"
            )


def _following(place: BookPosition, entry: Entry) -> BookPosition:
    if entry.seq != place.seq + 1 or hash_of(place.hash, entry) != entry.hash:
        raise StorageError(
            f"entry {entry.seq} of book {entry.book} does not follow entry {place.seq} with hash "
            f"{place.hash}: the journal was changed, or the backup is of another one. Run "
            "`tollgate ledger verify`"
        )
    return BookPosition(entry.book, entry.seq, entry.hash)


def _foreign(book: BookId, seq: int, instead: str) -> StorageError:
    return StorageError(
        f"the backup has entry {seq} of book {book}, and {instead}: it is of another ledger, or of "
        "a later state of this one: back up to another folder"
    )
