"""Deliveries under whatever failures there are: nothing is lost, and the order is kept."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tests.support.manual_clock import ManualClock
from tollgate.actors.ledger.delivery.schedule import (
    GIVE_UP_AFTER_MS,
    ChooseDue,
    DeadLetter,
    DeliveryBatch,
    DeliveryOutcome,
    DeliveryProgress,
    DueDelivery,
    OutgoingEvent,
    dead_up_to,
    first_due,
    progress_after,
)
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.calls import WebhookSecret
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker

NOW_S = 1_800_000_000
BOOK = BookId("6b49d200000000000a000000")
BOX = WebhookSecretSealer(MasterSecret(b"s" * 32))
SEALED = BOX.seal((WebhookSecret("s"),), BOOK)


def event_id(number: int, at_s: int) -> EntityId:
    return EntityId(f"{at_s:08x}{BOOK[8:18]}{number:06x}")


@dataclass
class OneWebhook:
    """A store for one webhook, by the law alone."""

    progress: DeliveryProgress = field(default_factory=lambda: DeliveryProgress(EntityId(BOOK)))
    events: list[EntityId] = field(default_factory=list)
    dead: list[EntityId] = field(default_factory=list)
    lease: tuple[str, int] = ("", 0)
    leases: int = 0

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        letters_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        hook = EntityId(BOOK)
        letters = [
            OutgoingEvent(each, json.dumps({"id": each})) for each in self.waiting()[:letters_max]
        ]
        is_due = self.lease[1] <= now_ms and self.progress.next_attempt_ms <= now_ms
        offer = DueDelivery(hook, BOOK, "", True, self.progress.failures)
        if not letters or not is_due or not choose([offer], batches_max):
            return []
        self.leases += 1
        self.lease = (f"lease {self.leases}", now_ms + lease_ms)
        return [
            DeliveryBatch(
                hook, BOOK, "https://x", SEALED, self.lease[0], self.progress, tuple(letters)
            )
        ]

    async def settle(self, batch: DeliveryBatch, outcome: DeliveryOutcome, now_ms: int) -> bool:
        if batch.lease != self.lease[0]:
            return False
        self.lease = ("", 0)
        self.progress = progress_after(batch, outcome, now_ms)
        limit = dead_up_to(self.progress, now_ms)
        given_up = [each for each in self.waiting() if limit is not None and each < limit]
        self.dead += given_up
        if given_up:
            cursor = given_up[-1]
            self.progress = DeliveryProgress(
                cursor,
                self.progress.failures,
                self.progress.failing_since_ms,
                self.progress.next_attempt_ms,
            )
        return True

    def waiting(self) -> list[EntityId]:
        return [each for each in self.events if each > self.progress.cursor]

    async def dead_letters(
        self, webhook: EntityId, limit: int, before: EntityId | None = None
    ) -> Sequence[DeadLetter]:
        return []

    async def send_again(
        self, webhook: EntityId, events: Sequence[EntityId] | None, now_ms: int
    ) -> int:
        return 0

    async def forget_removed(self) -> int:
        return 0


class Killed(BaseException):
    """The process ends in the middle of a call."""


@dataclass
class Receiver:
    """Answers as it is told: None is a delivery, "" the end of the worker, else a failure."""

    answers: list[str | None]
    taken: list[EntityId] = field(default_factory=list)

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> str | None:
        answer = self.answers.pop(0) if self.answers else None
        if answer is None or answer == "":
            self.taken.append(EntityId(json.loads(body)["id"]))
        if answer == "":
            raise Killed
        return answer


answers = st.lists(st.sampled_from([None, None, "HTTP status 500", ""]), max_size=25)
pauses_s = st.lists(st.sampled_from([0, 1, 60, 3_600, 86_400]), min_size=1, max_size=30)


@given(answers, pauses_s, st.integers(1, 6))
def test_every_event_is_taken_in_order_or_dead_after_three_days(
    told: list[str | None], pauses: list[int], letters_max: int
) -> None:
    store, receiver, clock = OneWebhook(), Receiver(list(told)), ManualClock(NOW_S)
    bounds = DeliveryBounds(calls_max=1, letters_max=letters_max)

    async def story() -> None:
        for number, pause_s in enumerate([*pauses, *[GIVE_UP_AFTER_MS // 1000] * 3]):
            if number < len(pauses):
                store.events.append(event_id(number + 1, int(clock.now_s())))
            # Each round may be another process: the one before may have been killed.
            worker = DeliveryWorker(store, receiver, BOX, clock, bounds=bounds)
            try:
                while await worker.deliver_due():
                    pass
            except Killed:
                pass
            clock.advance(pause_s)
        receiver.answers.clear()
        for _ in range(len(store.events) + 1):
            clock.advance(7_200)
            await DeliveryWorker(store, receiver, BOX, clock, bounds=bounds).deliver_due()

    asyncio.run(story())
    first_times = list(dict.fromkeys(receiver.taken))
    assert first_times == sorted(first_times), "in order, but for repetitions"
    assert {*receiver.taken, *store.dead} == set(store.events), "nothing is lost"
    assert store.dead == sorted(store.dead)
    if not any(told):
        assert store.dead == []
