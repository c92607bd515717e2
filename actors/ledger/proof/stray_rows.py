"""Rows that belong to an entry, and stand where no entry does.

Postings have no foreign key to their entry, and a foreign key holds only who goes through it. Rows
that sum up to zero beyond the end of a book, or in a book that does not exist, would change reports
and no balance of a head, so they are looked for by themselves.
"""

from sqlalchemy import BindParameter, Table, Tuple, bindparam, exists, select, tuple_
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.proof.findings import FINDINGS_SHOWN_MAX
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.statements import QueryStatement, query
from tollgate.actors.ledger.storage.tables import checkpoints, entries, postings

PER_ENTRY = (postings, checkpoints)
# Of each table: more would tell nothing more.
STRAYS_MAX = FINDINGS_SHOWN_MAX

# (book, seq)
Place = tuple[str, int]


async def stray_rows(dialect: Dialect, connection: Connection) -> list[str]:
    """Findings: the rows of each table without an entry, by entry; all of the table is read."""
    found = []
    for table in PER_ENTRY:
        is_there = exists().where(entries.c.book == table.c.book, entries.c.seq == table.c.seq)
        place = (table.c.book, table.c.seq)
        strays = select(*place).where(~is_there).distinct().order_by(*place).limit(STRAYS_MAX)
        found += _told(table, await query(dialect, strays).rows(connection))
    return found


class GapReader:
    """Looks between the end of one book and the first entry of the next, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._between = {table: _between(dialect, table, has_end=True) for table in PER_ENTRY}
        self._behind = {table: _between(dialect, table, has_end=False) for table in PER_ENTRY}

    async def check(self, connection: Connection, last: Place, following: str | None) -> list[str]:
        """Findings: rows behind the `last` entry of a book and before the first one of the book
        that follows; None when none does."""
        book, seq = last
        found = []
        for table in PER_ENTRY:
            if following is None:
                rows = await self._behind[table].rows(connection, book=book, seq=seq)
            else:
                rows = await self._between[table].rows(
                    connection, book=book, seq=seq, next_book=following, first_seq=1
                )
            found += _told(table, rows)
        return found


def _between(dialect: Dialect, table: Table, *, has_end: bool) -> QueryStatement:
    place = tuple_(table.c.book, table.c.seq)
    columns = (table.c.book, table.c.seq)
    strays = select(*columns).where(place > _bound(table, "book", "seq")).distinct()
    if has_end:
        strays = strays.where(place < _bound(table, "next_book", "first_seq"))
    return query(dialect, strays.order_by(*columns).limit(STRAYS_MAX))


def _bound(table: Table, book: str, seq: str) -> Tuple:
    first: BindParameter[str] = bindparam(book, type_=table.c.book.type)
    second: BindParameter[int] = bindparam(seq, type_=table.c.seq.type)
    return tuple_(first, second)


def _told(table: Table, rows: list[Place]) -> list[str]:
    return [
        f"table {table.name}: {book} {seq} is there, and the journal has no such entry"
        for book, seq in rows
    ]
