"""The drivers' connections of a database: taken out of its pools once, and then kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.postgresql import PostgresqlConnection
from tollgate.actors.ledger.storage.connections.sqlite import SqliteConnection


@dataclass(frozen=True, slots=True)
class Taken:
    """A driver's connection, and what takes it back to its pool."""

    connection: Connection
    pooled: AsyncConnection

    async def give_back(self, *, is_sound: bool) -> None:
        if not is_sound:
            await self.pooled.invalidate()
        await self.pooled.close()


async def take(engine: AsyncEngine) -> Taken:
    """A connection that is prepared as the engine's own are. Raises what the driver raises."""
    pooled = await engine.connect()
    driver: Any = (await pooled.get_raw_connection()).driver_connection
    is_sqlite = engine.dialect.name == "sqlite"
    return Taken(SqliteConnection(driver) if is_sqlite else PostgresqlConnection(driver), pooled)


class Readers:
    """A bounded number of readers, opened when they are needed; who finds none free waits."""

    def __init__(self, engine: AsyncEngine, readers_max: int) -> None:
        self._engine = engine
        self._idle: list[Taken] = []
        self._turn = asyncio.Semaphore(readers_max)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Connection]:
        """One on which anything failed is not used again: what state it is in nobody knows."""
        async with self._turn:
            taken = await self._reader()
            is_sound = False
            try:
                yield taken.connection
                is_sound = True
            finally:
                if is_sound:
                    self._idle.append(taken)
                else:
                    await taken.give_back(is_sound=False)

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().give_back(is_sound=True)

    async def _reader(self) -> Taken:
        while self._idle:
            taken = self._idle.pop()
            if taken.connection.is_open:
                return taken
            await taken.give_back(is_sound=False)
        return await take(self._engine)
