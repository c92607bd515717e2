"""Storage of deliveries, on SQLite and on PostgreSQL."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import delete

from tests.support.ledger.deliveries import Run, Scenario, Storage
from tests.support.ledger.storage import emptied
from tollgate.actors.ledger.storage.connections.engine import connect
from tollgate.actors.ledger.storage.deliveries.tables import cursors, dead, log, retries
from tollgate.actors.ledger.storage.tables import entities


@pytest.fixture(params=["sqlite", "postgresql"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Runs a scenario on empty storage."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/ledger.db"
    else:
        url = request.getfixturevalue("postgresql_url")
    emptied(url)

    async def prepared(scenario: Scenario) -> None:
        database = await connect(url)
        try:
            async with database.writer.begin() as connection:
                for table in (entities, cursors, dead, retries, log):
                    await connection.execute(delete(table))
            await scenario(Storage(database))
        finally:
            await database.close()

    return lambda scenario: asyncio.run(prepared(scenario))
