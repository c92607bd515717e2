"""Deliveries under whatever failures there are: nothing is lost, and the order is what it is said
to be."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.manual_clock import ManualClock
from tests.support.payments.deliveries import deliver_due
from tests.support.payments.webhook_world import failed
from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    DeliveryAttempt,
    DeliveryBatch,
    DeliveryProgress,
    DueDelivery,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import (
    GIVE_UP_AFTER_MS,
    ORDER_WINDOW_MS,
    Waiting,
    dead_up_to,
    in_turn,
    settlement,
)
from tollgate.actors.ledger.delivery.store import ChooseDue, first_due
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookSecret
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds

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
    failed: dict[EntityId, Waiting] = field(default_factory=dict)
    dead: list[EntityId] = field(default_factory=list)
    lease: tuple[str, int] = ("", 0)
    leases: int = 0

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        events_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        hook = EntityId(BOOK)
        new = self.new()[:events_max] if self.progress.next_attempt_ms <= now_ms else []
        waiting = sorted(self.failed.values(), key=lambda each: each.event)
        failed = [_again(each) for each in waiting if each.next_attempt_ms <= now_ms]
        if new and self.progress.failures and waiting and waiting[0].next_attempt_ms > now_ms:
            failed.insert(0, _again(waiting[0]))
        offer = DueDelivery(hook, BOOK, "", True, self.progress.failures)
        is_due = self.lease[1] <= now_ms and (new or failed)
        if not is_due or not choose([offer], batches_max):
            return []
        self.leases += 1
        assert self.leases < 1_000, "nobody is called for ever"
        self.lease = (f"lease {self.leases}", now_ms + lease_ms)
        events = in_turn(
            failed,
            [OutgoingEvent(each, "x", json.dumps({"id": each})) for each in new],
            (),
            events_max,
        )
        first = [each.event for each in events if each.turn is Turn.FIRST]
        scanned = first[-1] if first else self.progress.cursor
        return [
            DeliveryBatch(
                *(hook, BOOK, "https://x", SEALED, True, self.lease[0], self.progress),
                *(events, len(self.failed), scanned),
            )
        ]

    async def settle(
        self, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
    ) -> bool:
        if batch.lease != self.lease[0]:
            return False
        self.lease = ("", 0)
        found = settlement(batch, attempts, now_ms)
        self.progress = found.progress
        for event in (*found.delivered, *(event for event, _ in found.dead)):
            self.failed.pop(event, None)
        self.failed |= {each.event: each for each in found.waiting}
        for event, each in self.failed.items():
            since_ms = found.recovers_since_ms
            if since_ms is not None and each.failing_since_ms >= since_ms:
                self.failed[event] = replace(each, next_attempt_ms=0)
        self.dead += [event for event, _ in found.dead]
        limit = dead_up_to(self.progress, now_ms)
        given_up = [each for each in self.new() if limit is not None and each < limit]
        if given_up:
            self.dead += given_up
            self.progress = replace(self.progress, cursor=given_up[-1])
        return True

    def new(self) -> list[EntityId]:
        return [each for each in self.events if each > self.progress.cursor]

    async def forget_removed(self) -> int:
        return 0


def _again(each: Waiting) -> OutgoingEvent:
    turn = Turn.RETRY if each.next_attempt_ms else Turn.RECOVERY
    body = json.dumps({"id": each.event})
    return OutgoingEvent(each.event, "x", body, turn, each.failing_since_ms, each.attempts)


class Killed(BaseException):
    """The process ends in the middle of a call."""


@dataclass
class Receiver:
    """Answers as it is told: None is a delivery, "" the end of the worker, else a failure.
    `refused`: events that it never takes. `failing_s`: when an event that is not delivered yet
    failed first; `beside`: the ones that did so when an older one had failed for long."""

    clock: ManualClock
    answers: list[str | None]
    refused: frozenset[int] = frozenset()
    taken: list[EntityId] = field(default_factory=list)
    failing_s: dict[EntityId, float] = field(default_factory=dict)
    beside: set[EntityId] = field(default_factory=set)

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        event = EntityId(json.loads(body)["id"])
        answer = self.answers.pop(0) if self.answers else None
        if int(event[18:], 16) in self.refused:
            answer = "HTTP status 410"
        if not answer:
            self._overtakes(event)
            self.taken.append(event)
        else:
            self._fails(event)
        if answer == "":
            raise Killed
        if not answer:
            self.failing_s.pop(event, None)
        return failed(answer) if answer else CallResult(200)

    def _fails(self, event: EntityId) -> None:
        if event not in self.failing_s:
            if self._has_failed_for_long([each for each in self.failing_s if each < event]):
                self.beside.add(event)
            self.failing_s[event] = self.clock.now_s()

    def _overtakes(self, event: EntityId) -> None:
        """What is overtaken has failed for the window, or first failed when an older one had."""
        if event in self.taken:
            return
        for each in self.failing_s:
            if each < event and each not in self.taken:
                assert each in self.beside or self._has_failed_for_long([each])

    def _has_failed_for_long(self, events: list[EntityId]) -> bool:
        until_s = self.clock.now_s() - ORDER_WINDOW_MS / 1000
        return any(self.failing_s[each] <= until_s for each in events)


answers = st.lists(
    st.sampled_from([None, None, "HTTP status 500", "HTTP status 503", ""]), max_size=15
)
pauses_s = st.lists(st.sampled_from([0, 1, 5, 60, 3_600, 86_400]), min_size=1, max_size=10)
refused = st.frozensets(st.integers(1, 10), max_size=3)


@given(answers, pauses_s, refused, st.integers(2, 6))
def test_every_event_is_taken_or_dead_after_three_days_and_overtaken_behind_the_window_alone(
    told: list[str | None], pauses: list[int], never: frozenset[int], events_max: int
) -> None:
    store, clock = OneWebhook(), ManualClock(NOW_S)
    receiver = Receiver(clock, list(told), never)
    bounds = DeliveryBounds(calls_max=1, events_max=events_max, poll_s=0.0)
    caller = WebhookCaller(receiver, BOX, clock)

    async def deliver() -> None:
        with suppress(Killed):  # (each round may be another process)
            await deliver_due(store, caller, clock, bounds)  # type: ignore[arg-type]

    async def story() -> None:
        for number, pause_s in enumerate([*pauses, *[GIVE_UP_AFTER_MS // 1000] * 3]):
            if number < len(pauses):
                store.events.append(event_id(number + 1, int(clock.now_s())))
            await deliver()
            clock.advance(pause_s)
        receiver.answers.clear()
        for _ in range(len(store.events) + 3):
            clock.advance(GIVE_UP_AFTER_MS / 1000)
            await deliver()

    asyncio.run(story())
    assert {*receiver.taken, *store.dead} == set(store.events), "nothing is lost"
    if not any(told) and not never:
        assert store.dead == []
        assert list(dict.fromkeys(receiver.taken)) == store.events, "but for repetitions"
