"""SQLite: one file, one connection that writes, readers beside it; how each is prepared.

Connections are the standard library's, each on a thread of its own, so that the loop never waits
for the disk. A call is one change of threads there and one back, which cost more than a small
statement does: so a commit travels in two, all that it does (`begin`) and its end.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from tollgate.actors.ledger.storage.connections.connection import Guard, StatementRows
from tollgate.actors.ledger.storage.errors import StorageError

BUSY_TIMEOUT_MS = 10_000
# Before this many pages, hot ones would be copied into the file again and again.
WAL_PAGES = 4_000
CACHE_KIB = 65_536
STATEMENTS_KEPT_MAX = 256
# A writer takes the lock at once: a transaction that reads first may find, when it comes to write,
# that another has written meanwhile.
BEGIN_WRITING = "BEGIN IMMEDIATE"
BEGIN_READING = "BEGIN"

# Pragma: what is set, what is then read back.
SQLITE_PRAGMAS: dict[str, tuple[str, object]] = {
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),
    "foreign_keys": ("ON", 1),
    "busy_timeout": (str(BUSY_TIMEOUT_MS), BUSY_TIMEOUT_MS),
    "wal_autocheckpoint": (str(WAL_PAGES), WAL_PAGES),
    "cache_size": (str(-CACHE_KIB), -CACHE_KIB),
}

Result = TypeVar("Result")


class SqliteConnection:
    """A connection on its own thread, which begins no transactions by itself."""

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread
        self._is_open = True

    @classmethod
    async def open(cls, url: URL, *, is_reader: bool) -> "SqliteConnection":
        """A prepared connection to the file of a url. Raises what the driver raises."""
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger-sqlite")
        loop = asyncio.get_running_loop()
        connection: sqlite3.Connection | None = None
        try:
            connection = await loop.run_in_executor(
                thread, _connected, str(url.database), is_reader
            )
        finally:
            if connection is None:
                thread.shutdown(wait=False)
        return cls(connection, thread)

    async def fetch(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        return await self._call(lambda: self._connection.execute(text, values).fetchall())

    async def run(self, text: str) -> None:
        await self._call(lambda: self._connection.execute(text))

    async def run_all(self, steps: Sequence[StatementRows]) -> None:
        await self._call(lambda: _run_all(self._connection, steps))

    async def begin(self, text: str, guard: Guard, steps: Sequence[StatementRows]) -> None:
        await self._call(lambda: _begin(self._connection, text, guard, steps))

    async def roll_back(self) -> None:
        # (nothing, when SQLite has answered a failure by rolling back itself)
        await self._call(self._connection.rollback)

    async def close(self) -> None:
        if self._is_open:
            self._is_open = False
            try:
                await self._call(self._connection.close)
            finally:
                self._thread.shutdown(wait=False)

    @property
    def is_open(self) -> bool:
        return self._is_open

    def with_timeout(self, timeout_s: float) -> "SqliteConnection":
        # (no query is given up)
        return self

    async def _call(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _connected(file: str, is_reader: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        file, isolation_level=None, cached_statements=STATEMENTS_KEPT_MAX, check_same_thread=False
    )
    with ExitStack() as failing:
        failing.callback(connection.close)
        _prepare_reader(connection) if is_reader else _prepare(connection)
        failing.pop_all()
    return connection


def _begin(
    connection: sqlite3.Connection, text: str, guard: Guard, steps: Sequence[StatementRows]
) -> None:
    connection.execute(text)
    guard.check(connection.execute(guard.text, guard.values).fetchall())
    _run_all(connection, steps)


def _run_all(connection: sqlite3.Connection, steps: Sequence[StatementRows]) -> None:
    for text, rows in steps:
        connection.executemany(text, rows)


def sqlite_engines(
    url: URL, writers_max: int, readers_max: int, within_s: float
) -> tuple[AsyncEngine, AsyncEngine]:
    """SQLAlchemy's pools of writers and of readers; `within_s`: the longest wait for one."""
    file = Path(str(url.database))
    if not file.parent.is_dir():
        raise StorageError(f"{file}: its folder does not exist: create it, or name another file")
    writer = create_async_engine(
        url,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=writers_max,
        max_overflow=0,
        pool_timeout=within_s,
    )
    reader = create_async_engine(
        url,
        poolclass=AsyncAdaptedQueuePool,
        pool_size=readers_max,
        max_overflow=0,
        pool_timeout=within_s,
        pool_reset_on_return=None,
    ).execution_options(isolation_level="AUTOCOMMIT")
    event.listen(writer.sync_engine, "connect", lambda connection, _: _prepare(connection))
    event.listen(reader.sync_engine, "connect", lambda connection, _: _prepare_reader(connection))
    # (the driver begins none itself: see `_prepare`)
    event.listen(
        writer.sync_engine, "begin", lambda connection: connection.exec_driver_sql(BEGIN_WRITING)
    )
    return writer, reader


def _prepare(connection: Any) -> None:
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


def _prepare_reader(connection: Any) -> None:
    _prepare(connection)
    cursor = connection.cursor()
    cursor.execute("PRAGMA query_only = ON")
    cursor.close()
