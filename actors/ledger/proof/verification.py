"""`tollgate ledger verify`: replays everything that was ever written, and compares (part D, Books).

    chain        each entry comes after the one before, and has the hash of what it says (F7)
    postings     are those of the entry's event, and sum up to zero per currency (M4); none is there
                 without an entry
    replay       is possible: no entry does what the ones before did not allow (C5, part E)
    money        adds up by arithmetic that shares nothing with what wrote it: amounts, rates, fees,
                 what was captured and went back of each transaction (T1, T2, M3, M7)
    lines        one for each move of money, told alike by the transaction's trail (M1)
    balances     of merchants are the sums of their lines, after every entry (M2)
    tables       are, row by row, those that a replay into empty tables makes
    operations   are those that the entries made, and tell what they say (F5)
    checkpoints  and anchors are what the journal says they must be (F6, F7), those that are kept
                 elsewhere too when they are at hand
    the books    of all merchants together balance, per currency (M8)

Everything is read in one snapshot, so a ledger may be verified while it works. The tables to
compare with are made in a temporary file, about as large as the tables themselves; what is kept in
memory is bounded.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from tempfile import TemporaryDirectory

from sqlalchemy import Table, func, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.book.chain import BrokenJournal
from tollgate.actors.ledger.book.head import row_of_head
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import DIRECTORY, BookId
from tollgate.actors.ledger.proof.anchor_audit import AnchorAudit
from tollgate.actors.ledger.proof.anchor_series import AnchorSeries
from tollgate.actors.ledger.proof.anchors import kept_anchors
from tollgate.actors.ledger.proof.document_audit import BookAudit
from tollgate.actors.ledger.proof.findings import (
    AccountTotal,
    Findings,
    VerificationReport,
    unbalanced,
)
from tollgate.actors.ledger.proof.money.money_audit import MoneyAudit
from tollgate.actors.ledger.proof.operation_audit import OperationAudit
from tollgate.actors.ledger.proof.stray_rows import stray_rows
from tollgate.actors.ledger.proof.table_comparison import Difference, Tables, differences
from tollgate.actors.ledger.proof.table_rebuild import Rebuilder, Replayed
from tollgate.actors.ledger.storage import tables as schema
from tollgate.actors.ledger.storage.balances import balances_of_text, booked_sums, read_sums
from tollgate.actors.ledger.storage.checkpoints import Checkpoint, CheckpointReader
from tollgate.actors.ledger.storage.connections.connection import Connection, transaction
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.operation_expiry import PROMISED_MS, newest_entry_ms
from tollgate.actors.ledger.storage.reading.journal import JournalReader

# Entries gone through, of how many.
ReportProgress = Callable[[int, int], None]

# Tables that a replay makes anew.
REBUILT = (schema.heads, schema.entities, schema.memberships, schema.keys)


async def verify_all(
    database: Database,
    progress: ReportProgress,
    now_ms: int,
    series: AnchorSeries | None = None,
) -> VerificationReport:
    """Everything, from the first entry on; with a series, what was anchored elsewhere as well.

    `now_ms` says which operations may be forgotten: those of entries older than is promised.
    Raises StorageDown, StorageError.
    """
    async with database.report() as found, empty_tables() as expected:
        verification = _Verification(database.dialect, found, expected, progress)
        return await verification.run(now_ms, series)


@asynccontextmanager
async def empty_tables() -> AsyncIterator[Tables]:
    """Tables in a temporary file, and a connection that may write to them."""
    with TemporaryDirectory(prefix="tollgate-verify-") as folder:
        url = f"sqlite:///{folder}/ledger.sqlite"
        await upgrade(url)
        database = await open_database(url)
        writing = await database.writing()
        try:
            # (nobody will need them after a crash)
            await writing.run("PRAGMA synchronous = OFF")
            yield Tables(database.dialect, writing)
        finally:
            await writing.close()
            await database.close()


class _Verification:
    """One run. `_broken`: books whose journal cannot be replayed to its end."""

    def __init__(
        self, dialect: Dialect, found: Connection, expected: Tables, progress: ReportProgress
    ) -> None:
        self._found = Tables(dialect, found)
        self._expected = expected
        self._progress = progress
        self._rebuilder = Rebuilder(expected.dialect, expected.connection)
        self._checkpoints = CheckpointReader(dialect)
        self._findings = Findings()
        self._broken: set[BookId] = set()
        self._books = 0
        self._entries = 0
        self._book: BookId | None = None
        self._audit = BookAudit()
        self._anchored: tuple[str, str] | None = None
        self._money = MoneyAudit(expected)

    async def run(self, now_ms: int, series: AnchorSeries | None) -> VerificationReport:
        await self._go_through_journal(now_ms, series)
        self._add(await stray_rows(self._found.dialect, self._found.connection))
        for table in REBUILT:
            await self._compare(table)
        totals = await self._totals()
        self._add(unbalanced(totals))
        return VerificationReport(
            books=self._books,
            entries=self._entries,
            totals=totals,
            findings=tuple(self._findings.shown),
            findings_count=self._findings.count,
            anchored=self._anchored,
        )

    async def _go_through_journal(self, now_ms: int, series: AnchorSeries | None) -> None:
        dialect, connection = self._found.dialect, self._found.connection
        total = await _count_entries(dialect, connection)
        since_ms = await _operations_since(dialect, connection, now_ms)
        operations = OperationAudit(self._found, self._expected, since_ms)
        await operations.prepare()
        await self._money.prepare()
        anchors = AnchorAudit(await kept_anchors(connection, dialect), series, self._expected)
        self._add(await anchors.begin())
        async for piece in JournalReader(dialect).pieces(connection):
            self._add(await anchors.check(piece))
            for book, entries in groupby(piece, lambda entry: entry.book):
                self._add(await operations.check(await self._check_entries(book, list(entries))))
            self._entries += len(piece)
            self._progress(self._entries, total)
        self._add(await anchors.end())
        self._anchored = anchors.exported
        async for line in operations.end(self._broken):
            self._findings.add(line)

    def _add(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._findings.add(line)

    async def _check_entries(self, book: BookId, entries: Sequence[Entry]) -> list[Replayed]:
        """The rows that they make; nothing, where they cannot be replayed."""
        if book != self._book:
            self._book, self._audit = book, BookAudit()
            self._books += 1
        if book in self._broken:
            return []
        try:
            made = await self._rebuilder.replay(book, entries)
        except BrokenJournal as broken:
            self._broken.add(book)
            self._findings.add(str(broken))
            return []
        async with transaction(self._expected.connection, "BEGIN IMMEDIATE"):
            await self._rebuilder.write(made, has_journal=False)
        for each in made:
            where = f"entry {each.entry.seq} of book {book}"
            self._add(f"{where}: {line}" for line in self._audit.check(each))
        self._add(await self._money.check(book, entries))
        await self._check_checkpoints(book, made)
        return made

    async def _check_checkpoints(self, book: BookId, made: Sequence[Replayed]) -> None:
        by_seq = {each.entry.seq: each for each in made}
        found = await self._checkpoints.between(
            self._found.connection, book, min(by_seq), max(by_seq)
        )
        for checkpoint in found:
            if not _is_true(checkpoint, by_seq[checkpoint.seq]):
                self._findings.add(
                    f"the checkpoint at entry {checkpoint.seq} of book {book} is not what the "
                    "journal says there (F6)"
                )

    async def _compare(self, table: Table) -> None:
        names = [column.name for column in table.columns]
        place = names.index("book") if "book" in names else None
        async for difference in differences(table, self._found, self._expected):
            row = difference.found or difference.expected
            assert row is not None, "one of the two is there"
            book = DIRECTORY if place is None else row[place]
            if book not in self._broken:
                self._findings.add(_told(table, row, difference))

    async def _totals(self) -> tuple[AccountTotal, ...]:
        rows = await query(self._found.dialect, booked_sums()).rows(self._found.connection)
        return tuple(sorted((*account, amount) for account, amount in read_sums(rows).items()))


def _is_true(checkpoint: Checkpoint, made: Replayed) -> bool:
    accounts = {
        f"{account}:{currency}": amount
        for (account, currency), amount in balances_of_text(checkpoint.balances).items()
    }
    return (
        checkpoint.is_sealed
        and checkpoint.hash == made.entry.hash
        and checkpoint.at_ms == made.entry.at_ms
        and checkpoint.state == row_of_head(made.head).state
        and accounts == dict(made.head.accounts)
    )


def _told(table: Table, row: tuple[object, ...], difference: Difference) -> str:
    names = [column.name for column in table.columns]
    key = " ".join(str(row[names.index(column.name)]) for column in table.primary_key.columns)
    kind = f" ({row[names.index('kind')]})" if "kind" in names else ""
    if difference.expected is None:
        what = "is there, and the journal knows nothing of it"
    elif difference.found is None:
        what = "is missing"
    else:
        what = f"differs from the journal in {', '.join(difference.columns)}"
    return f"table {table.name}: {key}{kind} {what}"


async def _count_entries(dialect: Dialect, connection: Connection) -> int:
    count = await query(dialect, select(func.sum(schema.heads.c.seq))).first(connection)
    return int(count[0] or 0)


async def _operations_since(dialect: Dialect, connection: Connection, now_ms: int) -> int:
    """The time after which every entry's operation must be kept, in ms (F5).

    None of those that are promised may be missing, whatever else is kept. Before them the oldest
    are forgotten first, so none is missing after the oldest that is kept.
    """
    newest_ms = await newest_entry_ms(dialect, connection) or 0
    promised_ms = max(now_ms, newest_ms) - PROMISED_MS
    oldest = await query(dialect, select(func.min(schema.operations.c.at_ms))).first(connection)
    return promised_ms if oldest[0] is None else min(promised_ms, int(oldest[0]))
