"""The worker on real storage: in order, at least once, whatever fails and whoever is killed."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import insert

from tests.support.manual_clock import ManualClock
from tollgate.actors.ledger.book.entities import Webhook, state_of
from tollgate.actors.ledger.delivery.schedule import (
    ChooseDue,
    DeliveriesDown,
    DeliveryBatch,
    DeliveryOutcome,
)
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.delivery_store import SqlDeliveryStore
from tollgate.actors.ledger.storage.migration import upgrade_tables
from tollgate.actors.ledger.storage.tables import entities
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.calls import WebhookSecret, is_signed
from tollgate.serve.payments.webhooks.fair_choice import MERCHANT_CALLS_MAX
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker

NOW_S = 1_800_000_000
DAY_S = 86_400
BOX = WebhookSecretSealer(MasterSecret(b"s" * 32))
SECRETS = (WebhookSecret("new"), WebhookSecret("old", (NOW_S + DAY_S) * 1000))
BOUNDS = DeliveryBounds(calls_max=4, letters_max=5, timeout_s=10.0, poll_s=0.01)


def entity_id(number: int, book: str = "a") -> EntityId:
    return EntityId(f"{NOW_S:08x}000000000{book}{number:06x}")


def book_id(book: str = "a") -> BookId:
    return BookId(entity_id(0, book))


class Receivers:
    """Takes calls and remembers them; `refuse` says what is wrong with one, if anything."""

    def __init__(self, refuse: Callable[[str, int], str | None] = lambda url, event: None) -> None:
        self.refuse = refuse
        self.seen: list[tuple[str, int]] = []
        self.headers: list[dict[str, str]] = []
        self.under_way = 0
        self.most_under_way = 0

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> str | None:
        event = int(json.loads(body)["id"][18:], 16)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        self.seen.append((url, event))
        self.headers.append(headers)
        return self.refuse(url, event)

    def got(self, url: str) -> list[int]:
        return [event for called, event in self.seen if called == url]


class World:
    """Storage on disk, a clock that stands, receivers, and workers between them."""

    def __init__(self, database: Database, receivers: Receivers) -> None:
        self.database = database
        self.receivers = receivers
        self.clock = ManualClock(float(NOW_S))

    def worker(self, bounds: DeliveryBounds = BOUNDS) -> DeliveryWorker:
        store = SqlDeliveryStore(self.database)
        return DeliveryWorker(store, self.receivers, BOX, self.clock, "Tollgate/1", bounds)

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
    row["document"] = json.dumps({"id": entity})
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


def test_every_event_is_delivered_in_order_and_signed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(*range(2, 14))
        worker = world.worker()
        while await worker.deliver_due():
            pass

    receivers = in_world(tmp_path, scenario)
    assert receivers.got("https://a1.example") == list(range(2, 14))
    for (_, event), headers in zip(receivers.seen, receivers.headers, strict=True):
        body = json.dumps({"id": entity_id(event)}).encode()
        signed = headers["Tollgate-Signature"]
        assert is_signed(signed, body, "new", NOW_S)
        assert is_signed(signed, body, "old", NOW_S)
        assert headers["Tollgate-Event"] == entity_id(event)
        assert headers["User-Agent"] == "Tollgate/1"
        assert headers["Content-Type"] == "application/json"


def test_the_old_secret_signs_for_a_day(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2)
        world.clock.advance(DAY_S)
        await world.worker().deliver_due()

    receivers = in_world(tmp_path, scenario)
    body = json.dumps({"id": entity_id(2)}).encode()
    signed = receivers.headers[0]["Tollgate-Signature"]
    assert is_signed(signed, body, "new", NOW_S + DAY_S)
    assert not is_signed(signed, body, "old", NOW_S + DAY_S)


def test_an_event_that_fails_is_tried_again_before_those_after_it(tmp_path: Path) -> None:
    failures = iter(["HTTP status 500", "HTTP status 503"])

    def refuse(url: str, event: int) -> str | None:
        return next(failures, None) if event == 3 else None

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2, 3, 4)
        worker = world.worker()
        for _ in range(4):
            await worker.deliver_due()
            world.clock.advance(3_600)

    receivers = in_world(tmp_path, scenario, Receivers(refuse))
    assert receivers.got("https://a1.example") == [2, 3, 3, 3, 4]


def test_a_receiver_that_fails_holds_back_no_other(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(1, 4):
            await world.hook(number)
        await world.hook(1, book="b")
        await world.events(7, 8)
        await world.events(7, 8, book="b")
        worker = world.worker()
        while await worker.deliver_due():
            pass

    receivers = in_world(
        tmp_path, scenario, Receivers(lambda url, _: "no" if "a2" in url else None)
    )
    assert receivers.got("https://a2.example") == [7]
    for url in ("https://a1.example", "https://a3.example", "https://b1.example"):
        assert receivers.got(url) == [7, 8]


def test_a_secret_that_cannot_be_opened_is_a_failure_and_no_unsigned_call(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1, secret="sealed by another installation")
        await world.events(2)
        assert await world.worker().deliver_due() == 1
        (batch,) = await SqlDeliveryStore(world.database).claim((NOW_S + 10) * 1000, 1, 1, 1)
        assert batch.progress.failures == 1

    assert in_world(tmp_path, scenario).seen == []


def test_a_batch_ends_before_its_lease_does(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        def slow(url: str, event: int) -> None:
            world.clock.advance(9.9)

        world.receivers.refuse = slow
        await world.hook(1)
        await world.events(*range(2, 12))
        bounds = DeliveryBounds(calls_max=1, letters_max=10, slice_s=1_000.0, timeout_s=10.0)
        worker = world.worker(bounds)
        await worker.deliver_due()
        assert world.clock.now_s() - NOW_S < bounds.lease_ms / 1000
        await worker.deliver_due()

    receivers = in_world(tmp_path, scenario)
    assert receivers.got("https://a1.example") == list(range(2, 12))


def test_a_slow_receiver_gives_up_its_place_after_a_while(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        def slow(url: str, event: int) -> None:
            world.clock.advance(1.5)

        world.receivers.refuse = slow
        await world.hook(1)
        await world.events(*range(2, 7))
        await world.worker(DeliveryBounds(slice_s=2.0)).deliver_due()

    assert in_world(tmp_path, scenario).got("https://a1.example") == [2, 3]


def test_a_merchant_has_few_calls_under_way(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(1, 6):
            await world.hook(number)
        await world.hook(1, book="b")
        await world.events(7)
        await world.events(7, book="b")
        await world.worker(DeliveryBounds()).deliver_due()

    receivers = in_world(tmp_path, scenario)
    assert len(receivers.seen) == MERCHANT_CALLS_MAX + 1
    assert receivers.got("https://b1.example") == [7]


def test_running_delivers_until_it_is_stopped(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(1, 9):
            await world.hook(number)
        await world.events(*range(20, 33))
        worker = world.worker()
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(30):
            while len(world.receivers.seen) < 8 * 13:
                await asyncio.sleep(0.01)
            await world.events(40)
            while len(world.receivers.seen) < 8 * 14:
                await asyncio.sleep(0.01)
            worker.stop()
            await running
        assert await SqlDeliveryStore(world.database).claim(NOW_S * 1000, 1, 9, 9) == []

    receivers = in_world(tmp_path, scenario)
    for number in range(1, 9):
        assert receivers.got(f"https://a{number}.example") == [*range(20, 33), 40]
    assert receivers.most_under_way <= BOUNDS.calls_max


class FlakyStore:
    """A store whose server comes and goes."""

    def __init__(self, store: SqlDeliveryStore) -> None:
        self._store = store
        self.claims_down = 2
        self.settlements_down = 1

    async def claim(
        self, now_ms: int, lease_ms: int, batches: int, letters: int, choose: ChooseDue
    ) -> list[DeliveryBatch]:
        if self.claims_down:
            self.claims_down -= 1
            raise DeliveriesDown("no connection")
        return await self._store.claim(now_ms, lease_ms, batches, letters, choose)

    async def settle(self, batch: DeliveryBatch, outcome: DeliveryOutcome, now_ms: int) -> bool:
        if self.settlements_down:
            self.settlements_down -= 1
            raise DeliveriesDown("no connection")
        return await self._store.settle(batch, outcome, now_ms)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_storage_that_comes_back_is_used_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2)
        store = FlakyStore(SqlDeliveryStore(world.database))
        worker = DeliveryWorker(store, world.receivers, BOX, world.clock, bounds=BOUNDS)
        for _ in range(3):
            await worker.deliver_due()
        world.clock.advance(BOUNDS.lease_ms / 1000)
        await worker.deliver_due()
        await worker.deliver_due()

    receivers = in_world(tmp_path, scenario)
    assert receivers.got("https://a1.example") == [2, 2], "at least once"
    assert "the storage does not answer" in caplog.text
    assert "will be repeated" in caplog.text


ROOT = Path(__file__).resolve().parents[4]
KILLED_AT = 4
# A worker whose process ends without a word in the middle of a call.
KILLED_WORKER = f"""
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.manual_clock import ManualClock
from tollgate.actors.ledger.storage.delivery_store import SqlDeliveryStore
from tollgate.actors.ledger.storage.connections.engine import connect
from tollgate.serve.payments.webhooks.worker import DeliveryWorker, DeliveryBounds
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer

