"""The worker on real storage: signed, at least once, whatever fails and whoever is killed."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.payments.deliveries import deliver_due
from tests.support.payments.webhook_world import (
    BOUNDS,
    DAY_S,
    NOW_S,
    Receivers,
    World,
    entity_id,
    in_world,
)
from tests.support.waiting import until
from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, DeliveryBatch
from tollgate.actors.ledger.delivery.store import ChooseDue, DeliveriesDown
from tollgate.actors.ledger.storage.deliveries.store import SqlDeliveryStore
from tollgate.serve.payments.webhooks.fair_choice import MERCHANT_CALLS_MAX
from tollgate.serve.payments.webhooks.signature import is_signed
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker


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
        seen = world.receivers.seen
        await asyncio.to_thread(until, lambda: len(seen) >= 8 * 13, "every event is delivered")
        await world.events(40)
        await asyncio.to_thread(until, lambda: len(seen) >= 8 * 14, "one more is delivered")
        worker.stop()
        async with asyncio.timeout(30):
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

    async def settle(
        self, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
    ) -> bool:
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
