"""Opening the storage: where it is, how it must behave, and the connections to it.

SQLite      one file, one writing connection, readers beside it: WAL, synchronous=FULL, foreign keys
PostgreSQL  a server that waits for its disk: fsync, full_page_writes, synchronous_commit

What a commit promises rests on these, so each is read back, and storage that does not hold one is
refused with what to set (F1, F8).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import URL, event
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from tollgate.actors.ledger.storage.connections import time_bounds
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.drivers import Readers, Taken, take
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.location import is_sqlite, shown_url, storage_url
from tollgate.actors.ledger.storage.store import StorageDown

# Of each kind: those on the hot path, and SQLAlchemy's own.
READERS_MAX = 8
# A shard's, and one for what is written beside it.
WRITERS_MAX = 2
BUSY_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_S = 10
# Before this many pages, hot ones would be copied into the file again and again.
WAL_PAGES = 4_000
CACHE_KIB = 65_536

# Pragma: what is set, what is then read back.
SQLITE_PRAGMAS: dict[str, tuple[str, object]] = {
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),
    "foreign_keys": ("ON", 1),
    "busy_timeout": (str(BUSY_TIMEOUT_MS), BUSY_TIMEOUT_MS),
    "wal_autocheckpoint": (str(WAL_PAGES), WAL_PAGES),
    "cache_size": (str(-CACHE_KIB), -CACHE_KIB),
}
# A writer takes the lock at once: a transaction that reads first may find, when it comes to write,
# that another has written meanwhile.
BEGIN_WRITING = {
    "sqlite": "BEGIN IMMEDIATE",
    "postgresql": "BEGIN ISOLATION LEVEL READ COMMITTED",
}
BEGIN_READING = {
    "sqlite": "BEGIN",
    "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
}
# Setting of the server: values under which a commit may be lost although it was acknowledged.
POSTGRESQL_REFUSED = {
    "fsync": ("off",),
    "full_page_writes": ("off",),
    "synchronous_commit": ("off",),
}


@dataclass(frozen=True, slots=True)
class Database:
    """Open storage. `writer`, `reader`: SQLAlchemy's pools; connections of `reader` cannot write.

    On the hot path, `writing`, `reading` and `snapshot` give the drivers' own connections.
    """

    url: URL
    writer: AsyncEngine
    reader: AsyncEngine
    readers: Readers

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
        async with self.reading() as connection:
            await connection.run(BEGIN_READING[self.dialect.name])
            yield connection
            await connection.run("ROLLBACK")

    @asynccontextmanager
    async def report(self) -> AsyncIterator[Connection]:
        """A snapshot for what takes long: it goes through everything that was ever written."""
        async with self.snapshot() as connection:
            if not self.is_sqlite:
                await connection.run(time_bounds.for_a_report())
            yield connection.with_timeout(time_bounds.REPORT_TIMEOUT_S)

    async def writing(self, *, may_stand_still: bool = True) -> Taken:
        """A writer, until it is given back. Raises StorageDown.

        Unless `may_stand_still`, the server ends a transaction on it in which nothing happens.
        """
        try:
            taken = await take(self.writer)
            if not (may_stand_still or self.is_sqlite):
                await taken.connection.run(time_bounds.without_standstill())
            return taken
        except FAILURES as failure:
            raise StorageDown(f"{shown_url(self.url)}: {reason(failure)}") from failure

    @property
    def begin_writing(self) -> str:
        """How a transaction on a writer begins."""
        return BEGIN_WRITING[self.dialect.name]

    async def close(self) -> None:
        """Writers that were taken are given back before."""
        await self.readers.close()
        await self.reader.dispose()
        await self.writer.dispose()


def _database(url: URL, writer: AsyncEngine, reader: AsyncEngine) -> Database:
    return Database(url, writer, reader, Readers(reader, READERS_MAX))


async def connect(text: str, command_timeout_s: float | None = None) -> Database:
    """Connections to the storage at this address, once it is known to keep its promises.

    `command_timeout_s`: for one statement, on PostgreSQL; None: COMMAND_TIMEOUT_S. Says nothing
    about the tables: `migration.open_database` does. Raises StorageError.
    """
    url = storage_url(text)
    timeout_s = time_bounds.COMMAND_TIMEOUT_S if command_timeout_s is None else command_timeout_s
    database = _sqlite(url) if is_sqlite(url) else _postgresql(url, timeout_s)
    try:
        await _check(database)
    except StorageError:
        await database.close()
        raise
    except FAILURES as failure:
        await database.close()
        raise _cannot_open(url, failure) from failure
    return database


def _cannot_open(url: URL, failure: Exception) -> StorageError:
    return StorageError(f"{shown_url(url)}: cannot be opened: {reason(failure)}")


def _sqlite(url: URL) -> Database:
    file = Path(str(url.database))
    if not file.parent.is_dir():
        raise StorageError(f"{file}: its folder does not exist: create it, or name another file")
    writer = create_async_engine(
        url, poolclass=AsyncAdaptedQueuePool, pool_size=WRITERS_MAX, max_overflow=0
    )
    reader = create_async_engine(
        url,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=2 * READERS_MAX,
        max_overflow=0,
        pool_reset_on_return=None,
    ).execution_options(isolation_level="AUTOCOMMIT")
    event.listen(writer.sync_engine, "connect", _prepare_sqlite)
    event.listen(reader.sync_engine, "connect", _prepare_sqlite_reader)
    # (the driver begins none itself: see `_prepare_sqlite`)
    event.listen(writer.sync_engine, "begin", _begin_immediate)
    return _database(url, writer, reader)


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql(BEGIN_WRITING["sqlite"])


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma, (text, wanted) in SQLITE_PRAGMAS.items():
        cursor.execute(f"PRAGMA {pragma} = {text}")
        cursor.execute(f"PRAGMA {pragma}")
        row = cursor.fetchone()
        found = row[0] if row else None
        if found != wanted:
            cursor.close()
            raise StorageError(
                f"the SQLite file does not take PRAGMA {pragma} = {text} (it stays {found!r}): "
                "keep it on a local file system that can lock files and share memory"
            )
    cursor.close()


def _prepare_sqlite_reader(connection: Any, record: object) -> None:
    _prepare_sqlite(connection, record)
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only = ON")
    cursor.close()


def _postgresql(url: URL, timeout_s: float) -> Database:
    writer = create_async_engine(
        url,
        pool_size=WRITERS_MAX,
        max_overflow=0,
        connect_args={"async_creator_fn": _connector(url, timeout_s)},
    )
    reader = create_async_engine(
        url,
        pool_size=2 * READERS_MAX,
        max_overflow=0,
        pool_pre_ping=True,
        pool_reset_on_return=None,
        connect_args={
            "async_creator_fn": _connector(url, timeout_s, default_transaction_read_only="on"),
        },
    ).execution_options(isolation_level="AUTOCOMMIT")
    return _database(url, writer, reader)


def _connector(url: URL, timeout_s: float, **settings: str) -> Callable[..., Awaitable[Any]]:
    """The driver reads the url itself: it knows every parameter that PostgreSQL's own tools do
    (`sslmode`, `sslrootcert`, several hosts), of which SQLAlchemy passes on a few."""
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)

    async def connected(**_: object) -> Any:
        return await asyncpg.connect(
            address,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=timeout_s,
            server_settings={
                "application_name": "tollgate",
                **time_bounds.server_settings(timeout_s),
                **settings,
            },
        )

    return connected


async def _check(database: Database) -> None:
    """One connection of each kind, so that what is wrong shows now."""
    async with database.reader.connect() as reading:
        await reading.exec_driver_sql("SELECT 1")
    async with database.writer.connect() as writing:
        if database.is_sqlite:
            return
        for setting, refused in POSTGRESQL_REFUSED.items():
            value = (await writing.exec_driver_sql(f"SHOW {setting}")).scalar_one()
            if value in refused:
                raise StorageError(
                    f"the PostgreSQL server has {setting} = {value}, so that a commit may be lost "
                    f"although it was acknowledged: set {setting} = on"
                )
