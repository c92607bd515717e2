"""Progress of webhooks in storage: one suite for SQLite and PostgreSQL.

Events and webhooks are put where the journal's commits put them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, text

from tests.support.ledger.storage import emptied
from tollgate.actors.ledger.book.entities import Webhook, state_of
from tollgate.actors.ledger.delivery.schedule import (
    DEAD_LETTERS_MAX,
    GIVE_UP_AFTER_MS,
    DeliveriesDown,
    DeliveryBatch,
    DeliveryOutcome,
    pause_ms,
)
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.delivery_store import DEAD_AT_ONCE_MAX, SqlDeliveryStore
from tollgate.actors.ledger.storage.delivery_tables import cursors, dead, due_webhooks
from tollgate.actors.ledger.storage.migration import upgrade_tables
from tollgate.actors.ledger.storage.tables import entities

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
LEASE_MS = 60_000
BOOK = BookId("6b49d200000000000a000000")
OTHER_BOOK = BookId("6b49d200000000000b000000")
Scenario = Callable[["Storage"], Awaitable[None]]


class Storage:
    """A store, and a way to write what the ledger would."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = SqlDeliveryStore(database)
        self.other = SqlDeliveryStore(database)

    async def write(self, kind: str, entity: EntityId, book: BookId, state: str = "") -> EntityId:
        values = {"id": entity, "kind": kind, "book": book, "state": state}
        values["document"] = f'{{"id":"{entity}"}}'
        async with self.database.writer.begin() as connection:
            await connection.execute(insert(entities).values(**values))
        return entity

    async def hook(self, number: int = 1, book: BookId = BOOK, at_ms: int = NOW_MS) -> EntityId:
        entity = entity_id(number, book, at_ms)
        state = state_of(Webhook(entity, book, True, at_ms, f"https://{number}.example", "sealed"))
        return await self.write("webhook", entity, book, state)

    async def events(
        self, *numbers: int, book: BookId = BOOK, at_ms: int = NOW_MS
    ) -> list[EntityId]:
        return [
            await self.write("event", entity_id(number, book, at_ms), book) for number in numbers
        ]

    async def claim(
        self, now_ms: int = NOW_MS, batches: int = 10, letters: int = 10
    ) -> list[DeliveryBatch]:
        return await self.store.claim(now_ms, LEASE_MS, batches, letters)

    async def claim_one(self, now_ms: int = NOW_MS, letters: int = 10) -> DeliveryBatch:
        (batch,) = await self.claim(now_ms, letters=letters)
        return batch

    async def fail(self, now_ms: int, reason: str = "HTTP status 500") -> DeliveryBatch:
        batch = await self.claim_one(now_ms)
        assert await self.store.settle(batch, DeliveryOutcome(0, reason), now_ms)
        return batch


def entity_id(number: int, book: BookId = BOOK, at_ms: int = NOW_MS) -> EntityId:
    return EntityId(f"{at_ms // 1000:08x}{book[8:18]}{number:06x}")


def numbers(batch: DeliveryBatch) -> list[int]:
    return [int(letter.event[18:], 16) for letter in batch.letters]


Run = Callable[[Scenario], None]


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
                for table in (entities, cursors, dead):
                    await connection.execute(delete(table))
            await scenario(Storage(database))
        finally:
            await database.close()

    return lambda scenario: asyncio.run(prepared(scenario))


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
        assert batch.letters[0].body == f'{{"id":"{entity_id(4)}"}}'
        assert not any(letter.is_again for letter in batch.letters)

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
        assert again.letters == late.letters, "at least once"
        assert not await storage.store.settle(late, DeliveryOutcome(1), NOW_MS + LEASE_MS)
        assert await storage.store.settle(again, DeliveryOutcome(1), NOW_MS + LEASE_MS)
        assert await storage.claim(NOW_MS + DAY_MS) == []

    run(scenario)


