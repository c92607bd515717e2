"""The worker that asks card networks what became of moves whose answer never came (I3).

An open intent is state, and its book's; networks are outside. So it is not the shard that enquires,
which would have to wait for somebody else's machine, but a worker beside the calls, in every
process of the API: it finds open intents in the tables, so also those of a process that died, and
orders what it learns as anybody would. Which of several processes asks is settled by the date of
the next enquiry, which is written down beforehand.

    approved      the move is booked; an authorisation that nobody can ask for is reversed
    declined      the attempt is stored as refused
    unknown       asked again, less and less often, for as long as it takes
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.book.entities import Intent
from tollgate.actors.ledger.law.values import (
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
    ProcessingError,
)
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.open_intents import ClaimedIntent
from tollgate.serve.payments.network.card_network import (
    CardNetwork,
    CardNetworks,
    NetworkAnswer,
    Unknown,
    operation_of,
)
from tollgate.serve.payments.network.conclusions import Conclusions

LOG = logging.getLogger("tollgate.payments.network")
WHY = "enquiry"
FORGET_EVERY_S = 3_600.0
# How many intents of all books are open, and for how long the oldest is.
OPEN_INTENTS = "payments.books.network_intents"
OLDEST_AGE = "payments.network.intents.age_seconds"


@dataclass(frozen=True, slots=True)
class EnquiryBounds:
    """`enquiries_max`: under way at once. `poll_s`: between looks when there is nothing to do."""

    enquiries_max: int = 32
    poll_s: float = 1.0


class OpenIntents(Protocol):
    """Where open intents are found. All may raise StorageError."""

    async def claim(self, now_ms: int, count_max: int) -> list[ClaimedIntent]:
        """Of those that are due, the ones that are this caller's to enquire about now."""

    async def forget_settled(self) -> None:
        """Drops what was written about intents that are not open any more."""

    async def oldest_ms(self) -> int | None:
        """Since when the oldest one of all books is open; None: none is."""

    async def count(self) -> int:
        """How many of all books are open."""


class Figures(Protocol):
    """Where the worker counts."""

    def gauge(self, name: str, value: float) -> None: ...


class EnquiryWorker:
    """Enquires for ever. `abandoned`: the error of an authorisation that was reversed."""

    def __init__(
        self,
        intents: OpenIntents,
        networks: CardNetworks,
        conclusions: Conclusions,
        clock: Clock,
        abandoned: ProcessingError,
        figures: Figures | None = None,
        bounds: EnquiryBounds = EnquiryBounds(),
    ) -> None:
        self._intents = intents
        self._networks = networks
        self._conclusions = conclusions
        self._clock = clock
        self._abandoned = abandoned
        self._figures = figures
        self._bounds = bounds
        self._forget_at_s = 0.0

    async def run(self) -> None:
        """Enquires about what is due, for ever."""
        while True:
            if await self.look() < self._bounds.enquiries_max:
                await asyncio.sleep(self._bounds.poll_s)

    async def look(self) -> int:
        """One round: how many were due. What goes wrong is said and tried again later."""
        try:
            await self._forget()
            claimed = await self._intents.claim(self._now_ms(), self._bounds.enquiries_max)
            if self._figures is not None:
                await self._report(self._figures)
        except StorageError as error:
            LOG.warning("enquiries wait, because the storage does not answer: %s", error)
            return 0
        await self._enquire_all(claimed)
        return len(claimed)

    async def _enquire_all(self, claimed: Sequence[ClaimedIntent]) -> None:
        await asyncio.gather(*(self._enquire(each) for each in claimed))

    async def _enquire(self, claimed: ClaimedIntent) -> None:
        intent = claimed.intent
        network = self._networks.named(intent.network)
        if network is None:
            LOG.error("intent %s waits for %s, which is not there", intent.id, intent.network)
            return
        if self._now_ms() - intent.created_ms < network.enquired_after_ms:
            return
        answer = await network.enquire(operation_of(intent))
        if isinstance(answer, NetworkApproved) and _is_abandoned(intent):
            answer = await self._reverse(network, intent)
        if isinstance(answer, Unknown):
            LOG.warning(
                "intent %s of %s: unknown at %s after %d enquiries: %s",
                *(intent.id, intent.book, intent.network, claimed.attempts, answer.why),
            )
            return
        await self._conclusions.conclude(
            intent.book, intent.id, answer, is_test=intent.is_test, why=WHY
        )

    async def _reverse(self, network: CardNetwork, intent: Intent) -> NetworkAnswer:
        """Nobody will learn that it was authorised, so the holder's money is set free."""
        answer = await network.reverse(operation_of(intent))
        if isinstance(answer, NetworkApproved):
            return NetworkDeclined(self._abandoned)
        return Unknown("it was authorised, and is not reversed yet")

    async def _forget(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._forget_at_s:
            self._forget_at_s = now_s + FORGET_EVERY_S
            await self._intents.forget_settled()

    async def _report(self, figures: Figures) -> None:
        now_ms, oldest_ms = self._now_ms(), await self._intents.oldest_ms()
        figures.gauge(OPEN_INTENTS, await self._intents.count())
        figures.gauge(OLDEST_AGE, 0 if oldest_ms is None else max(0, now_ms - oldest_ms) // 1000)

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)


def _is_abandoned(intent: Intent) -> bool:
    """True of an authorisation without an idempotency key: its caller was told that the outcome is
    unknown, has nothing to ask for it with, and may have ordered it anew."""
    return intent.action is NetworkAction.AUTHORISE and not intent.has_key
