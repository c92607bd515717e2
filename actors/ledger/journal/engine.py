"""Opening the storage: where it is, how it must behave, and the connections to it.

SQLite      one file, one writing connection, readers beside it: WAL, synchronous=FULL, foreign keys
PostgreSQL  a server that waits for its disk: fsync, full_page_writes, synchronous_commit

What a commit promises rests on these, so each is read back, and storage that does not hold one is
refused with what to set (F1, F8).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from actors.ledger.journal.errors import FAILURES, StorageError

SQLITE = "sqlite+aiosqlite"
POSTGRESQL = "postgresql+asyncpg"
DRIVERS = {"sqlite": SQLITE, "postgresql": POSTGRESQL, SQLITE: SQLITE, POSTGRESQL: POSTGRESQL}

READERS_MAX = 8
BUSY_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_S = 10
# A server that has not answered by then is lost, and with it what became of a commit.
COMMAND_TIMEOUT_S = 60
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
# Setting of the server: values under which a commit may be lost although it was acknowledged.
POSTGRESQL_REFUSED = {
    "fsync": ("off",),
    "full_page_writes": ("off",),
    "synchronous_commit": ("off",),
}


@dataclass(frozen=True, slots=True)
class Database:
    """Open storage. `writer` has a single connection; `reader` many, and they cannot write."""

    url: URL
    writer: AsyncEngine
    reader: AsyncEngine

    @property
    def is_sqlite(self) -> bool:
        return self.url.drivername == SQLITE

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which all reads see the same moment."""
        async with self.reader.connect() as connection:
            begin = "BEGIN" if self.is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
            await connection.exec_driver_sql(begin)
            try:
                yield connection
            finally:
                await connection.exec_driver_sql("ROLLBACK")

    async def close(self) -> None:
        await self.reader.dispose()
        await self.writer.dispose()


def storage_url(text: str) -> URL:
    """The address of storage, with the driver that we use; raises StorageError."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # (not repeated here: it may hold a password)
        raise StorageError(f"the storage url cannot be read: {_FORMS}") from None
    driver = DRIVERS.get(url.drivername)
    if driver is None:
        raise StorageError(f"{url.drivername}: is no storage that we know: {_FORMS}")
    if driver == SQLITE and url.database in (None, "", ":memory:"):
        raise StorageError(f"the storage url names no file: {_FORMS}")
    return url.set(drivername=driver)


_FORMS = "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"


def check_cluster(text: str, nodes: int) -> None:
    """One file has one writer: on more nodes than one, SQLite is refused (part F)."""
    url = storage_url(text)
    if url.drivername == SQLITE and nodes > 1:
        raise StorageError(
            f"the cluster has {nodes} nodes, but the ledger's storage is an SQLite file "
            f"({url.database}), which only one can write: set TOLLGATE_STORAGE_URL to "
            "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        )


async def connect(text: str) -> Database:
    """Connections to the storage at this address, once it is known to keep its promises.

    Says nothing about the tables in it: `migrating.open_database` does. Raises StorageError.
    """
    url = storage_url(text)
    database = _sqlite(url) if url.drivername == SQLITE else _postgresql(url)
    try:
        await _check(database)
    except StorageError:
        await database.close()
        raise
    except FAILURES as failure:
        await database.close()
        shown = url.render_as_string(hide_password=True)
        raise StorageError(f"{shown}: cannot be opened: {_reason(failure)}") from failure
    return database


def _reason(failure: Exception) -> str:
    cause = getattr(failure, "orig", None) or failure
    return " ".join(str(cause).split()) or type(cause).__name__


def _sqlite(url: URL) -> Database:
    file = Path(str(url.database))
    if not file.parent.is_dir():
        raise StorageError(f"{file}: its folder does not exist: create it, or name another file")
    writer = create_async_engine(url, poolclass=AsyncAdaptedQueuePool, pool_size=1, max_overflow=0)
    reader = create_async_engine(
        url,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=READERS_MAX,
        max_overflow=0,
        pool_reset_on_return=None,
    ).execution_options(isolation_level="AUTOCOMMIT")
    event.listen(writer.sync_engine, "connect", _prepare_sqlite)
    event.listen(reader.sync_engine, "connect", _prepare_sqlite_reader)
    # The driver begins no transactions of its own (see `_prepare_sqlite`). A writer takes the lock
    # at once: one that reads first can find, too late, that another has written meanwhile.
    event.listen(writer.sync_engine, "begin", _begin_immediate)
    return Database(url, writer, reader)


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


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


def _postgresql(url: URL) -> Database:
    arguments = {"timeout": CONNECT_TIMEOUT_S, "command_timeout": COMMAND_TIMEOUT_S}
    writer = create_async_engine(url, pool_size=1, max_overflow=0, connect_args=arguments)
    reader = create_async_engine(
        url,
        pool_size=READERS_MAX,
        max_overflow=0,
        pool_pre_ping=True,
        pool_reset_on_return=None,
        connect_args=arguments | {"server_settings": {"default_transaction_read_only": "on"}},
    ).execution_options(isolation_level="AUTOCOMMIT")
    return Database(url, writer, reader)


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
