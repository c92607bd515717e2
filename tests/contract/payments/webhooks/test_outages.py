"""The delivery worker while storage is away: it goes on looking, less and less often."""

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.payments.api import App, PaymentsApi
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.delivery.batches import CallResult, DeliveryBatch
from tollgate.actors.ledger.delivery.store import DeliveriesDown, DeliveryStore
from tollgate.actors.ledger.storage.connections import engine
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.telemetry.delivery_meter import STORAGE_ERRORS, DeliveryMeter
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import (
    DeliveryBounds,
    DeliveryWorker,
)

BOX = WebhookSecretSealer(MasterSecret(b"s" * 32))
PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "POOL_WITHIN_S", 0.01)


class Receiver:
    """Takes every event."""

    def __init__(self) -> None:
        self.has_one = asyncio.Event()

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        self.has_one.set()
        return CallResult(200)


async def within(event: Awaitable[object]) -> None:
    """A worker that has ended must not keep the test waiting for ever."""
    async with asyncio.timeout(PATIENCE_S):
        await event


class AwayStore:
    """A store that does not answer for so many looks; it notes the times of all."""

    def __init__(self, loop: VirtualLoop, looks_away: int) -> None:
        self._loop = loop
        self._looks_away = looks_away
        self.looks_s: list[float] = []

    async def claim(self, *_: object) -> list[DeliveryBatch]:
        self.looks_s.append(self._loop.now_s)
        if len(self.looks_s) <= self._looks_away:
            raise DeliveriesDown("no connection")
        return []

    async def forget_removed(self) -> int:
        return 0


def test_a_worker_looks_less_often_while_storage_is_away() -> None:
    loop, tallies = VirtualLoop(), Tallies("worker")
    store = AwayStore(loop, looks_away=6)
    bounds = DeliveryBounds(poll_s=1.0, outage_poll_max_s=20.0)

    async def run() -> None:
        worker = DeliveryWorker(
            cast(DeliveryStore, store),
            WebhookCaller(Receiver(), BOX, ManualClock(1.8e9)),
            ManualClock(1.8e9),
            bounds=bounds,
            meter=DeliveryMeter(tallies),
        )
        delivering = asyncio.create_task(worker.run())
        await loop.rest(100.0)
        worker.stop()
        await delivering

    loop.run(run())
    pauses_s = [after - before for before, after in pairwise(store.looks_s)]
    assert pauses_s[:8] == [2, 4, 8, 16, 20, 20, 1, 1]
    assert tallies.drain().counts == {STORAGE_ERRORS: 6}


@dataclass
class Failures:
    """Hears of the storage's."""

    failed: asyncio.Event

    def storage_failed(self) -> None:
        self.failed.set()

    def attempted(self, attempts: object) -> None:
        """Is of no interest."""


def test_a_worker_outlives_a_pool_that_is_exhausted(
    api: PaymentsApi, shop: App, merchant: dict[str, object]
) -> None:
    path, body = f"/merchants/{merchant['id']}/webhooks", {"url": "https://shop.example/hook"}
    assert api.call("POST", path, shop, json=body).status_code == 201

    async def run() -> None:
        failed, receiver = asyncio.Event(), Receiver()
        worker = DeliveryWorker(
            api.context.deliveries,
            WebhookCaller(receiver, api.context.secret_sealer, api.clock),
            api.clock,
            bounds=DeliveryBounds(poll_s=0.01),
            meter=Failures(failed),
        )
        async with AsyncExitStack() as taken:
            for _ in range(engine.WRITERS_MAX):
                await taken.enter_async_context(api.database.writer.connect())
            delivering = asyncio.create_task(worker.run())
            await within(failed.wait())
        await within(receiver.has_one.wait())
        worker.stop()
        await delivering

    api.runner.run(run())
