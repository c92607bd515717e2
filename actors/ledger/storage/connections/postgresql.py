"""PostgreSQL through asyncpg, which speaks the server's own protocol and sends rows in one go."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import asyncpg
from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from tollgate.actors.ledger.storage.connections import time_bounds
from tollgate.actors.ledger.storage.connections.connection import Guard, StatementRows
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError

CONNECT_TIMEOUT_S = 10
CLOSE_TIMEOUT_S = 2
BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# Setting of the server: values under which a commit may be lost although it was acknowledged.
POSTGRESQL_REFUSED = {
    "fsync": ("off",),
    "full_page_writes": ("off",),
    "synchronous_commit": ("off",),
}


class PostgresqlConnection:
    """The driver's connection. `timeout_s` of queries, None: as it was connected."""

    def __init__(self, driver: asyncpg.Connection, timeout_s: float | None = None) -> None:
        self._driver = driver
        self._timeout_s = timeout_s

    @classmethod
    async def open(cls, url: URL, timeout_s: float, *, is_reader: bool) -> "PostgresqlConnection":
        """A connection to the server of a url, whose statements may take so long.

        Raises what the driver raises.
        """
        return cls(await _connector(url, timeout_s, is_reader=is_reader)())

    async def fetch(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        return [
            tuple(row) for row in await self._driver.fetch(text, *values, timeout=self._timeout_s)
        ]

    async def run(self, text: str) -> None:
        await self._driver.execute(text)

    async def run_all(self, steps: Sequence[StatementRows]) -> None:
        for text, rows in steps:
            await self._driver.executemany(text, rows)

    async def begin(self, text: str, guard: Guard, steps: Sequence[StatementRows]) -> None:
        await self.run(text)
        guard.check(await self.fetch(guard.text, guard.values))
        await self.run_all(steps)

    async def roll_back(self) -> None:
        if self.is_open:
            await self.run("ROLLBACK")

    async def close(self) -> None:
        with suppress(*FAILURES):
            await self._driver.close(timeout=CLOSE_TIMEOUT_S)

    @property
    def is_open(self) -> bool:
        return not self._driver.is_closed()

    def with_timeout(self, timeout_s: float) -> "PostgresqlConnection":
        return PostgresqlConnection(self._driver, timeout_s)


def postgresql_engines(
    url: URL, timeout_s: float, writers_max: int, readers_max: int, within_s: float
) -> tuple[AsyncEngine, AsyncEngine]:
    """SQLAlchemy's pools of writers and of readers; `within_s`: the longest wait for one."""
    writer = create_async_engine(
        url,
        pool_size=writers_max,
        max_overflow=0,
        pool_timeout=within_s,
        connect_args={"async_creator_fn": _connector(url, timeout_s, is_reader=False)},
    )
    reader = create_async_engine(
        url,
        pool_size=readers_max,
        max_overflow=0,
        pool_timeout=within_s,
        pool_pre_ping=True,
        pool_reset_on_return=None,
        connect_args={"async_creator_fn": _connector(url, timeout_s, is_reader=True)},
    ).execution_options(isolation_level="AUTOCOMMIT")
    return writer, reader


def _connector(url: URL, timeout_s: float, *, is_reader: bool) -> Callable[..., Awaitable[Any]]:
    """The driver reads the url itself: it knows every parameter that PostgreSQL's own tools do
    (`sslmode`, `sslrootcert`, several hosts), of which SQLAlchemy passes on a few."""
    address = url.set(drivername="postgresql").render_as_string(hide_password=False)
    settings = {"application_name": "tollgate", **time_bounds.server_settings(timeout_s)}
    if is_reader:
        settings["default_transaction_read_only"] = "on"

    async def connected(**_: object) -> Any:
        return await asyncpg.connect(
            address,
            timeout=min(CONNECT_TIMEOUT_S, timeout_s),
            command_timeout=timeout_s,
            server_settings=settings,
        )

    return connected


async def refuse_lossy_server(connection: AsyncConnection) -> None:
    """Raises StorageError on a server that acknowledges commits that it may lose."""
    for setting, refused in POSTGRESQL_REFUSED.items():
        value = (await connection.exec_driver_sql(f"SHOW {setting}")).scalar_one()
        if value in refused:
            raise StorageError(
                f"the PostgreSQL server has {setting} = {value}, so that a commit may be lost "
                f"although it was acknowledged: set {setting} = on"
            )
