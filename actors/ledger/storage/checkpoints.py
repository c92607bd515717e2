"""Checkpoints (F6): a book's head with its balances, every thousand entries.

The balances are summed up from the postings, never taken from the machine that made them, so that
a verification which starts at a checkpoint starts from something of its own. `seal` covers all of
it: a checkpoint that was changed is not taken for a start.
"""

import json
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.balances import BalanceReader, text_of_balances
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.statements import insert, query
from tollgate.actors.ledger.storage.tables import checkpoints

ENTRIES_BETWEEN = 1_000


class CheckpointWriter:
    """Its statements, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._balances = BalanceReader(dialect)
        self._insert = insert(dialect, checkpoints)

    async def write(self, connection: Connection, commit: Commit) -> None:
        """A checkpoint of each book that has passed another thousand, in the commit itself."""
        first: dict[BookId, int] = {}
        last_ms: dict[BookId, int] = {}
        for entry in commit.entries:
            first.setdefault(entry.book, entry.seq)
            last_ms[entry.book] = entry.at_ms
        for head in {head.book: head for head in commit.heads}.values():
            before = first.get(head.book, head.seq + 1) - 1
            if head.seq // ENTRIES_BETWEEN > before // ENTRIES_BETWEEN:
                balances = await self._balances.at(connection, head.book, head.seq)
                at_ms = last_ms[head.book]
                row = (
                    head.book,
                    head.seq,
                    at_ms,
                    head.hash,
                    head.state,
                    text_of_balances(balances),
                )
                await self._insert.run(connection, [(*row, seal(*row))])


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A row of the table."""

    book: BookId
    seq: int
    at_ms: int
    hash: str
    state: str
    balances: str
    seal: str

    @property
    def is_sealed(self) -> bool:
        """Tells whether it is as it was written."""
        content = (self.book, self.seq, self.at_ms, self.hash, self.state, self.balances)
        return self.seal == seal(*content)


class CheckpointReader:
    """Its queries, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        table = checkpoints
        mine = select(table).where(table.c.book == bindparam("book"))
        self._between = query(
            dialect,
            mine.where(
                table.c.seq >= bindparam("first"), table.c.seq <= bindparam("last")
            ).order_by(table.c.seq),
        )
        self._newest_first = query(dialect, mine.order_by(table.c.seq.desc()))

    async def between(
        self, connection: Connection, book: BookId, first: int, last: int
    ) -> list[Checkpoint]:
        """Those at entries from `first` to `last`."""
        rows = await self._between.rows(connection, book=book, first=first, last=last)
        return [Checkpoint(*row) for row in rows]

    async def newest_first(self, connection: Connection, book: BookId) -> list[Checkpoint]:
        return [Checkpoint(*row) for row in await self._newest_first.rows(connection, book=book)]


def seal(book: str, seq: int, at_ms: int, hash_: str, state: str, balances: str) -> str:
    """SHA-256 over every field of a checkpoint, hex."""
    fields = json.dumps([book, seq, at_ms, hash_, state, balances], separators=(",", ":"))
    return sha256(fields.encode()).hexdigest()
