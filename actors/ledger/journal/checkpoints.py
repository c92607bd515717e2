"""Checkpoints (F6): a book's head with its balances, every thousand entries.

The balances are summed up from the postings, never taken from the machine that made them, so that
a verification which starts at a checkpoint starts from something of its own. `seal` covers all of
it: a checkpoint that was changed is not taken for a start.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from sqlalchemy.ext.asyncio import AsyncConnection

from actors.ledger.journal.statements import Writes
from actors.ledger.journal.sums import balances_at, encode
from actors.ledger.rows import Entry, HeadRow
from actors.ledger.values import BookId

ENTRIES_BETWEEN = 1_000


async def write_checkpoints(
    connection: AsyncConnection,
    writes: Writes,
    entries: Sequence[Entry],
    heads: Mapping[BookId, HeadRow],
) -> None:
    """A checkpoint of each book that has passed another thousand with these entries."""
    first: dict[BookId, int] = {}
    last_ms: dict[BookId, int] = {}
    for entry in entries:
        first.setdefault(entry.book, entry.seq)
        last_ms[entry.book] = entry.at_ms
    for book, seq in first.items():
        head = heads[book]
        if head.seq // ENTRIES_BETWEEN > (seq - 1) // ENTRIES_BETWEEN:
            balances = await balances_at(connection, book, head.seq)
            row = (book, head.seq, last_ms[book], head.hash, head.state, encode(balances))
            await writes.checkpoints.run(connection, [(*row, seal(*row))])


def seal(book: str, seq: int, at_ms: int, hash_: str, state: str, balances: str) -> str:
    """SHA-256 over every field of a checkpoint, hex."""
    fields = json.dumps([book, seq, at_ms, hash_, state, balances], separators=(",", ":"))
    return sha256(fields.encode()).hexdigest()
