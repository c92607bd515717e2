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
from tollgate.actors.ledger.delivery.batches import (
    Attempt,
    CallResult,
    DeliveryBatch,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import (
    DEAD_LETTERS_MAX,
    GIVE_UP_AFTER_MS,
    ORDER_WINDOW_MS,
    PAUSE_MIN_MS,
    WAITING_MAX,
)
from tollgate.actors.ledger.delivery.store import DeliveriesDown
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.deliveries.batch_query import SCAN_MAX
from tollgate.actors.ledger.storage.deliveries.settling import DEAD_AT_ONCE_MAX, LOG_MAX
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.deliveries.tables import (
    cursors,
    dead,
    due_webhooks,
    log,
    retries,
)
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

    async def write(
        self, kind: str, entity: EntityId, book: BookId, state: str = "", type_: str = "x"
    ) -> EntityId:
        values = {"id": entity, "kind": kind, "book": book, "state": state}
        values["document"] = f'{{"id":"{entity}","type":"{type_}"}}'
        async with self.database.writer.begin() as connection:
            await connection.execute(insert(entities).values(**values))
        return entity

    async def hook(
        self, number: int = 1, book: BookId = BOOK, at_ms: int = NOW_MS, **more: object
    ) -> EntityId:
        entity = entity_id(number, book, at_ms)
        url = f"https://{number}.example"
        state = state_of(Webhook(entity, book, True, at_ms, url, "sealed", **more))  # type: ignore[arg-type]
        return await self.write("webhook", entity, book, state)

    async def events(
        self, *numbers: int, book: BookId = BOOK, at_ms: int = NOW_MS, type_: str = "x"
    ) -> list[EntityId]:
        return [
            await self.write("event", entity_id(number, book, at_ms), book, type_=type_)
            for number in numbers
        ]

    async def claim(
        self, now_ms: int = NOW_MS, batches: int = 10, events: int = 10
    ) -> list[DeliveryBatch]:
        return await self.store.claim(now_ms, LEASE_MS, batches, events)

    async def claim_one(self, now_ms: int = NOW_MS, events: int = 10) -> DeliveryBatch:
        (batch,) = await self.claim(now_ms, events=events)
        return batch

    async def settle(self, batch: DeliveryBatch, now_ms: int, *results: CallResult) -> None:
        assert await self.store.settle(batch, tried(batch, now_ms, *results), now_ms)

    async def fail(self, now_ms: int, result: CallResult | None = None) -> DeliveryBatch:
        """The first event of what is due fails."""
        batch = await self.claim_one(now_ms)
        await self.settle(batch, now_ms, result or NO)
        return batch


OK, NO = CallResult(200), CallResult(500, "HTTP status 500")


def tried(batch: DeliveryBatch, at_ms: int, *results: CallResult) -> list[Attempt]:
    return [
        Attempt(event, at_ms, 7, result)
        for event, result in zip(batch.events, results, strict=False)
    ]


def entity_id(number: int, book: BookId = BOOK, at_ms: int = NOW_MS) -> EntityId:
    return EntityId(f"{at_ms // 1000:08x}{book[8:18]}{number:06x}")


def numbers(batch: DeliveryBatch) -> list[int]:
    return [int(each.event[18:], 16) for each in batch.events]


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
                for table in (entities, cursors, dead, retries, log):
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


def test_a_failure_holds_back_what_comes_after_it_for_a_minute(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(2, 3, 4)
        await storage.settle(await storage.claim_one(), NOW_MS, OK, NO)
        (failed, delivered) = await storage.store.attempts(hook, 9)
        due_ms = failed.next_attempt_ms
        assert due_ms is not None
        assert NOW_MS < due_ms <= NOW_MS + PAUSE_MIN_MS
        assert delivered.next_attempt_ms is None
        assert await storage.claim(due_ms - 1) == []
        batch = await storage.claim_one(due_ms)
        assert [(each.turn, each.attempts) for each in batch.events] == [(Turn.RETRY, 1)]
        assert numbers(batch) == [3]
        assert batch.events[0].failing_since_ms == NOW_MS
        await storage.settle(batch, due_ms, NO)
        behind_ms = NOW_MS + ORDER_WINDOW_MS
        behind = await storage.claim_one(behind_ms)
        assert numbers(behind) == [3, 4], "the one that waits is tried before it is overtaken"
        await storage.settle(behind, behind_ms, NO, OK)
        assert await storage.store.dead_letters(hook, 10) == []
        await storage.events(5)
        assert numbers(await storage.claim_one(behind_ms)) == [5]

    run(scenario)


def test_a_failing_webhook_holds_back_no_other(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        await storage.hook(1)
        await storage.hook(2)
        await storage.events(3)
        for batch in await storage.claim():
            result = OK if batch.webhook == entity_id(2) else NO
            await storage.settle(batch, NOW_MS, result)
        await storage.events(4)
        (batch,) = await storage.claim()
        assert (batch.webhook, numbers(batch)) == (entity_id(2), [4])

    run(scenario)


async def away(storage: Storage) -> tuple[EntityId, int]:
    """A webhook whose receiver is away: 2, 3 and 4 failed, 5 and 6 are behind them; the time."""
    hook = await storage.hook(1)
    await storage.events(*range(2, 7))
    await storage.fail(NOW_MS)
    now_ms = NOW_MS + ORDER_WINDOW_MS
    for behind in (3, 4):
        batch = await storage.claim_one(now_ms)
        assert numbers(batch)[:2] == [2, behind], "the oldest goes before each new one"
        await storage.settle(batch, now_ms, NO, NO)
        now_ms += 10_000
    return hook, now_ms


def test_what_failed_while_the_receiver_was_away_comes_first_once_it_is_back(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        _, now_ms = await away(storage)
        batch = await storage.claim_one(now_ms)
        assert numbers(batch)[0] == 2
        await storage.settle(batch, now_ms, OK)
        batch = await storage.claim_one(now_ms)
        assert numbers(batch) == [3, 4, 5, 6], "the order is as it was"
        assert [each.turn for each in batch.events] == [Turn.RECOVERY] * 2 + [Turn.FIRST] * 2
        await storage.settle(batch, now_ms, OK, OK, OK, OK)
        assert await storage.claim(now_ms + DAY_MS) == []

    run(scenario)


def test_a_recovery_that_fails_waits_and_the_others_lose_their_place(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook, now_ms = await away(storage)
        await storage.settle(await storage.claim_one(now_ms), now_ms, OK)
        await storage.settle(await storage.claim_one(now_ms), now_ms, NO)
        batch = await storage.claim_one(now_ms)
        assert [each.turn for each in batch.events] == [Turn.RETRY, Turn.FIRST, Turn.FIRST]
        assert numbers(batch) == [4, 5, 6]
        assert (await storage.store.status(hook)).waiting == 2

    run(scenario)


def test_whoever_asks_for_it_is_tried_at_once(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook, _ = await away(storage)
        now_ms = NOW_MS + ORDER_WINDOW_MS + 11_000
        status = await storage.store.status(hook)
        assert (status.waiting, status.dead, status.failing_since_ms) == (3, 0, NOW_MS)
        assert await storage.store.retry_now(hook, [entity_id(4), entity_id(99)], now_ms) == 1
        assert await storage.store.retry_now(entity_id(9), None, now_ms) == 0
        batch = await storage.claim_one(now_ms)
        assert numbers(batch)[0] == 4
        assert await storage.store.settle(batch, [], now_ms)
        assert await storage.store.retry_now(hook, None, now_ms) == 3
        assert numbers(await storage.claim_one(now_ms)) == [2, 3, 4, 5, 6]

    run(scenario)


def test_of_too_many_that_wait_the_oldest_are_given_up(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        old_ms = NOW_MS - DAY_MS
        row = {"webhook": hook, "failing_since_ms": NOW_MS, "attempts": 1, "reason": "old"}
        rows = [
            row | {"event": entity_id(number, at_ms=old_ms), "next_attempt_ms": NOW_MS + DAY_MS}
            for number in range(WAITING_MAX)
        ]
        async with storage.database.writer.begin() as connection:
            await connection.execute(insert(retries), rows)
        await storage.events(2)
        await storage.fail(NOW_MS)
        assert (await storage.store.status(hook)).waiting == WAITING_MAX
        (letter,) = await storage.store.dead_letters(hook, 9)
        assert letter.event == entity_id(0, at_ms=old_ms)
        assert letter.reason == "more than 1000 events waited; before that: old"

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


def test_the_log_tells_each_attempt_the_newest_first(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(2, 3)
        await storage.settle(await storage.claim_one(), NOW_MS, OK, CallResult(None, "x" * 999))
        failed, delivered = await storage.store.attempts(hook, 9)
        assert (failed.event, delivered.event) == (entity_id(3), entity_id(2))
        assert (delivered.type, delivered.at_ms, delivered.duration_ms) == ("x", NOW_MS, 7)
        assert (delivered.status, delivered.error) == (200, "")
        assert (failed.status, failed.error) == (None, "x" * 300)
        assert await storage.store.attempts(hook, 1) == [failed]
        assert await storage.store.attempts(hook, 9, failed.id) == [delivered]
        test = Attempt(OutgoingEvent(entity_id(9), "webhook.test", "{}"), NOW_MS + 1, 3, OK)
        written = await storage.store.log(hook, test)
        newest = (await storage.store.attempts(hook, 1))[0]
        assert (newest.id, newest.type) == (written, "webhook.test")

    run(scenario)


def test_of_a_long_log_the_oldest_goes(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        row = {"webhook": hook, "type": "x", "at_ms": 0, "duration_ms": 1, "error": ""}
        rows = [row | {"id": f"{number:024x}", "event": "e"} for number in range(LOG_MAX)]
        async with storage.database.writer.begin() as connection:
            await connection.execute(insert(log), rows)
        await storage.events(2)
        await storage.fail(NOW_MS)
        found = await storage.store.attempts(hook, 2 * LOG_MAX)
        assert len(found) == LOG_MAX
        assert found[-1].id == f"{1:024x}"

    run(scenario)


def test_after_three_days_of_failures_an_event_is_a_dead_letter(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        await storage.events(2)
        await storage.fail(NOW_MS)
        young_ms = NOW_MS + 2 * DAY_MS
        await storage.fail(young_ms)
        assert await storage.store.dead_letters(hook, 10) == []
        late_ms = NOW_MS + GIVE_UP_AFTER_MS + 1_000
        await storage.events(4, at_ms=late_ms)
        await storage.fail(late_ms, CallResult(503, "HTTP status 503" + "x" * 1_000))
        (letter,) = await storage.store.dead_letters(hook, 10)
        assert (letter.event, letter.at_ms) == (entity_id(2), late_ms)
        assert len(letter.reason) == 300
        rest = await storage.claim_one(late_ms + DAY_MS)
        assert [each.event for each in rest.events] == [entity_id(4, at_ms=late_ms)]

    run(scenario)


def test_events_that_nobody_tried_in_three_days_of_absence_are_dead_too(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook, _ = await away(storage)
        late_ms = NOW_MS + GIVE_UP_AFTER_MS + 1_000
        await storage.fail(late_ms)
        letters = await storage.store.dead_letters(hook, 9)
        assert [letter.event for letter in letters] == [entity_id(n) for n in (6, 5, 2)]
        assert letters[0].reason == "the receiver was away for three days"

    run(scenario)


async def buried(storage: Storage) -> EntityId:
    """A webhook with the dead letters 2 and 3, and the event 4 on its way."""
    hook = await storage.hook(1)
    await storage.events(2, 3)
    batch = await storage.claim_one()
    await storage.settle(batch, NOW_MS, OK, OK)
    kept = {"webhook": hook, "at_ms": NOW_MS, "reason": "gone", "is_queued": False}
    async with storage.database.writer.begin() as connection:
        await connection.execute(
            insert(dead), [kept | {"event": entity_id(number)} for number in (2, 3)]
        )
    await storage.events(4)
    return hook


def test_dead_letters_are_paged(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        walked: list[EntityId] = []
        while page := await storage.store.dead_letters(hook, 1, walked[-1] if walked else None):
            walked += [letter.event for letter in page]
        assert walked == [entity_id(3), entity_id(2)]

    run(scenario)


def test_dead_letters_are_sent_again_after_what_is_new(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        assert await storage.store.send_again(hook, None, NOW_MS) == 2
        assert await storage.store.send_again(hook, None, NOW_MS) == 0
        assert [each.is_queued for each in await storage.store.dead_letters(hook, 9)] == [True] * 2
        batch = await storage.claim_one()
        assert numbers(batch) == [4, 2, 3]
        assert [each.turn for each in batch.events] == [Turn.FIRST, Turn.REPLAY, Turn.REPLAY]
        await storage.settle(batch, NOW_MS, OK, OK, OK)
        assert await storage.store.dead_letters(hook, 9) == []
        assert await storage.claim() == []

    run(scenario)


def test_one_dead_letter_is_sent_again_and_dead_again(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await buried(storage)
        now_ms = NOW_MS + 2_000
        wanted = [entity_id(3), entity_id(99)]
        assert await storage.store.send_again(hook, wanted, now_ms) == 1
        batch = await storage.claim_one(now_ms)
        assert numbers(batch) == [4, 3]
        await storage.settle(batch, now_ms, OK, CallResult(None, "still no"))
        newest, oldest = await storage.store.dead_letters(hook, 9)
        assert (newest.event, newest.reason, newest.is_queued) == (entity_id(3), "still no", False)
        assert (oldest.event, oldest.is_queued) == (entity_id(2), False)
        assert newest.at_ms == now_ms
        assert await storage.claim(now_ms + DAY_MS) == [], "it is tried once"

    run(scenario)


def test_the_burial_of_many_is_done_in_parts(run: Run) -> None:
    async def scenario(storage: Storage) -> None:
        hook = await storage.hook(1)
        row = {"kind": "event", "book": BOOK, "document": '{"type":"x"}', "state": ""}
        rows = [row | {"id": entity_id(number)} for number in range(2, DEAD_AT_ONCE_MAX + 12)]
        async with storage.database.writer.begin() as connection:
            await connection.execute(insert(entities), rows)
        await storage.fail(NOW_MS)
        now_ms = NOW_MS
        for count in (DEAD_AT_ONCE_MAX + 1, DEAD_AT_ONCE_MAX + 9):
            now_ms += GIVE_UP_AFTER_MS + 1_000
            batch = await storage.claim_one(now_ms)
            await storage.settle(batch, now_ms, NO)
            assert (await storage.store.status(hook)).dead == count
        assert (await storage.store.status(hook)).waiting == 1, "it was tried, and is new"

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
        await storage.events(2)
        await storage.fail(NOW_MS)
        await storage.fail(NOW_MS + GIVE_UP_AFTER_MS + 1_000)
        async with storage.database.reader.connect() as connection:
            found = (
                await connection.execute(select(dead.c.event).order_by(dead.c.event))
            ).scalars()
            events = list(found)
        assert len(events) == DEAD_LETTERS_MAX
        assert events[0] == entity_id(1, at_ms=old_ms)
        assert events[-1] == entity_id(2)

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
