"""What is due of webhooks, and whose it is: one suite for SQLite and PostgreSQL."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import delete, text

from tests.support.ledger.deliveries import (
    BOOK,
    DAY_MS,
    LEASE_MS,
    NO,
    NOW_MS,
    OK,
    OTHER_BOOK,
    Run,
    Storage,
    buried,
    entity_id,
    numbers,
    tried,
)
from tollgate.actors.ledger.delivery.batches import (
    Turn,
)
from tollgate.actors.ledger.delivery.store import DeliveriesDown
from tollgate.actors.ledger.storage.connections.engine import connect
from tollgate.actors.ledger.storage.deliveries.batch_query import SCAN_MAX
from tollgate.actors.ledger.storage.deliveries.tables import (
    cursors,
    due_webhooks,
)
from tollgate.actors.ledger.storage.migration import upgrade_tables
from tollgate.actors.ledger.storage.tables import entities


def test_a_webhook_gets_the_events_that_are_younger_than_itself(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.events(1, 2)
        hook = await storage.hook(3)
        await storage.events(4, 5, 6)
        await storage.events(7, book=OTHER_BOOK)
        batch = await storage.claim_one()
        assert (batch.webhook, batch.book) == (hook, BOOK)
        assert (batch.url, batch.secret) == ("https://3.example", "sealed")
        assert numbers(batch) == [4, 5, 6]
        assert batch.events[0].body == f'{{"id":"{entity_id(4)}","type":"x"}}'
        assert {each.turn for each in batch.events} == {Turn.FIRST}

    run(scenario)


def test_nothing_is_due_without_a_webhook_or_an_event(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.events(1)
        assert await storage.claim() == []
        await storage.hook(2)
        assert await storage.claim() == []

    run(scenario)


def test_what_is_claimed_is_nobody_elses(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.hook(2)
        await storage.events(3)
        first, second = await asyncio.gather(
            storage.store.claim(NOW_MS, LEASE_MS, 10, 10),
            storage.other.claim(NOW_MS, LEASE_MS, 10, 10),
        )
        claimed = [batch.webhook for batch in (*first, *second)]
        assert sorted(claimed) == [entity_id(1), entity_id(2)]
        assert await storage.claim() == []

    run(scenario)


def test_a_lease_runs_out(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.events(2)
        late = await storage.claim_one()
        assert await storage.claim(NOW_MS + LEASE_MS - 1) == []
        again = await storage.claim_one(NOW_MS + LEASE_MS)
        assert again.events == late.events, "at least once"
        attempts = tried(late, NOW_MS + LEASE_MS, OK)
        assert not await storage.store.settle(late, attempts, NOW_MS + LEASE_MS)
        assert await storage.store.attempts(late.webhook, 9) == [], "whatever was not settled"
        assert await storage.store.settle(again, attempts, NOW_MS + LEASE_MS)
        assert await storage.claim(NOW_MS + DAY_MS) == []

    run(scenario)


def test_events_go_out_in_order_and_once_when_all_is_well(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.events(*range(2, 9))
        seen = []
        while batches := await storage.claim(events=3):
            (batch,) = batches
            assert len(batch.events) <= 3
            seen += numbers(batch)
            await storage.settle(batch, NOW_MS, OK, OK, OK)
        assert seen == list(range(2, 9))
        await storage.events(9)
        assert numbers(await storage.claim_one()) == [9]

    run(scenario)


@pytest.mark.parametrize("ahead_ms", [DAY_MS // 2, 2 * DAY_MS, 365 * DAY_MS])
def test_a_clock_that_was_ahead_for_a_round_holds_up_nothing(run: Run, ahead_ms: int) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.events(2)
        wrong_ms = NOW_MS + ahead_ms
        await storage.settle(await storage.claim_one(wrong_ms), wrong_ms, OK)
        await storage.events(3)
        batch = await storage.claim_one(NOW_MS + 1)
        assert numbers(batch) == [3]
        await storage.settle(batch, NOW_MS + 1, OK)
        assert await storage.claim(NOW_MS + 2) == []

    run(scenario)


def test_a_failure_while_the_clock_was_ahead_is_tried_again_now(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(2, 3)
        await storage.fail(NOW_MS + 365 * DAY_MS)
        batch = await storage.claim_one(NOW_MS)
        assert numbers(batch) == [2, 3]
        await storage.settle(batch, NOW_MS, NO, NO)
        assert await storage.claim(NOW_MS) == [], "its pauses are of this clock from now on"
        status = await storage.store.status(hook)
        assert status.failing_since_ms == NOW_MS

    run(scenario)


def test_a_lease_of_a_clock_that_was_ahead_is_over(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.events(2)
        await storage.claim_one(NOW_MS + 2_000)
        assert await storage.claim(NOW_MS) == [], "a clock may be ahead by seconds"
        lost = await storage.claim_one(NOW_MS + DAY_MS)
        again = await storage.claim_one(NOW_MS)
        assert numbers(again) == [2]
        assert not await storage.store.settle(lost, tried(lost, NOW_MS, OK), NOW_MS)

    run(scenario)


def test_a_webhook_gets_the_types_that_it_wants(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1, types=("y", "z"))
        await storage.events(*range(2, 4 + SCAN_MAX))
        await storage.events(1_001, type_="y")
        await storage.events(1_002)
        await storage.events(1_003, 1_004, type_="z")
        batch = await storage.claim_one()
        assert batch.events == ()
        await storage.settle(batch, NOW_MS)
        batch = await storage.claim_one(events=2)
        assert numbers(batch) == [1_001, 1_003]
        await storage.settle(batch, NOW_MS, OK)
        batch = await storage.claim_one(events=2)
        assert numbers(batch) == [1_003, 1_004]
        await storage.settle(batch, NOW_MS, OK, OK)
        assert await storage.claim() == []

    run(scenario)


def test_a_disabled_webhook_waits(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1, is_enabled=False)
        looks_so = await storage.hook(2, types=('"is_enabled":false', "x"))
        await storage.events(3)
        (batch,) = await storage.claim()
        assert batch.webhook == looks_so

    run(scenario)


def test_what_is_kept_of_a_removed_webhook_is_forgotten(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        await storage.fail(NOW_MS)
        assert await storage.store.forget_removed() == 0
        async with storage.database.writer.begin() as connection:
            await connection.execute(delete(entities).where(entities.c.id == hook))
        assert await storage.claim(NOW_MS + 9 * DAY_MS) == []
        assert await storage.store.forget_removed() == 1 + 1 + 2 + 3
        assert await storage.store.dead_letters(hook, 9) == []
        assert await storage.store.attempts(hook, 9) == []

    run(scenario)


def test_storage_that_is_gone_is_said_to_be(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        async with storage.database.writer.begin() as connection:
            await connection.execute(text("DROP TABLE webhook_cursors"))
        with pytest.raises(DeliveriesDown):
            await storage.claim()
        async with storage.database.writer.begin() as connection:
            await connection.run_sync(cursors.create)

    run(scenario)


def test_looking_for_work_walks_indexes(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        database = await connect(f"sqlite:///{tmp_path}/ledger.db")
        try:
            await upgrade_tables(database)
            query = due_webhooks(NOW_MS, LEASE_MS).compile(database.reader.sync_engine)
            async with database.reader.connect() as connection:
                plan = await connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {query}",
                    tuple(query.params[name] for name in query.positiontup or ()),
                )
                return [row[3] for row in plan]
        finally:
            await database.close()

    plan = "\n".join(asyncio.run(scenario()))
    assert "entities_webhooks" in plan
    assert "entities_list (book=? AND kind=? AND id>?)" in plan
    assert "SCAN events" not in plan
