"""Events that were given up: one suite for SQLite and PostgreSQL."""

from sqlalchemy import insert, select

from tests.support.ledger.deliveries import (
    BOOK,
    DAY_MS,
    NO,
    NOW_MS,
    OK,
    Run,
    Storage,
    away,
    buried,
    entity_id,
    numbers,
)
from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import (
    DEAD_LETTERS_MAX,
    GIVE_UP_AFTER_MS,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.deliveries.settling import DEAD_AT_ONCE_MAX
from tollgate.actors.ledger.storage.deliveries.tables import (
    dead,
)
from tollgate.actors.ledger.storage.tables import entities


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
