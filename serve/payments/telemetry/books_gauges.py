"""What the books look like, as gauges: webhooks' events that wait, and what the upkeep has found.

Every process reads all of it off the same books, so these gauges do not add up over processes
(`COMMON` of the tallies).
"""

from datetime import UTC, datetime, time, timedelta
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.delivery.store import DeliveriesDown, DeliveryOverview
from tollgate.actors.ledger.law.ids import second_of
from tollgate.actors.ratelimit.statistics.tallies import AGE, COMMON, Tallies
from tollgate.serve.payments.upkeep import UpkeepRecord

DEAD_LETTERS, RETRIES = "payments.books.dead_letters", "payments.books.webhook_retries"
EVENT_AGE = "payments.books.webhook_event.age_seconds"
IMBALANCE = "payments.books.imbalance_minor_units"
BACKUP_AGE, ANCHOR_AGE = "payments.books.backup.age_seconds", "payments.books.anchor.age_seconds"
assert all(name.startswith(COMMON) for name in (DEAD_LETTERS, RETRIES, IMBALANCE))
assert all(name.endswith(AGE) for name in (EVENT_AGE, BACKUP_AGE, ANCHOR_AGE))


class Deliveries(Protocol):
    """Where webhooks' progress is."""

    async def overview(self) -> DeliveryOverview:
        """Raises DeliveriesDown."""


class BooksGauges:
    """`record`: of the upkeep of this process. What is not known has no gauge."""

    def __init__(
        self, tallies: Tallies, deliveries: Deliveries, record: UpkeepRecord, clock: Clock
    ) -> None:
        self._tallies = tallies
        self._deliveries = deliveries
        self._record = record
        self._clock = clock

    async def look(self) -> None:
        """Look at all of it; what storage does not tell now stays as it was."""
        now_s, gauge = self._clock.now_s(), self._tallies.gauge
        for currency, amount in self._record.imbalance.items():
            gauge(f"{IMBALANCE}.__currency={currency}", abs(amount))
        if self._record.backed_up_s is not None:
            gauge(BACKUP_AGE, max(0.0, now_s - self._record.backed_up_s))
        if self._record.anchored is not None:
            end = datetime.combine(self._record.anchored, time(), UTC) + timedelta(days=1)
            gauge(ANCHOR_AGE, max(0.0, now_s - end.timestamp()))
        try:
            found = await self._deliveries.overview()
        except DeliveriesDown:
            return  # (said, and counted, by the worker that asks all the time)
        gauge(DEAD_LETTERS, found.dead)
        gauge(RETRIES, found.waiting)
        waits_s = 0.0 if found.oldest_new is None else now_s - second_of(found.oldest_new)
        gauge(EVENT_AGE, max(0.0, waits_s))
