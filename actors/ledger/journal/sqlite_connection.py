"""SQLite through aiosqlite, where each connection is a thread."""

from collections.abc import Sequence
from typing import Any

import aiosqlite

from actors.ledger.journal.connections import Tuple


class SqliteConnection:
    """The driver's connection, which begins no transactions by itself."""

    def __init__(self, driver: aiosqlite.Connection) -> None:
        self._driver = driver

    async def fetch(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        return list(await self._driver.execute_fetchall(text, values))

    async def run(self, text: str) -> None:
        await self._driver.execute(text)

    async def run_many(self, text: str, rows: list[Tuple]) -> None:
        await self._driver.executemany(text, rows)

    async def roll_back(self) -> None:
        # (nothing, when SQLite has answered a failure by rolling back itself)
        await self._driver.rollback()

    @property
    def is_open(self) -> bool:
        # (there is no other side that could hang up)
        return True
