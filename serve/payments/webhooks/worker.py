"""The worker that takes events to webhooks: claim, call, settle, again (part D, Events).

Several calls are under way at once, one per webhook, and the events of a batch go out one after
another; the law (`actors/ledger/delivery/schedule.py`) says when a failure ends it. A batch ends
early when others have waited for long enough, or its lease would. When storage does not answer, the
worker says so, counts it and looks again, less and less often; when the process dies, leases run
out and another worker goes on.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.delivery.batches import (
    DeliveryAttempt,
    DeliveryBatch,
    DueDelivery,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import is_over
from tollgate.actors.ledger.delivery.store import DeliveriesDown, DeliveryStore
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.fair_choice import OVERLAP, FairChoice

LOG = logging.getLogger("tollgate.payments.delivery")
TIDY_EVERY_S = 3_600.0


@dataclass(frozen=True, slots=True)
class DeliveryBounds:
    """`calls_max`: under way at once, for test merchants and for live ones. `events_max`: of one
    batch. `slice_s`: of one batch, beyond which no event is begun (a new one behind a retry is).
    `timeout_s`: of one call, which the sender keeps. `poll_s`: between looks when there is nothing
    to do; twice as long after each one that the storage has not answered, up to
    `outage_poll_max_s`."""

    calls_max: int = 64
    events_max: int = 20
    slice_s: float = 2.0
    timeout_s: float = 10.0
    poll_s: float = 1.0
    outage_poll_max_s: float = 15.0

    @property
    def lease_ms(self) -> int:
        """Long enough for every event, and one more call's time to settle."""
        return int((self.events_max + 1) * self.timeout_s * 1000)


class DeliveryListener(Protocol):
    """Hears of what becomes of deliveries."""

    def storage_failed(self) -> None:
        """The storage was asked for deliveries, or told what became of one, and did not answer."""

    def attempted(self, attempts: Sequence[DeliveryAttempt]) -> None:
        """Events that were sent."""


class _Nobody:
    """Counts nothing."""

    def storage_failed(self) -> None: ...
    def attempted(self, attempts: Sequence[DeliveryAttempt]) -> None: ...


class DeliveryWorker:
    """Delivers until it is stopped."""

    def __init__(
        self,
        store: DeliveryStore,
        caller: WebhookCaller,
        clock: Clock,
        bounds: DeliveryBounds | None = None,
        meter: DeliveryListener | None = None,
    ) -> None:
        self._store = store
        self._caller = caller
        self._clock = clock
        self._bounds = bounds or DeliveryBounds()
        self._meter = meter or _Nobody()
        self._choice = FairChoice(self._bounds.calls_max)
        self._wake = asyncio.Event()
        self._is_stopping = False
        self._tidy_at_s = 0.0
        # Looks in a row that the storage has not answered.
        self._unanswered = 0

    def stop(self) -> None:
        """Lets `run` finish the calls under way, and end."""
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Delivers what is due, until `stop`."""
        under_way: set[asyncio.Task[None]] = set()
        try:
            while not self._is_stopping:
                self._wake.clear()
                has_claimed = await self._start_calls(under_way)
                under_way = await self._pause(under_way, 0.0 if has_claimed else self._poll_s())
            await asyncio.gather(*under_way)
        finally:
            for task in under_way:
                task.cancel()

    async def _start_calls(self, under_way: set[asyncio.Task[None]]) -> bool:
        room = 2 * OVERLAP * self._bounds.calls_max - len(under_way)
        if room <= 0:
            return False
        now_ms, chosen, batches = self._now_ms(), list[DueDelivery](), list[DeliveryBatch]()

        def choose(due: Sequence[DueDelivery], _: int) -> Sequence[DueDelivery]:
            more = self._choice.choose(due, now_ms)
            chosen.extend(more)
            return more

        try:
            await self._tidy()
            batches = await self._store.claim(
                now_ms, self._bounds.lease_ms, room, self._bounds.events_max, choose
            )
        except DeliveriesDown as error:
            self._unanswered += 1
            self._meter.storage_failed()
            LOG.warning("deliveries wait, because the storage does not answer: %s", error)
            return False
        finally:
            self._choice.unclaimed(chosen, [batch.webhook for batch in batches])
        self._unanswered = 0
        under_way.update(asyncio.create_task(self._deliver(batch)) for batch in batches)
        return bool(batches)

    async def _pause(
        self, under_way: set[asyncio.Task[None]], longest_s: float
    ) -> set[asyncio.Task[None]]:
        """Waits until a call has ended, `stop` was called, or it is time to look again."""
        woken = asyncio.create_task(self._wake.wait())
        done, _ = await asyncio.wait(
            {woken, *under_way}, timeout=longest_s, return_when=asyncio.FIRST_COMPLETED
        )
        woken.cancel()
        for task in done & under_way:
            task.result()  # (what went wrong and is not handled there ends the worker)
        return under_way - done

    def _poll_s(self) -> float:
        doublings = min(self._unanswered, 16)  # (beyond it is the longest anyway)
        return min(self._bounds.outage_poll_max_s, self._bounds.poll_s * (1 << doublings))

    async def _deliver(self, batch: DeliveryBatch) -> None:
        calls = 1
        try:
            attempts = await self._call(batch)
            calls = len(attempts)
            self._meter.attempted(attempts)
        finally:
            self._choice.ended(batch.webhook, self._now_ms(), calls)
        for attempt in attempts:
            if not attempt.is_delivery:
                LOG.info("webhook %s of %s: %s", batch.webhook, batch.book, attempt.result.error)
        try:
            is_ours = await self._store.settle(batch, attempts, self._now_ms())
        except DeliveriesDown as error:
            self._meter.storage_failed()
            LOG.warning("a delivery is not written down and will be repeated: %s", error)
            return
        if not is_ours:
            LOG.warning("webhook %s: the lease ran out before the calls ended", batch.webhook)

    async def _call(self, batch: DeliveryBatch) -> list[DeliveryAttempt]:
        begun_ms = self._now_ms()
        enough_ms = begun_ms + min(
            int(1_000 * self._bounds.slice_s),
            self._bounds.lease_ms - int(2_000 * self._bounds.timeout_s),
        )
        attempts: list[DeliveryAttempt] = []
        for event in batch.events:
            if attempts and self._now_ms() > enough_ms and not _is_owed(event, attempts):
                break
            attempts.append(await self._caller.attempt(batch, event))
            if is_over(batch, attempts):
                break
        return attempts

    async def _tidy(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._tidy_at_s:
            self._tidy_at_s = now_s + TIDY_EVERY_S
            await self._store.forget_removed()

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)


def _is_owed(event: OutgoingEvent, attempts: Sequence[DeliveryAttempt]) -> bool:
    """True for the first new event behind a retry: a slow one is no reason to leave it waiting."""
    only = attempts[0].event.turn if len(attempts) == 1 else None
    return event.turn is Turn.FIRST and only is Turn.RETRY
