"""Deliveries to webhooks in a test: a worker that runs for as long as there is something to do."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, DeliveryBatch
from tollgate.actors.ledger.delivery.store import (
    ChooseDue,
    DeliveriesDown,
    DeliveryStore,
    first_due,
)
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker


@dataclass
class UntilIdle:
    """A store that ends its worker when nothing is due and nothing under way, or when the storage
    does not answer a claim."""

    store: DeliveryStore
    workers: list[DeliveryWorker] = field(default_factory=list)
    under_way: int = 0
    batches: int = 0

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        events_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        was_idle = not self.under_way
        try:
            found = await self.store.claim(now_ms, lease_ms, batches_max, events_max, choose)
        except DeliveriesDown:
            self._stop()
            raise
        self.under_way += len(found)
        self.batches += len(found)
        if was_idle and not found:
            self._stop()
        return found

    async def settle(
        self, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
    ) -> bool:
        try:
            return await self.store.settle(batch, attempts, now_ms)
        finally:
            self.under_way -= 1

    async def forget_removed(self) -> int:
        return await self.store.forget_removed()

    def _stop(self) -> None:
        for worker in self.workers:
            worker.stop()


async def deliver_due(
    store: DeliveryStore, caller: WebhookCaller, clock: Clock, bounds: DeliveryBounds | None = None
) -> int:
    """Delivers everything that is due at this moment of the clock; the number of batches."""
    watched = UntilIdle(store)
    worker = DeliveryWorker(watched, caller, clock, bounds)  # type: ignore[arg-type]
    watched.workers.append(worker)
    await worker.run()
    return watched.batches
