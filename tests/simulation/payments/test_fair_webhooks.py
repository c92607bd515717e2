"""A thousand merchants with webhooks, some of them slow or broken: the others do not feel it."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    DeliveryAttempt,
    DeliveryBatch,
    DeliveryProgress,
    DueDelivery,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import Waiting, in_turn, settlement
from tollgate.actors.ledger.delivery.store import ChooseDue, first_due
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.caller import WebhookCaller
from tollgate.serve.payments.webhooks.calls import WebhookSecret
from tollgate.serve.payments.webhooks.secrets import WebhookSecretSealer
from tollgate.serve.payments.webhooks.worker import DeliveryBounds, DeliveryWorker

MERCHANTS = 1_000
HOSTILE = 100
HOOKS_OF_HOSTILE = 4
SEED = 1
LASTS_S = 40.0
WARM_S = 15.0  # (a slow receiver is known as one once it has been slow)
TIMEOUT_S = 10.0
SEALER = WebhookSecretSealer(MasterSecret(b"s" * 32))


@dataclass
class Hook:
    """`slow`: its receiver takes nearly the time-out; `broken`: the time-out, and then fails."""

    id: EntityId
    book: BookId
    secret: str
    kind: str
    waiting: deque[OutgoingEvent] = field(default_factory=deque)
    progress: DeliveryProgress = field(default_factory=lambda: DeliveryProgress(EntityId("0" * 24)))
    failed: dict[EntityId, Waiting] = field(default_factory=dict)
    is_leased: bool = False

    def due(self, now_ms: int) -> list[OutgoingEvent]:
        """What is due of what failed."""
        return [
            OutgoingEvent(each.event, "x", "{}", Turn.RETRY, each.failing_since_ms, each.attempts)
            for each in self.failed.values()
            if each.next_attempt_ms <= now_ms
        ]

    def is_due(self, now_ms: int) -> bool:
        is_next = bool(self.waiting) and self.progress.next_attempt_ms <= now_ms
        return not self.is_leased and (is_next or bool(self.due(now_ms)))


class Loops:
    """A clock that shows the time of the loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_s(self) -> float:
        return 1_800_000_000 + self._loop.now_s

    def monotonic_s(self) -> float:
        return self._loop.now_s


class Street:
    """All webhooks, their store and their receivers."""

    def __init__(self, loop: VirtualLoop, hostile: int, seed: int) -> None:
        self.loop = loop
        self.draw = random.Random(seed)
        self.hooks: dict[EntityId, Hook] = {}
        self.delays_s: list[float] = []
        self.made_s: dict[str, float] = {}
        for number in range(MERCHANTS):
            book = BookId(f"{number:024x}")
            sealed = SEALER.seal((WebhookSecret("s"),), book)
            kinds = ["slow", "broken"] * (HOOKS_OF_HOSTILE // 2) if number < hostile else ["quick"]
            for each, kind in enumerate(kinds):
                hook = EntityId(f"{number:020x}{each:04x}")
                self.hooks[hook] = Hook(hook, book, sealed, kind)

    async def make_events(self) -> None:
        """Hostile merchants have always something to send, the others twice a minute."""
        number = 0
        quick = [hook for hook in self.hooks.values() if hook.kind == "quick"]
        while self.loop.now_s < LASTS_S:
            await asyncio.sleep(self.draw.expovariate(len(quick) / 30.0))
            hostile = [hook for hook in self.hooks.values() if hook.kind != "quick"]
            for hook in [self.draw.choice(quick), *hostile]:
                if hook.kind != "quick" and hook.waiting:
                    continue
                number += 1
                event = EntityId(f"{number:024x}")
                hook.waiting.append(OutgoingEvent(event, "x", f'{{"id":"{event}"}}'))
                if hook.kind == "quick" and self.loop.now_s > WARM_S:
                    self.made_s[event] = self.loop.now_s

    async def send(
        self, url: str, body: bytes, headers: dict[str, str], *, is_test: bool
    ) -> CallResult:
        kind = url.partition("//")[2].partition(".")[0]
        if kind == "quick":
            await asyncio.sleep(self.draw.uniform(0.02, 0.08))
            made_s = self.made_s.pop(headers["Tollgate-Event"], None)
            if made_s is not None:
                self.delays_s.append(self.loop.now_s - made_s)
            return CallResult(200)
        await asyncio.sleep(TIMEOUT_S * (0.9 if kind == "slow" else 1.0))
        return CallResult(200) if kind == "slow" else CallResult(None, "no answer")

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        events_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        offered = [
            DueDelivery(hook.id, hook.book, url_of(hook), True, hook.progress.failures)
            for hook in self.hooks.values()
            if hook.is_due(now_ms)
        ]
        return [self._batch(each, now_ms, events_max) for each in choose(offered, batches_max)]

    def _batch(self, due: DueDelivery, now_ms: int, events_max: int) -> DeliveryBatch:
        hook = self.hooks[due.webhook]
        hook.is_leased = True
        is_next = hook.progress.next_attempt_ms <= now_ms
        new = tuple(hook.waiting)[:events_max] if is_next else ()
        return DeliveryBatch(
            webhook=hook.id,
            book=hook.book,
            url=url_of(hook),
            secret=hook.secret,
            is_test=True,
            lease="lease",
            progress=hook.progress,
            events=in_turn(hook.due(now_ms), new, (), events_max),
            waiting=len(hook.failed),
            scanned=new[-1].event if new else hook.progress.cursor,
        )

    async def settle(
        self, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
    ) -> bool:
        hook = self.hooks[batch.webhook]
        hook.is_leased = False
        found = settlement(batch, attempts, now_ms)
        hook.progress = found.progress
        for event in found.delivered:
            del hook.failed[event]
        hook.failed |= {each.event: each for each in found.waiting}
        while hook.waiting and hook.waiting[0].event <= found.progress.cursor:
            hook.waiting.popleft()
        return True

    async def forget_removed(self) -> int:
        return 0


def url_of(hook: Hook) -> str:
    return f"https://{hook.kind}.{hook.book}.example/"


def p99_s(hostile: int, seed: int) -> float:
    """The delay of honest merchants' events that one in a hundred exceeds."""
    loop = VirtualLoop()
    street = Street(loop, hostile, seed)
    bounds = DeliveryBounds(timeout_s=TIMEOUT_S)
    clock = Loops(loop)
    caller = WebhookCaller(street, SEALER, clock)
    worker = DeliveryWorker(street, caller, clock, bounds)  # type: ignore[arg-type]

    async def run() -> None:
        delivering = asyncio.create_task(worker.run())
        await street.make_events()
        await asyncio.sleep(5.0)
        worker.stop()
        await delivering

    loop.run_until_complete(run())
    assert not loop.accidents
    assert len(street.delays_s) > 500
    assert not street.made_s, "every honest event has arrived"
    return sorted(street.delays_s)[int(len(street.delays_s) * 0.99)]


def test_hostile_receivers_delay_nobody_else() -> None:
    assert p99_s(HOSTILE, SEED) <= 2 * p99_s(0, SEED)
