"""The journal as it was written: entries with their postings, in order, in bounded pieces."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, Table, and_, bindparam, or_, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.reading.rows import entry
from tollgate.actors.ledger.storage.tables import entries, postings

ENTRIES_PER_PIECE = 500


class JournalReader:
    """Its queries, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._entries = query(dialect, _entries(_after(entries)))
        self._entries_of = query(dialect, _entries(_after_in(entries)))
        self._legs = query(dialect, _legs(_after(postings), _until(postings)))
        self._legs_of = query(dialect, _legs(_after_in(postings), _until(postings)))

    async def piece(
        self, connection: Connection, book: BookId | None, place: tuple[str, int]
    ) -> list[Entry]:
        """The next entries behind (book, seq); of that book only, or of it and all later ones.

        The connection must be a snapshot's: entries and postings are two queries.
        """
        after = {"book": place[0], "seq": place[1]}
        one_book = book is not None
        rows = await (self._entries_of if one_book else self._entries).rows(connection, **after)
        if not rows:
            return []
        until = {"last_book": rows[-1][0], "last_seq": rows[-1][1]}
        legs: dict[tuple[str, int], list[Any]] = {}
        found = await (self._legs_of if one_book else self._legs).rows(connection, **after, **until)
        for in_book, seq, *leg in found:
            legs.setdefault((in_book, seq), []).append(leg)
        return [entry(row, legs.get((row[0], row[1]), ())) for row in rows]

    async def pieces(
        self, connection: Connection, book: BookId | None = None, after_seq: int = 0
    ) -> AsyncIterator[list[Entry]]:
        """Every entry of a snapshot, or those of one book behind a number."""
        place = (str(book or ""), after_seq)
        while piece := await self.piece(connection, book, place):
            yield piece
            place = (piece[-1].book, piece[-1].seq)


def _entries(after: ColumnElement[bool]) -> Select[Any]:
    return (
        select(entries)
        .where(after)
        .order_by(entries.c.book, entries.c.seq)
        .limit(ENTRIES_PER_PIECE)
    )


def _legs(after: ColumnElement[bool], until: ColumnElement[bool]) -> Select[Any]:
    columns = postings.c
    return (
        select(columns.book, columns.seq, columns.account, columns.currency, columns.amount)
        .where(after, until)
        .order_by(columns.book, columns.seq, columns.leg)
    )


def _after_in(table: Table) -> ColumnElement[bool]:
    return and_(table.c.book == bindparam("book"), table.c.seq > bindparam("seq"))


def _after(table: Table) -> ColumnElement[bool]:
    """Behind (book, seq), in the order of both."""
    book: BindParameter[str] = bindparam("book")
    seq: BindParameter[int] = bindparam("seq")
    return and_(table.c.book >= book, or_(table.c.book > book, table.c.seq > seq))


def _until(table: Table) -> ColumnElement[bool]:
    book: BindParameter[str] = bindparam("last_book")
    seq: BindParameter[int] = bindparam("last_seq")
    return and_(table.c.book <= book, or_(table.c.book < book, table.c.seq <= seq))