def test_events_go_out_in_order_and_once_when_all_is_well(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.events(*range(2, 9))
        seen = []
        while batches := await storage.claim(letters=3):
            (batch,) = batches
            assert len(batch.letters) <= 3
            seen += numbers(batch)
            assert await storage.store.settle(batch, DeliveryOutcome(len(batch.letters)), NOW_MS)
        assert seen == list(range(2, 9))
        await storage.events(9)
        assert numbers(await storage.claim_one()) == [9]

    run(scenario)


def test_a_failure_holds_back_what_comes_after_it_and_waits(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(2, 3, 4)
        batch = await storage.claim_one()
        assert await storage.store.settle(batch, DeliveryOutcome(1, "HTTP status 500"), NOW_MS)
        due_ms = NOW_MS + pause_ms(hook, 1)
        assert await storage.claim(due_ms - 1) == []
        again = await storage.claim_one(due_ms)
        assert numbers(again) == [3, 4]
        assert (again.progress.failures, again.progress.failing_since_ms) == (1, NOW_MS)
        assert await storage.store.dead_letters(hook, 10) == []

    run(scenario)


def test_a_failing_webhook_holds_back_no_other(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.hook(2)
        await storage.events(3)
        for batch in await storage.claim():
            reason = None if batch.webhook == entity_id(2) else "refused"
            outcome = DeliveryOutcome(0 if reason else 1, reason)
            assert await storage.store.settle(batch, outcome, NOW_MS)
        await storage.events(4)
        (batch,) = await storage.claim()
        assert (batch.webhook, numbers(batch)) == (entity_id(2), [4])

    run(scenario)


def test_after_three_days_of_failures_an_event_is_a_dead_letter(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(2, 3)
        await storage.fail(NOW_MS)
        young_ms = NOW_MS + 2 * DAY_MS
        await storage.events(4, at_ms=young_ms)
        await storage.fail(young_ms)
        assert await storage.store.dead_letters(hook, 10) == []
        late_ms = NOW_MS + GIVE_UP_AFTER_MS + 1_000
        await storage.fail(late_ms, "HTTP status 503" + "x" * 1_000)
        found = await storage.store.dead_letters(hook, 10)
        assert [letter.event for letter in found] == [entity_id(3), entity_id(2)]
        assert {letter.at_ms for letter in found} == {late_ms}
        assert {len(letter.reason) for letter in found} == {300}
        rest = await storage.claim_one(late_ms + DAY_MS)
        assert [letter.event for letter in rest.letters] == [entity_id(4, at_ms=young_ms)]

    run(scenario)


def test_dead_letters_are_paged(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(*range(2, 9))
        await storage.fail(NOW_MS)
        await storage.fail(NOW_MS + GIVE_UP_AFTER_MS + 1_000)
        walked: list[EntityId] = []
        while page := await storage.store.dead_letters(hook, 3, walked[-1] if walked else None):
            walked += [letter.event for letter in page]
        assert walked == [entity_id(number) for number in range(8, 1, -1)]

    run(scenario)


async def buried(storage: Storage) -> EntityId:
    """A webhook with the dead letters 2 and 3, and the event 4 on its way."""
    hook = await storage.hook(1)
    await storage.events(2, 3)
    await storage.fail(NOW_MS)
    late_ms = NOW_MS + GIVE_UP_AFTER_MS + 1_000
    await storage.fail(late_ms)
    await storage.events(4, at_ms=late_ms)
    return hook


def test_dead_letters_are_sent_again_after_what_is_new(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        now_ms = NOW_MS + GIVE_UP_AFTER_MS + 2_000
        assert await storage.claim(now_ms) == [], "it waits after its failure"
        assert await storage.store.send_again(hook, None, now_ms) == 2
        assert await storage.store.send_again(hook, None, now_ms) == 0
        assert [each.is_queued for each in await storage.store.dead_letters(hook, 9)] == [True] * 2
        batch = await storage.claim_one(now_ms)
        assert numbers(batch) == [4, 2, 3]
        assert [letter.is_again for letter in batch.letters] == [False, True, True]
        assert await storage.store.settle(batch, DeliveryOutcome(3), now_ms)
        assert await storage.store.dead_letters(hook, 9) == []
        assert await storage.claim(now_ms) == []

    run(scenario)


def test_one_dead_letter_is_sent_again_and_dead_again(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        now_ms = NOW_MS + GIVE_UP_AFTER_MS + 2_000
        wanted = [entity_id(3), entity_id(99)]
        assert await storage.store.send_again(hook, wanted, now_ms) == 1
        batch = await storage.claim_one(now_ms)
        assert numbers(batch) == [4, 3]
        assert await storage.store.settle(batch, DeliveryOutcome(1, "still no"), now_ms)
        newest, oldest = await storage.store.dead_letters(hook, 9)
        assert (newest.event, newest.reason, newest.is_queued) == (entity_id(3), "still no", False)
        assert (oldest.event, oldest.is_queued) == (entity_id(2), False)
        assert newest.at_ms == now_ms
        assert await storage.claim(now_ms + DAY_MS) == [], "it is tried once"

    run(scenario)


def test_the_burial_of_many_is_done_in_parts(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        rows = [
            {"id": entity_id(number), "kind": "event", "book": BOOK, "document": "{}", "state": ""}
            for number in range(2, DEAD_AT_ONCE_MAX + 12)
        ]
        async with storage.database.writer.begin() as connection:
            await connection.execute(insert(entities), rows)
        now_ms = NOW_MS
        await storage.fail(now_ms)
        for left in (10, 0):
            now_ms += GIVE_UP_AFTER_MS + 1_000
            await storage.fail(now_ms)
            async with storage.database.reader.connect() as connection:
                buried_events = (await connection.execute(select(dead.c.event))).scalars().all()
            assert len(buried_events) == DEAD_AT_ONCE_MAX + 10 - left
        assert await storage.claim(now_ms + DAY_MS) == []
        assert (await storage.store.dead_letters(hook, 1))[0].event == entity_id(1_011)

    run(scenario)


def test_of_too_many_dead_letters_the_oldest_go(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        kept = {"webhook": hook, "at_ms": 0, "reason": "", "is_queued": False}
        old_ms = NOW_MS - DAY_MS
        rows = [
            kept | {"event": entity_id(number, at_ms=old_ms)} for number in range(DEAD_LETTERS_MAX)
        ]
        async with storage.database.writer.begin() as connection:
            await connection.execute(insert(dead), rows)
        await storage.events(2, 3)
        await storage.fail(NOW_MS)
        await storage.fail(NOW_MS + GIVE_UP_AFTER_MS + 1_000)
        async with storage.database.reader.connect() as connection:
            found = (
                await connection.execute(select(dead.c.event).order_by(dead.c.event))
            ).scalars()
            events = list(found)
        assert len(events) == DEAD_LETTERS_MAX
        assert events[0] == entity_id(2, at_ms=old_ms)
        assert events[-2:] == [entity_id(2), entity_id(3)]

    run(scenario)


def test_what_is_kept_of_a_removed_webhook_is_forgotten(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        assert await storage.store.forget_removed() == 0
        async with storage.database.writer.begin() as connection:
            await connection.execute(delete(entities).where(entities.c.id == hook))
        assert await storage.claim(NOW_MS + 9 * DAY_MS) == []
        assert await storage.store.forget_removed() == 3
        assert await storage.store.dead_letters(hook, 9) == []

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
            query = due_webhooks(NOW_MS).compile(database.reader.sync_engine)
            async with database.reader.connect() as connection:
                plan = await connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {query}", tuple(query.params.values())
                )
                return [row[3] for row in plan]
        finally:
            await database.close()

    plan = "\n".join(asyncio.run(scenario()))
    assert "entities_webhooks" in plan
    assert "entities_list (book=? AND kind=? AND id>?)" in plan
    assert "SCAN events" not in plan
