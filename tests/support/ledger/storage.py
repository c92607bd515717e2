"""Storage for tests: empty books on SQLite or PostgreSQL, and commits made by hand."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import delete

from tollgate.actors.ledger.law.outcomes import DoneKind
from tollgate.actors.ledger.law.rows import Commit, EntityRow, Entry, HeadRow, OperationRow, Posting
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.deliveries import tables as delivery_tables
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.tables import metadata
from tollgate.actors.ledger.storage.writer import SqlJournalStore

APP = EntityId("68000000" + "0" * 10 + "000001")
NOW_MS = 1_800_000_000_000
# Every table there is, those of webhooks' deliveries too.
TABLES = [table.name for table in delivery_tables.metadata.sorted_tables]
assert metadata is delivery_tables.metadata


def book_id(number: int) -> BookId:
    return BookId(f"68000000{number:010x}000000")


BOOK = book_id(1)


class Storage:
    """The storage at a url, inside one event loop: as many databases and stores as are asked."""

    def __init__(self, url: str, closing: AsyncExitStack) -> None:
        self.url = url
        self._closing = closing

    async def database(self) -> Database:
        database = await open_database(self.url)
        self._closing.push_async_callback(database.close)
        return database

    async def untaken(self) -> SqlJournalStore:
        """A store on connections of its own, as another process would have."""
        store = SqlJournalStore(await self.database())
        self._closing.push_async_callback(store.close)
        return store

    async def store(self, shard: str = "shard-0") -> SqlJournalStore:
        store = await self.untaken()
        await store.take_over(shard, "an incarnation")
        return store

    async def writing(self) -> Connection:
        """A connection; what is not committed on it when the scenario ends is not written."""
        writing = await (await self.database()).writing()
        self._closing.push_async_callback(writing.close)
        return writing

    async def reads(self) -> SqlReadStore:
        return SqlReadStore(await self.database())

    async def tables(self) -> dict[str, list[tuple[object, ...]]]:
        """All that is stored."""
        database = await self.database()
        async with database.reading() as connection:
            return {
                name: sorted(map(tuple, await connection.fetch(f"SELECT * FROM {name}")), key=repr)
                for name in TABLES
            }


def emptied(url: str) -> str:
    """The url, with tables and nothing in them."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.exists():
        path.write_bytes(_empty_file())
    else:
        _empty(url)
    return url


@cache
def _empty_file() -> bytes:
    """An SQLite file with tables: to make them takes half a second, which most tests are not
    about."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        _empty(f"sqlite:///{path}")
        assert [each.name for each in path.parent.iterdir()] == [path.name], "all is in the file"
        return path.read_bytes()


def _empty(url: str) -> None:
    async def empty() -> None:
        try:
            database = await open_database(url)
        except StorageError:  # (no tables yet, or what a test of upgrades has left)
            await upgrade(url)
            database = await open_database(url)
        async with database.writer.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                await connection.execute(delete(table))
        await database.close()

    asyncio.run(empty())


Scenario = Callable[[Storage], Awaitable[None]]
Run = Callable[[Scenario], None]


def runner(url: str) -> Run:
    """Runs a scenario on the storage at a url, and closes what it opened."""

    async def run(scenario: Scenario) -> None:
        async with AsyncExitStack() as closing:
            await scenario(Storage(url, closing))

    return lambda scenario: asyncio.run(run(scenario))


@dataclass(slots=True)
class Book:
    """Makes the commits of one book, its entries numbered, chained and timed as they must be."""

    id: BookId = BOOK
    seq: int = 0
    at_ms: int = NOW_MS
    hash: str = "0" * 64
    next_id: int = 1
    operations: int = field(default=0)

    def entity_id(self) -> EntityId:
        self.next_id += 1
        return EntityId(f"{self.id[:18]}{self.next_id - 1:06x}")

    def commit(
        self, *postings: Posting, entities: tuple[EntityRow, ...] = (), count: int = 1
    ) -> Commit:
        """`count` entries with these postings each; the entities, once."""
        commit = Commit(entities=list(entities))
        for _ in range(count):
            self.seq += 1
            self.at_ms += 10
            self.hash = sha256(f"{self.hash}{self.seq}".encode()).hexdigest()
            operation = f"{self.id}-{self.seq}"
            commit.entries.append(
                Entry(
                    book=self.id,
                    seq=self.seq,
                    at_ms=self.at_ms,
                    kind="tested",
                    event='{"type":"tested"}',
                    origin='{"app":""}',
                    operation=operation,
                    hash=self.hash,
                    postings=postings,
                )
            )
            commit.operations.append(operation_row(self.id, operation, self.at_ms))
        commit.heads.append(HeadRow(self.id, self.seq, self.hash, f'{{"seq":{self.seq}}}'))
        return commit

    def entity(self, kind: str = "transaction", **fields: object) -> EntityRow:
        row = EntityRow(kind, self.entity_id(), self.id, document="")
        row = replace(row, document=f'{{"id":"{row.id}"}}')
        return replace(row, **fields)  # type: ignore[arg-type]

    def merchant(self, **fields: object) -> EntityRow:
        row = EntityRow("merchant", EntityId(self.id), self.id, f'{{"id":"{self.id}"}}')
        return replace(row, **fields)  # type: ignore[arg-type]


def operation_row(book: BookId, operation: str, at_ms: int, key: str = "") -> OperationRow:
    return OperationRow(
        operation, book, APP, key, "fingerprint", DoneKind.MADE, b'{"ok":true}', at_ms
    )


def move(amount: int, currency: str = "EUR", account: str = "merchant") -> tuple[Posting, ...]:
    """Two legs that sum to zero."""
    return Posting("clearing", currency, -amount), Posting(account, currency, amount)
