"""PostgreSQL through asyncpg, which speaks the server's own protocol and sends rows in one go."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from tollgate.actors.ledger.storage.connections.connection import StatementRows


class PostgresqlConnection:
    """The driver's connection. `timeout_s` of queries, None: as it was connected."""

    def __init__(self, driver: asyncpg.Connection, timeout_s: float | None = None) -> None:
        self._driver = driver
        self._timeout_s = timeout_s

    async def fetch(self, text: str, values: Sequence[object] = ()) -> list[Any]:
        return [
            tuple(row) for row in await self._driver.fetch(text, *values, timeout=self._timeout_s)
        ]

    async def run(self, text: str) -> None:
        await self._driver.execute(text)

    async def run_all(self, steps: Sequence[StatementRows]) -> None:
        for text, rows in steps:
            await self._driver.executemany(text, rows)

    async def roll_back(self) -> None:
        if self.is_open:
            await self.run("ROLLBACK")

    @property
    def is_open(self) -> bool:
        return not self._driver.is_closed()

    def with_timeout(self, timeout_s: float) -> "PostgresqlConnection":
        return PostgresqlConnection(self._driver, timeout_s)
