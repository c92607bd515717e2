"""SQLite through aiosqlite, where each connection is a thread."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import aiosqlite

from tollgate.actors.ledger.storage.connections.connection import StatementRows


def _run_all(connection: sqlite3.Connection, steps: Sequence[StatementRows]) -> None:
    for text, rows in steps:
        connection.executemany(text, rows)


class SqliteConnection:
    """The driver's connection, which begins no transactions by itself."""

    def __init__(self, driver: aiosqlite.Connection) -> None:
        self._driver = driver

    async def fetch(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        return list(await self._driver.execute_fetchall(text, values))

    async def run(self, text: str) -> None:
        await self._driver.execute(text)

    async def run_all(self, steps: Sequence[StatementRows]) -> None:
        # Each call of the driver's is two changes of threads, which cost more than a small
        # statement does; of its public ones, none takes several statements with values.
        await self._driver._execute(  # type: ignore[no-untyped-call]
            _run_all, self._driver._conn, steps
        )

    async def roll_back(self) -> None:
        # (nothing, when SQLite has answered a failure by rolling back itself)
        await self._driver.rollback()

    @property
    def is_open(self) -> bool:
        # (there is no other side that could hang up)
        return True

    def with_timeout(self, timeout_s: float) -> "SqliteConnection":
        # (no query is given up)
        return self
