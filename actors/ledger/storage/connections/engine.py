"""Opening the storage: the connections to it, once it is known to keep its promises.

SQLite      one file, one writing connection, readers beside it: WAL, synchronous=FULL, foreign keys
PostgreSQL  a server that waits for its disk: fsync, full_page_writes, synchronous_commit

What a commit promises rests on these, so each is read back, and storage that does not hold one is
refused with what to set (F1, F8).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import URL
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncEngine

from tollgate.actors.ledger.storage.connections import postgresql, sqlite, time_bounds
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.location import is_sqlite, shown_url, storage_url
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.store import StorageDown

# Of each kind: those on the hot path, and SQLAlchemy's own.
READERS_MAX = 8
WRITERS_MAX = 2
# The longest wait for one of them: beyond it the storage is as good as away.
READER_WITHIN_S = 3.0
POOL_WITHIN_S = 10.0


class ReaderPool:
    """A bounded number of readers, opened when they are needed; who finds none free waits, for
    READER_WITHIN_S."""

    def __init__(self, url: URL, timeout_s: float, readers_max: int) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._idle: list[Connection] = []
        self._turn = asyncio.Semaphore(readers_max)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Connection]:
        """One on which anything failed is not used again: what state it is in nobody knows.

        Raises TimeoutError when all of them are busy.
        """
        if self._turn.locked():
            async with asyncio.timeout(READER_WITHIN_S):
                await self._turn.acquire()
        else:
            await self._turn.acquire()
        try:
            connection = await self._reader()
            is_sound = False
            try:
                yield connection
                is_sound = True
            finally:
                if is_sound:
                    self._idle.append(connection)
                else:
                    await connection.close()
        finally:
            self._turn.release()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _reader(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            await connection.close()
        return await _open(self._url, self._timeout_s, is_reader=True)


async def _open(url: URL, timeout_s: float, *, is_reader: bool) -> Connection:
    if is_sqlite(url):
        return await sqlite.SqliteConnection.open(url, is_reader=is_reader)
    return await postgresql.PostgresqlConnection.open(url, timeout_s, is_reader=is_reader)


@dataclass(frozen=True, slots=True)
class Database:
    """Open storage. `writer`, `reader`: SQLAlchemy's pools; connections of `reader` cannot write.
    `timeout_s`: of one statement, on PostgreSQL.

    On the hot path, `writing`, `reading` and `snapshot` give connections of the drivers: the layers
    of SQLAlchemy between cost more than a small commit does, 2.1 ms instead of 0.7.
    """

    url: URL
    timeout_s: float
    writer: AsyncEngine
    reader: AsyncEngine
    readers: ReaderPool

    @property
    def is_sqlite(self) -> bool:
        return is_sqlite(self.url)

    @property
    def dialect(self) -> Dialect:
        return self.writer.dialect

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """A reader, in which each query sees what is committed when it begins.

        Raises StorageDown.
        """
        try:
            async with self.readers.use() as connection:
                yield connection
        except FAILURES as failure:
            raise StorageDown(f"{shown_url(self.url)}: {reason(failure)}") from failure

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A reader in which all queries see the same moment."""
        begin = sqlite.BEGIN_READING if self.is_sqlite else postgresql.BEGIN_READING
        async with self.reading() as connection:
            await connection.run(begin)
            yield connection
            await connection.run("ROLLBACK")

    @asynccontextmanager
    async def report(self) -> AsyncIterator[Connection]:
        """A snapshot for what takes long: it goes through everything that was ever written."""
        async with self.snapshot() as connection:
            if not self.is_sqlite:
                await connection.run(time_bounds.for_a_report())
            yield connection.with_timeout(time_bounds.REPORT_TIMEOUT_S)

    async def writing(self, *, may_stand_still: bool = True) -> Connection:
        """A writer, its owner's to close. Raises StorageDown.

        Unless `may_stand_still`, the server ends a transaction on it in which nothing happens.
        """
        try:
            connection = await _open(self.url, self.timeout_s, is_reader=False)
            if not (may_stand_still or self.is_sqlite):
                await connection.run(time_bounds.without_standstill())
            return connection
        except FAILURES as failure:
            raise StorageDown(f"{shown_url(self.url)}: {reason(failure)}") from failure

    @property
    def begin_writing(self) -> str:
        """The statement that begins a transaction on a writer."""
        return sqlite.BEGIN_WRITING if self.is_sqlite else postgresql.BEGIN_WRITING

    async def close(self) -> None:
        """Writers are closed by their owners, before."""
        await self.readers.close()
        await self.reader.dispose()
        await self.writer.dispose()


async def connect(text: str, command_timeout_s: float | None = None) -> Database:
    """Connections to the storage at this address, once it is known to keep its promises.

    `command_timeout_s`: for one statement, on PostgreSQL; None: COMMAND_TIMEOUT_S. Says nothing
    about the tables: `migration.open_database` does. Raises StorageError.
    """
    url = storage_url(text)
    timeout_s = time_bounds.COMMAND_TIMEOUT_S if command_timeout_s is None else command_timeout_s
    if is_sqlite(url):
        writer, reader = sqlite.sqlite_engines(url, WRITERS_MAX, 2 * READERS_MAX, POOL_WITHIN_S)
    else:
        bounds = (WRITERS_MAX, 2 * READERS_MAX, POOL_WITHIN_S)
        writer, reader = postgresql.postgresql_engines(url, timeout_s, *bounds)
    database = Database(url, timeout_s, writer, reader, ReaderPool(url, timeout_s, READERS_MAX))
    try:
        await _check(database)
    except StorageError:
        await database.close()
        raise
    except FAILURES as failure:
        await database.close()
        raise StorageError(f"{shown_url(url)}: cannot be opened: {reason(failure)}") from failure
    return database


async def _check(database: Database) -> None:
    """One connection of each kind, so that what is wrong shows now."""
    async with database.reader.connect() as reading:
        await reading.exec_driver_sql("SELECT 1")
    async with database.writer.connect() as writing:
        if not database.is_sqlite:
            await postgresql.refuse_lossy_server(writing)
