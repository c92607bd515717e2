"""Anchors: computed when a day is over, kept, and found again in the journal (F7).

One hash for the heads of all books, as they were when the day ended. Whoever keeps the anchors
elsewhere can show later that no entry of those days was changed, even if all hashes behind it were
computed anew.

    leaf = SHA-256( 00 ‖ book ‖ ":" ‖ seq ‖ ":" ‖ hash )     the last entry before the day's end
    node = SHA-256( 01 ‖ left ‖ right )

The leaves are in the order of books. The tree over n of them splits at the largest power of two
below n, so it can be grown leaf by leaf with one node of each height in memory. Without any book,
the root is SHA-256 of nothing.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.connections.connection import Connection, transaction
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import QueryStatement, insert, query
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.tables import anchors, entries, heads

BOOKS_PER_PIECE = 1_000
# By then, every commit of a day has reached the tables: orders wait for seconds.
SETTLED_AFTER_MS = 600_000


@dataclass(frozen=True, slots=True)
class Anchor:
    """`day`: YYYY-MM-DD, UTC; `at_ms`: its end; `books`: how many had an entry by then."""

    day: str
    at_ms: int
    books: int
    root: str


class HeadAt(NamedTuple):
    """A book's last entry before a time."""

    book: BookId
    seq: int
    hash: str
    at_ms: int


def end_of(day: date) -> int:
    """The first millisecond after a day, UTC."""
    after = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    return int(after.timestamp() * 1000)


def last_settled_day(now_ms: int) -> date:
    """The newest day that can be anchored."""
    settled = datetime.fromtimestamp((now_ms - SETTLED_AFTER_MS) / 1000, tz=UTC)
    return settled.date() - timedelta(days=1)


async def anchor_day(database: Database, day: date, now_ms: int) -> Anchor:
    """The anchor of a day, kept from now on.

    Raises StorageError when the day is not over, or when its anchor was another one before: then
    the journal of that day was changed. Raises StorageDown.
    """
    if day > last_settled_day(now_ms):
        raise StorageError(f"{day}: the day is not over: the last was {last_settled_day(now_ms)}")
    async with database.report() as connection:
        made = await anchor_of(connection, database.dialect, day)
        before = {each.day: each for each in await kept_anchors(connection, database.dialect)}
    kept = before.get(made.day)
    if kept is None:
        await _keep(database, made)
    elif kept != made:
        raise StorageError(
            f"{day}: the anchor was {kept.root} over {kept.books} books, but the journal now gives "
            f"{made.root} over {made.books}: it was changed. Run `tollgate ledger verify`"
        )
    return made


async def kept_anchors(connection: Connection, dialect: Dialect) -> list[Anchor]:
    """Every anchor there is, by day."""
    rows = await query(dialect, select(anchors).order_by(anchors.c.day)).rows(connection)
    return [Anchor(*row) for row in rows]


class MerkleTree:
    """Grows by leaves; `root` at any time."""

    def __init__(self) -> None:
        self.leaves = 0
        # (height, hash) of whole subtrees, from left to right; heights fall.
        self._peaks: list[tuple[int, bytes]] = []

    def add(self, book: BookId, seq: int, hash_: str) -> None:
        self.leaves += 1
        height, node = 0, sha256(b"\0" + f"{book}:{seq}:{hash_}".encode()).digest()
        while self._peaks and self._peaks[-1][0] == height:
            _, left = self._peaks.pop()
            height, node = height + 1, _joined(left, node)
        self._peaks.append((height, node))

    @property
    def root(self) -> str:
        """Hex."""
        if not self._peaks:
            return sha256().hexdigest()
        *lefts, (_, node) = self._peaks
        for _, left in reversed(lefts):
            node = _joined(left, node)
        return node.hex()


class AnchorTrees:
    """Grows the trees of these anchors' days from the entries of all books, as they come by book.
    Of a day, one tree serves every copy of its anchor."""

    def __init__(self, claimed: Iterable[Anchor]) -> None:
        self._ends_ms = sorted({each.at_ms for each in claimed})
        self._trees = [MerkleTree() for _ in self._ends_ms]
        self._last: Entry | None = None
        self._next = 0

    def add(self, entry: Entry) -> None:
        if self._last is not None and self._last.book != entry.book:
            self._end_book()
        self._grow_until(entry.at_ms)
        self._last = entry

    def differences(self, claimed: Iterable[Anchor], where: str = "") -> list[str]:
        """The faults of anchors of these days; to be asked at the end."""
        if self._last is not None:
            self._end_book()
        trees = dict(zip(self._ends_ms, self._trees, strict=True))
        return [
            f"the anchor of {each.day}{where} is {each.root} over {each.books} books, the journal "
            f"gives {tree.root} over {tree.leaves} (F7)"
            for each in claimed
            if ((tree := trees[each.at_ms]).root, tree.leaves) != (each.root, each.books)
        ]

    def _grow_until(self, at_ms: int) -> None:
        """The trees of the days that ended between the last entry and one at this time."""
        while self._next < len(self._ends_ms) and self._ends_ms[self._next] <= at_ms:
            self._add_last()

    def _end_book(self) -> None:
        while self._next < len(self._ends_ms):
            self._add_last()
        self._next = 0
        self._last = None

    def _add_last(self) -> None:
        if self._last is not None:
            self._trees[self._next].add(self._last.book, self._last.seq, self._last.hash)
        self._next += 1


async def anchor_of(connection: Connection, dialect: Dialect, day: date) -> Anchor:
    """The anchor that the journal gives for a day, which is not kept."""
    end_ms, tree = end_of(day), MerkleTree()
    async for head in heads_at(connection, dialect, end_ms):
        tree.add(head.book, head.seq, head.hash)
    return Anchor(day.isoformat(), end_ms, tree.leaves, tree.root)


async def heads_at(connection: Connection, dialect: Dialect, end_ms: int) -> AsyncIterator[HeadAt]:
    """Of every book that had an entry before a time, the last one, by book."""
    wanted = _last_entries(dialect)
    last = ""
    while rows := await wanted.rows(connection, after=last, end_ms=end_ms):
        for row in rows:
            if row[1] is not None:
                yield HeadAt(*row)
        last = rows[-1][0]


def _last_entries(dialect: Dialect) -> QueryStatement:
    """A HeadAt of each book, with None where it had no entry by then."""
    earlier = entries.alias("earlier")
    last_seq = (
        select(earlier.c.seq)
        .where(earlier.c.book == heads.c.book, earlier.c.at_ms < bindparam("end_ms"))
        .order_by(earlier.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    books = (
        select(heads.c.book, last_seq.label("seq"))
        .where(heads.c.book > bindparam("after"))
        .order_by(heads.c.book)
        .limit(BOOKS_PER_PIECE)
        .subquery()
    )
    last = (entries.c.book == books.c.book) & (entries.c.seq == books.c.seq)
    return query(
        dialect,
        select(books.c.book, books.c.seq, entries.c.hash, entries.c.at_ms)
        .select_from(books.outerjoin(entries, last))
        .order_by(books.c.book),
    )


async def _keep(database: Database, made: Anchor) -> None:
    writing = await database.writing()
    row = (made.day, made.at_ms, made.books, made.root)
    try:
        async with transaction(writing, database.begin_writing):
            await insert(database.dialect, anchors).run(writing, [row])
    except FAILURES as failure:
        raise StorageError(f"{made.day}: the anchor is not kept: {reason(failure)}") from failure
    finally:
        await writing.close()


def _joined(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
