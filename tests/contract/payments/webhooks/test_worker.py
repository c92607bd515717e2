"""The worker on real storage: in order, at least once, whatever fails and whoever is killed."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert

from tests.support.manual_clock import ManualClock
from tests.support.payments.deliveries import deliver_due
from tollgate.actors.ledger.book.entities import Webhook, state_of
from tollgate.actors.ledger.delivery.batches import Attempt, CallResult, DeliveryBatch
from tollgate.actors.ledger.delivery.store import ChooseDue, DeliveriesDown
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.connections.engine import Database, connect
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.migration import upgrade_tables
from tollgate.actors.ledger.storage.tables import entities
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookSecret, is_signed
from tollgate.serve.payments.webhooks.fair_choice import MERCHANT_CALLS_MAX
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker

NOW_S = 1_800_000_000
DAY_S = 86_400
BOX = WebhookSecretSealer(MasterSecret(b"s" * 32))
SECRETS = (WebhookSecret("new"), WebhookSecret("old", (NOW_S + DAY_S) * 1000))
BOUNDS = DeliveryBounds(calls_max=4, events_max=5, timeout_s=10.0, poll_s=0.01)


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
        return CallResult(200) if error is None else CallResult(500, error)

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


def test_every_event_is_delivered_in_order_and_signed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(*range(2, 14))
        await world.deliver()

    receivers = in_world(tmp_path, scenario)
    assert receivers.got("https://a1.example") == list(range(2, 14))
    for (_, event), headers in zip(receivers.seen, receivers.headers, strict=True):
        body = json.dumps({"id": entity_id(event), "type": "x"}).encode()
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
        await world.deliver()

    receivers = in_world(tmp_path, scenario)
    body = json.dumps({"id": entity_id(2), "type": "x"}).encode()
    signed = receivers.headers[0]["Tollgate-Signature"]
    assert is_signed(signed, body, "new", NOW_S + DAY_S)
    assert not is_signed(signed, body, "old", NOW_S + DAY_S)


def test_an_event_that_fails_for_less_than_a_minute_is_not_overtaken(tmp_path: Path) -> None:
    failures = iter(["HTTP status 500", "HTTP status 503"])

    def refuse(url: str, event: int) -> str | None:
        return next(failures, None) if event == 3 else None

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2, 3, 4)
        for _ in range(4):
            await world.deliver()
            world.clock.advance(5)

    receivers = in_world(tmp_path, scenario, Receivers(refuse))
    assert receivers.got("https://a1.example") == [2, 3, 3, 3, 4]


def test_an_event_that_is_refused_for_ever_holds_up_the_others_for_a_minute(
    tmp_path: Path,
) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2, 3, 4)
        for _ in range(12):
            await world.deliver()
            assert set(world.receivers.got("https://a1.example")) == {2}
            world.clock.advance(5)
        await world.events(*range(5, 30))
        await world.deliver()

    receivers = in_world(
        tmp_path, scenario, Receivers(lambda _, event: "HTTP status 410" if event == 2 else None)
    )
    assert [event for event in receivers.got("https://a1.example") if event > 2] == [*range(3, 30)]


def test_events_of_a_kind_that_is_refused_hold_up_the_others_once(tmp_path: Path) -> None:
    """A receiver that cannot read one event in three."""

    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(*range(2, 62))
        await world.deliver()
        world.clock.advance(60)
        await world.deliver()

    receivers = in_world(
        tmp_path, scenario, Receivers(lambda _, event: None if event % 3 else "HTTP status 500")
    )
    taken = [event for event in receivers.got("https://a1.example") if event % 3]
    assert taken == [event for event in range(2, 62) if event % 3]


def test_after_an_absence_all_comes_soon_and_in_order(tmp_path: Path) -> None:
    """The receiver is away for 75 s: ten seconds later it has everything."""

    async def scenario(world: World) -> None:
        world.receivers.refuse = lambda *_: (
            "no connection" if world.clock.now_s() < NOW_S + 75 else None
        )
        await world.hook(1)
        for number in range(2, 87):
            await world.events(number)
            await world.deliver()
            world.clock.advance(1)

    receivers = in_world(tmp_path, scenario)
    tried = receivers.got("https://a1.example")
    assert tried[-1] == 86
    delivered = tried[-85:]
    assert delivered == [*range(2, 87)], "in order, each once"


def test_slow_retries_do_not_keep_new_events_waiting(tmp_path: Path) -> None:
    """Every second event runs into the time-out."""

    async def scenario(world: World) -> None:
        def slow(url: str, event: int) -> str | None:
            if event % 2:
                return None
            world.clock.advance(10)
            return "no answer within 10 s"

        world.receivers.refuse = slow
        await world.hook(1)
        for number in range(2, 14, 2):
            await world.events(number, number + 1)
            world.clock.advance(60)
            await world.deliver()
        await world.deliver()

    seen = in_world(tmp_path, scenario).got("https://a1.example")
    assert [event for event in seen if event % 2] == [*range(3, 14, 2)]
    for number in range(4, 14, 2):
        assert seen.index(number + 1) - seen.index(number) <= 3, "soon after the one before it"


def test_a_receiver_that_fails_holds_back_no_other(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(1, 4):
            await world.hook(number)
        await world.hook(1, book="b")
        await world.events(7, 8)
        await world.events(7, 8, book="b")
        await world.deliver()

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
        assert await world.deliver() == 1
        (attempt,) = await world.store.attempts(entity_id(1), 9)
        assert attempt.error.startswith("the webhook's secret")
        assert attempt.status is None

    assert in_world(tmp_path, scenario).seen == []


def test_a_batch_ends_before_its_lease_does(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        def slow(url: str, event: int) -> None:
            world.clock.advance(9.9)

        world.receivers.refuse = slow
        await world.hook(1)
        await world.events(*range(2, 12))
        bounds = DeliveryBounds(calls_max=1, events_max=10, slice_s=1_000.0, timeout_s=10.0)
        await world.deliver(bounds)

    receivers = in_world(tmp_path, scenario)
    assert receivers.got("https://a1.example") == list(range(2, 12))


def test_a_slow_receiver_gives_up_its_place_after_a_while(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        def slow(url: str, event: int) -> None:
            world.clock.advance(1.5)

        world.receivers.refuse = slow
        await world.hook(1)
        await world.events(*range(2, 7))
        assert await world.deliver(DeliveryBounds(slice_s=2.0)) == 3

    assert in_world(tmp_path, scenario).got("https://a1.example") == [2, 3, 4, 5, 6]


def test_a_merchant_has_few_calls_under_way(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(1, 6):
            await world.hook(number)
        await world.hook(1, book="b")
        await world.events(7)
        await world.events(7, book="b")
        await world.deliver(DeliveryBounds())

    receivers = in_world(tmp_path, scenario)
    assert receivers.most_under_way == MERCHANT_CALLS_MAX + 1
    assert len(receivers.seen) == 6


def test_running_delivers_until_it_is_stopped(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(1, 9):
            await world.hook(number)
        await world.events(*range(20, 33))
        worker = DeliveryWorker(world.store, world.caller, world.clock, BOUNDS)
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
        self, now_ms: int, lease_ms: int, batches: int, events: int, choose: ChooseDue
    ) -> list[DeliveryBatch]:
        if self.claims_down:
            self.claims_down -= 1
            raise DeliveriesDown("no connection")
        return await self._store.claim(now_ms, lease_ms, batches, events, choose)

    async def settle(self, batch: DeliveryBatch, attempts: Sequence[Attempt], now_ms: int) -> bool:
        if self.settlements_down:
            self.settlements_down -= 1
            raise DeliveriesDown("no connection")
        return await self._store.settle(batch, attempts, now_ms)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def test_storage_that_comes_back_is_used_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await world.hook(1)
        await world.events(2)
        store = FlakyStore(SqlDeliveryStore(world.database))
        for _ in range(3):
            await deliver_due(store, world.caller, world.clock, BOUNDS)  # type: ignore[arg-type]
        world.clock.advance(BOUNDS.lease_ms / 1000)
        await deliver_due(store, world.caller, world.clock, BOUNDS)  # type: ignore[arg-type]

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
from tests.support.payments.deliveries import deliver_due
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.actors.ledger.storage.connections.engine import connect
from tollgate.serve.payments.webhooks.worker import DeliveryBounds
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.actors.ledger.delivery.batches import CallResult
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer

class Receiver:
    async def send(self, url, body, headers, *, is_test):
        with open(sys.argv[2], "a") as seen:
            print(int(headers["Tollgate-Event"][18:], 16), file=seen, flush=True)
        if int(headers["Tollgate-Event"][18:], 16) == {KILLED_AT}:
            os.kill(os.getpid(), signal.SIGKILL)
        return CallResult(200)

async def main():
    database = await connect(sys.argv[1])
    clock = ManualClock({NOW_S})
    caller = WebhookCaller(Receiver(), WebhookSecretSealer(MasterSecret(b"s" * 32)), clock)
    await deliver_due(SqlDeliveryStore(database), caller, clock, DeliveryBounds(events_max=2))

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
        assert await world.deliver() == 0, "its lease still runs"
        world.clock.advance(DeliveryBounds(events_max=2).lease_ms / 1000)
        await world.deliver()

    receivers = in_world(tmp_path, scenario)
    before = [int(line) for line in seen.read_text().split()]
    assert before == [2, 3, 4]
    assert receivers.got("https://a1.example") == [4, 5, 6, 7], "the one it died of comes again"
