"""Events that are tried again, and the log of it: one suite for SQLite and PostgreSQL."""

from sqlalchemy import insert

from tests.support.ledger.deliveries import (
    DAY_MS,
    NO,
    NOW_MS,
    OK,
    Run,
    Storage,
    away,
    entity_id,
    numbers,
)
from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    DeliveryAttempt,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import (
    ORDER_WINDOW_MS,
    PAUSE_MIN_MS,
    WAITING_MAX,
)
from tollgate.actors.ledger.storage.deliveries.settling import LOG_MAX
from tollgate.actors.ledger.storage.deliveries.tables import (
    log,
    retries,
)


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
        test = DeliveryAttempt(OutgoingEvent(entity_id(9), "webhook.test", "{}"), NOW_MS + 1, 3, OK)
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
