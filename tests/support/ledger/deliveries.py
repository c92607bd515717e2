"""Deliveries in storage: events and webhooks are put where the journal's commits put them."""

from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import insert

from tollgate.actors.ledger.book.entities import Webhook, state_of
from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    DeliveryAttempt,
    DeliveryBatch,
)
from tollgate.actors.ledger.delivery.schedule import (
    ORDER_WINDOW_MS,
)
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.deliveries.tables import (
    dead,
)
from tollgate.actors.ledger.storage.tables import entities

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
LEASE_MS = 60_000
BOOK = BookId("6b49d200000000000a000000")
OTHER_BOOK = BookId("6b49d200000000000b000000")
Scenario = Callable[["Storage"], Awaitable[None]]
Run = Callable[[Scenario], None]


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
        self, number: int = 1, book: BookId = BOOK, at_ms: int = NOW_MS, **more: Any
    ) -> EntityId:
        entity = entity_id(number, book, at_ms)
        url = f"https://{number}.example"
        webhook = Webhook(entity, book, True, at_ms, url, "sealed", **more)
        state = state_of(webhook)
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


OK, NO = CallResult(200), CallResult(503, "HTTP status 503")


def tried(batch: DeliveryBatch, at_ms: int, *results: CallResult) -> list[DeliveryAttempt]:
    return [
        DeliveryAttempt(event, at_ms, 7, result)
        for event, result in zip(batch.events, results, strict=False)
    ]


def entity_id(number: int, book: BookId = BOOK, at_ms: int = NOW_MS) -> EntityId:
    return EntityId(f"{at_ms // 1000:08x}{book[8:18]}{number:06x}")


def numbers(batch: DeliveryBatch) -> list[int]:
    return [int(each.event[18:], 16) for each in batch.events]


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