class Receiver:
    async def send(self, url, body, headers):
        with open(sys.argv[2], "a") as seen:
            print(int(headers["Tollgate-Event"][18:], 16), file=seen, flush=True)
        if int(headers["Tollgate-Event"][18:], 16) == {KILLED_AT}:
            os.kill(os.getpid(), signal.SIGKILL)

async def main():
    database = await connect(sys.argv[1])
    worker = DeliveryWorker(
        SqlDeliveryStore(database), Receiver(), WebhookSecretSealer(MasterSecret(b"s" * 32)),
        ManualClock({NOW_S}), bounds=DeliveryBounds(letters_max=2),
    )
    while await worker.deliver_due():
        pass

asyncio.run(main())
"""


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(*range(2, 8))
        command = [
            sys.executable,
            "-c",
            KILLED_WORKER,
            f"sqlite:///{tmp_path}/ledger.db",
            str(seen),
        ]
        ended = await asyncio.to_thread(subprocess.run, command, check=False, cwd=ROOT)
        assert ended.returncode == -signal.SIGKILL
        worker = world.worker()
        assert await worker.deliver_due() == 0, "its lease still runs"
        world.clock.advance(DeliveryBounds(letters_max=2).lease_ms / 1000)
        while await worker.deliver_due():
            pass

    receivers = in_world(tmp_path, scenario)
    before = [int(line) for line in seen.read_text().split()]
    assert before == [2, 3, 4]
    assert receivers.got("https://a1.example") == [4, 5, 6, 7], "the one it died of comes again"
