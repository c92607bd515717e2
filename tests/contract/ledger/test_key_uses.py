"""When keys were used last: on SQLite and PostgreSQL."""

import pytest

from tests.support.ledger.storage import Run, Storage, runner
from tollgate.actors.ledger.storage.key_uses import SqlKeyUses


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def test_the_last_use_of_a_key_stays(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        one, other = SqlKeyUses(await storage.database()), SqlKeyUses(await storage.database())
        assert await one.last_used(["a", "b"]) == {}
        await one.note({"a": 10, "b": 20})
        await other.note({"a": 5, "b": 30, "c": 1})
        assert await one.last_used(["a", "b", "d"]) == {"a": 10, "b": 30}
        assert await one.last_used([]) == {}

    run(scenario)
