"""Names that are used once: on SQLite and PostgreSQL."""

import asyncio

import pytest

from tests.support.ledger.storage import Run, Storage, runner
from tollgate.actors.ledger.storage.single_uses import (
    KEPT_MS,
    SqlSingleUses,
    forget_single_uses,
)


@pytest.fixture
def run(ledger_url: str) -> Run:
    return runner(ledger_url)


def test_a_name_has_one_use(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        one, other = [SqlSingleUses(await storage.database()) for _ in range(2)]
        assert await one.find("a") is None
        assert await one.use({"a": 10, "b": 10}, "first")
        assert await other.use({"b": 10, "a": 10}, "first"), "the same use, again"
        assert not await other.use({"c": 10, "a": 10}, "second")
        assert await other.find("c") is None, "all or none"
        assert await other.find("a") == "first"

    run(scenario)


def test_of_many_that_want_a_name_at_once_one_gets_it(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        users = [SqlSingleUses(await storage.database()) for _ in range(3)]
        names = {"a": 10, "b": 10}
        got = await asyncio.gather(
            *(user.use(names, str(number)) for number, user in enumerate(users))
        )
        assert sorted(got) == [False, False, True]

    run(scenario)


def test_names_are_forgotten_when_nobody_can_use_them(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        database = await storage.database()
        uses = SqlSingleUses(database)
        await uses.use({"old": 1_000}, "x")
        await uses.use({"new": 1_001}, "x")
        await forget_single_uses(database, 1_001 + KEPT_MS)
        assert [await uses.find(name) for name in ("old", "new")] == [None, "x"]

    run(scenario)
