"""Webhooks on storage on disk, with receivers that are told what to refuse."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from sqlalchemy import insert

from tests.support.manual_clock import ManualClock
from tests.support.payments.deliveries import deliver_due
from tollgate.actors.ledger.book.entities import Webhook, state_of
from tollgate.actors.ledger.delivery.batches import CallResult
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.migration import upgrade_tables
from tollgate.actors.ledger.storage.tables import entities
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookSecret
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds

NOW_S = 1_800_000_000
DAY_S = 86_400
BOX = WebhookSecretSealer(MasterSecret(b"s" * 32))
SECRETS = (WebhookSecret("new"), WebhookSecret("old", (NOW_S + DAY_S) * 1000))
BOUNDS = DeliveryBounds(calls_max=4, events_max=5, timeout_s=10.0, poll_s=0.01)


def entity_id(number: int, book: str = "a") -> EntityId:
    return EntityId(f"{NOW_S:08x}000000000{book}{number:06x}")


def book_id(book: str = "a") -> BookId:
    return BookId(entity_id(0, book))


def failed(error: str) -> CallResult:
    """The result of a call that failed so: "HTTP status 410" is an answer, others are none."""
    status = error.removeprefix("HTTP status ")
    return CallResult(int(status) if status.isdecimal() else None, error)


class Receivers:
    """Takes calls and remembers them; `refuse` says what is wrong with one, if anything."""

    def __init__(self, refuse: Callable[[str, int], str | None] = lambda url, event: None) -> None:
        self.refuse = refuse
        self.seen: list[tuple[str, int]] = []
        self.headers: list[dict[str, str]] = []
        self.under_way = 0
        self.most_under_way = 0

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        event = int(json.loads(body)["id"][18:], 16)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        self.seen.append((url, event))
        self.headers.append(headers)
        error = self.refuse(url, event)
        return CallResult(200) if error is None else failed(error)

    def got(self, url: str) -> list[int]:
        return [event for called, event in self.seen if called == url]


class World:
    """Storage on disk, a clock that stands, receivers, and workers between them."""

    def __init__(self, database: Database, receivers: Receivers) -> None:
        self.database = database
        self.receivers = receivers
        self.clock = ManualClock(float(NOW_S))

        self.store = SqlDeliveryStore(database)
        self.caller = WebhookCaller(receivers, BOX, self.clock, "Tollgate/1")

    async def deliver(self, bounds: DeliveryBounds = BOUNDS) -> int:
        """What is due at this moment; the number of batches."""
        return await deliver_due(self.store, self.caller, self.clock, bounds)

    async def hook(self, number: int, book: str = "a", secret: str | None = None) -> str:
        url = f"https://{book}{number}.example"
        sealed = BOX.seal(SECRETS, book_id(book)) if secret is None else secret
        entity = entity_id(number, book)
        state = state_of(Webhook(entity, book_id(book), True, NOW_S * 1000, url, sealed))
        await write(self.database, "webhook", entity, book, state)
        return url

    async def events(self, *numbers: int, book: str = "a") -> None:
        for number in numbers:
            await write(self.database, "event", entity_id(number, book), book)


async def write(
    database: Database, kind: str, entity: EntityId, book: str, state: str = ""
) -> None:
    row = {"id": entity, "kind": kind, "book": book_id(book), "state": state}
    row["document"] = json.dumps({"id": entity, "type": "x"})
    async with database.writer.begin() as connection:
        await connection.execute(insert(entities).values(**row))


def in_world(
    folder: Path, scenario: Callable[[World], Awaitable[None]], receivers: Receivers | None = None
) -> Receivers:
    found = receivers or Receivers()

    async def prepared() -> None:
        database = await connect(f"sqlite:///{folder}/ledger.db")
        try:
            await upgrade_tables(database)
            await scenario(World(database, found))
        finally:
            await database.close()

    asyncio.run(prepared())
    return found
