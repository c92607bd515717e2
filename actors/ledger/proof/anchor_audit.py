"""Anchors compared with the journal and with each other (F7).

    roots     of the table's anchors and of the exported ones are those that the journal gives, so
              that no book was changed, added or taken away up to then
    rows      of the table are those of the exported files
    heads     of the exported files are entries of the journal: where one is missing a tail was cut
              off, where its hash is another one a book was written anew, though its hashes fit

Exported heads are put into a table beside those of a replay, and met in the order of the journal.
"""

from collections.abc import AsyncIterator, Iterable, Sequence

from sqlalchemy import Column, Integer, MetaData, Table, Text
from sqlalchemy.schema import CreateTable

from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.proof.anchor_series import AnchorSeries
from tollgate.actors.ledger.proof.anchors import Anchor, AnchorTrees
from tollgate.actors.ledger.proof.table_comparison import TableRow, Tables
from tollgate.actors.ledger.storage.connections.connection import RowValues, transaction
from tollgate.actors.ledger.storage.connections.statements import insert

HEADS_PER_PIECE = 1_000
_anchored = Table(
    "anchored_heads",
    MetaData(),
    Column("book", Text, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("hash", Text, nullable=False),
)


class AnchorAudit:
    """`kept`: the table's anchors. Entries come in the order of the journal."""

    def __init__(
        self, kept: Sequence[Anchor], series: AnchorSeries | None, scratch: Tables
    ) -> None:
        self._kept = kept
        self._series = series
        self._scratch = scratch
        self._exported: list[Anchor] = []
        self._trees = AnchorTrees(kept)
        self._heads: AsyncIterator[TableRow] | None = None
        self._next: TableRow | None = None
        self._last: Entry | None = None

    @property
    def exported(self) -> tuple[str, str] | None:
        """The first and the last day of the exported ones that can be believed."""
        return (self._exported[0].day, self._exported[-1].day) if self._exported else None

    async def begin(self) -> list[str]:
        """The faults of the files."""
        if self._series is None:
            return []
        self._exported, findings = self._series.read()
        self._trees = AnchorTrees((*self._kept, *self._exported))
        await self._put_down(self._series)
        self._heads = self._scratch.rows(_anchored)
        self._next = await anext(self._heads, None)
        return findings

    async def check(self, entries: Iterable[Entry]) -> list[str]:
        """The faults of the heads up to these entries."""
        findings = []
        for entry in entries:
            self._trees.add(entry)
            while self._next is not None and (self._next[0], self._next[1]) <= _place(entry):
                findings += self._fault(self._next, entry)
                await self._advance()
            self._last = entry
        return findings

    async def end(self) -> list[str]:
        """The faults of the heads behind the last entry, of the roots and of the rows."""
        findings = []
        while self._next is not None:
            findings += self._fault(self._next, None)
            await self._advance()
        findings += self._trees.differences(self._kept)
        if self._series is not None:
            findings += self._row_faults(self._series)
            where = f" in {self._series.folder}"
            findings += self._trees.differences(self._exported, where)
        return findings

    async def _put_down(self, series: AnchorSeries) -> None:
        connection, add = self._scratch.connection, insert(self._scratch.dialect, _anchored)
        await connection.run(str(CreateTable(_anchored)))
        async with transaction(connection, "BEGIN IMMEDIATE"):
            rows: list[RowValues] = []
            for anchor in self._exported:
                for head in series.heads(anchor):
                    rows.append((head.book, head.seq, anchor.day, head.hash))
                    if len(rows) >= HEADS_PER_PIECE:
                        await add.run(connection, rows)
                        rows = []
            await add.run(connection, rows)

    def _row_faults(self, series: AnchorSeries) -> list[str]:
        kept = {each.day: each for each in self._kept}
        findings = []
        for each in self._exported:
            if (row := kept.get(each.day)) is None:
                findings.append(
                    f"table anchors: the row of {each.day} is missing, and {series.folder} has its "
                    "file: it was deleted, or the books were restored from an older backup. "
                    f"`tollgate ledger anchor --day {each.day}` makes it again"
                )
            elif row != each:
                findings.append(
                    f"table anchors: the row of {each.day} is not what its file in {series.folder} "
                    "says: it was changed"
                )
        return findings

    async def _advance(self) -> None:
        assert self._heads is not None, "a head was found in it"
        self._next = await anext(self._heads, None)

    def _fault(self, head: TableRow, entry: Entry | None) -> list[str]:
        """`entry`: of the journal, the first that is not before the head."""
        book, seq, day, hash_ = head
        if entry is not None and _place(entry) == (book, seq):
            if entry.hash == hash_:
                return []
            return [
                f"entry {seq} of book {book}: its hash is {entry.hash}, and was {hash_} when {day} "
                "was anchored: the book was written anew since"
            ]
        here = "nothing is left of it"
        if self._last is not None and self._last.book == book:
            here = f"entry {self._last.seq} is its last one before that"
        return [
            f"book {book}: had entry {seq} when {day} was anchored, and now {here}: its tail was "
            "cut off"
        ]


def _place(entry: Entry) -> tuple[str, int]:
    return entry.book, entry.seq
