"""Checkpoints (F6): a book's head with its balances, every thousand entries.

The balances are summed up from the postings, never taken from the machine that made them, so that
a verification which starts at a checkpoint starts from something of its own. `seal` covers all of
it: a checkpoint that was changed is not taken for a start.
"""

import json
from hashlib import sha256

from sqlalchemy.engine import Dialect

from actors.ledger.journal.connections import Connection
from actors.ledger.journal.schema import checkpoints
from actors.ledger.journal.statements import insert
from actors.ledger.journal.sums import BalanceReader, encode
from actors.ledger.rows import Commit
from actors.ledger.values import BookId

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
                row = (head.book, head.seq, at_ms, head.hash, head.state, encode(balances))
                await self._insert.run(connection, [(*row, seal(*row))])


def seal(book: str, seq: int, at_ms: int, hash_: str, state: str, balances: str) -> str:
    """SHA-256 over every field of a checkpoint, hex."""
    fields = json.dumps([book, seq, at_ms, hash_, state, balances], separators=(",", ":"))
    return sha256(fields.encode()).hexdigest()
