"""`tollgate ledger verify --recent`: each book from its newest sound checkpoint on (F6).

    chain      each entry comes after the one before, and has the hash of what it says (F7)
    postings   sum up to zero per currency (M4); none is there beyond a book's end or without a book
    head       is the last entry's, and its balances are the checkpoint's and what came since (M2)
    the books  of all merchants together balance, per currency (M8)

A checkpoint whose seal or entry is not what it says is passed over, and said; without any, a book
is gone through from its first entry. What came before a checkpoint is taken from it.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.book.chain import hash_of
from tollgate.actors.ledger.book.head import GENESIS_HASH, head_of_row
from tollgate.actors.ledger.law.rows import Entry, HeadRow
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.proof.findings import Findings, VerificationReport, unbalanced
from tollgate.actors.ledger.proof.stray_rows import GapReader
from tollgate.actors.ledger.storage.balances import Balances, balances_of_text
from tollgate.actors.ledger.storage.checkpoints import Checkpoint, CheckpointReader
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.reading.journal import JournalReader
from tollgate.actors.ledger.storage.reading.rows import head_row
from tollgate.actors.ledger.storage.tables import entries, heads

BOOKS_PER_PIECE = 1_000


@dataclass(slots=True)
class _Place:
    """After an entry: its number, time and hash, and the balances of its book."""

    seq: int
    at_ms: int
    hash: str
    balances: Balances


async def verify_recent(
    database: Database, progress: Callable[[int, int], None]
) -> VerificationReport:
    """Verifies what came since the checkpoints; `progress` gets books. Raises StorageDown."""
    async with database.report() as connection:
        return await _Tails(database.dialect, connection).run(progress)


class _Tails:
    def __init__(self, dialect: Dialect, connection: Connection) -> None:
        self._dialect = dialect
        self._connection = connection
        self._journal = JournalReader(dialect)
        self._checkpoints = CheckpointReader(dialect)
        self._hash = query(
            dialect,
            select(entries.c.hash).where(
                entries.c.book == bindparam("book"), entries.c.seq == bindparam("seq")
            ),
        )
        self._gaps = GapReader(dialect)
        self._findings = Findings()
        self._entries = 0

    async def run(self, progress: Callable[[int, int], None]) -> VerificationReport:
        totals, books = Balances(), 0
        last = ("", 0)
        async for head, of_how_many in self._heads():
            for line in await self._gaps.check(self._connection, last, head.book):
                self._findings.add(line)
            totals.update(await self._check(head))
            last = (head.book, head.seq)
            books += 1
            progress(books, of_how_many)
        for line in await self._gaps.check(self._connection, last, None):
            self._findings.add(line)
        shown = tuple(sorted((*account, amount) for account, amount in totals.items()))
        for line in unbalanced(shown):
            self._findings.add(line)
        return VerificationReport(
            books, self._entries, shown, tuple(self._findings.shown), self._findings.count
        )

    async def _heads(self) -> AsyncIterator[tuple[HeadRow, int]]:
        """Each, and how many books there are."""
        rows = await query(self._dialect, select(heads.c.book)).rows(self._connection)
        some = query(
            self._dialect,
            select(heads)
            .where(heads.c.book > bindparam("after"))
            .order_by(heads.c.book)
            .limit(BOOKS_PER_PIECE),
        )
        last = ""
        while piece := await some.rows(self._connection, after=last):
            for row in map(head_row, piece):
                yield row, len(rows)
            last = piece[-1][0]

    async def _check(self, head: HeadRow) -> Balances:
        place = await self._start(head.book)
        async for piece in self._journal.pieces(self._connection, head.book, place.seq):
            for entry in piece:
                if fault := _fault(place, entry):
                    self._findings.add(f"entry {entry.seq} of book {head.book}: {fault}")
                    return place.balances
                _advance(place, entry)
            self._entries += len(piece)
        if (head.seq, head.hash) != (place.seq, place.hash):
            self._findings.add(
                f"book {head.book}: its head says entry {head.seq}, hash {head.hash}; its journal "
                f"ends with entry {place.seq}, hash {place.hash}"
            )
        elif dict(head_of_row(head).accounts) != _by_name(place.balances):
            self._findings.add(
                f"book {head.book}: the balances of its head are not those of its postings (M2)"
            )
        return place.balances

    async def _start(self, book: BookId) -> _Place:
        for each in await self._checkpoints.newest_first(self._connection, book):
            if await self._is_sound(each):
                return _Place(each.seq, each.at_ms, each.hash, balances_of_text(each.balances))
            self._findings.add(
                f"the checkpoint at entry {each.seq} of book {book} is not as it was written (F6)"
            )
        return _Place(0, 0, GENESIS_HASH, Balances())

    async def _is_sound(self, checkpoint: Checkpoint) -> bool:
        place = {"book": checkpoint.book, "seq": checkpoint.seq}
        row = await self._hash.first(self._connection, **place)
        return checkpoint.is_sealed and row == (checkpoint.hash,)


def _fault(place: _Place, entry: Entry) -> str:
    if entry.seq != place.seq + 1:
        return f"found after entry {place.seq}"
    if entry.at_ms <= place.at_ms:
        return f"its time {entry.at_ms} is not after {place.at_ms}"
    if (expected := hash_of(place.hash, entry)) != entry.hash:
        return f"its hash is {entry.hash}, its content's is {expected}"
    sums: dict[str, int] = {}
    for posting in entry.postings:
        sums[posting.currency] = sums.get(posting.currency, 0) + posting.amount
    return "its postings do not sum up to zero (M4)" if any(sums.values()) else ""


def _advance(place: _Place, entry: Entry) -> None:
    place.seq, place.at_ms, place.hash = entry.seq, entry.at_ms, entry.hash
    for posting in entry.postings:
        place.balances[posting.account, posting.currency] += posting.amount


def _by_name(balances: Balances) -> dict[str, int]:
    return {f"{account}:{currency}": amount for (account, currency), amount in balances.items()}
