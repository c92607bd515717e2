"""A thousand merchants with webhooks, some of them slow or broken: the others do not feel it."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.delivery.schedule import (
    ChooseDue,
    DeadLetter,
    DeliveryBatch,
    DeliveryOutcome,
    DeliveryProgress,
    DueDelivery,
    OutgoingEvent,
    first_due,
    progress_after,
)
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.serve.payments.secrets.master_secret import MasterSecret
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
    is_leased: bool = False


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
                hook.waiting.append(OutgoingEvent(event, f'{{"id":"{event}"}}'))
                if hook.kind == "quick" and self.loop.now_s > WARM_S:
                    self.made_s[event] = self.loop.now_s

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> str | None:
        kind = url.partition("//")[2].partition(".")[0]
        if kind == "quick":
            await asyncio.sleep(self.draw.uniform(0.02, 0.08))
            made_s = self.made_s.pop(headers["Tollgate-Event"], None)
            if made_s is not None:
                self.delays_s.append(self.loop.now_s - made_s)
            return None
        await asyncio.sleep(TIMEOUT_S * (0.9 if kind == "slow" else 1.0))
        return None if kind == "slow" else "no answer"

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        letters_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        offered = [
            DueDelivery(hook.id, hook.book, url_of(hook), True, hook.progress.failures)
            for hook in self.hooks.values()
            if hook.waiting and not hook.is_leased and hook.progress.next_attempt_ms <= now_ms
        ]
        return [self._batch(each, letters_max) for each in choose(offered, batches_max)]

    def _batch(self, due: DueDelivery, letters_max: int) -> DeliveryBatch:
        hook = self.hooks[due.webhook]
        hook.is_leased = True
        letters = tuple(hook.waiting)[:letters_max]
        return DeliveryBatch(
            hook.id, hook.book, url_of(hook), hook.secret, "lease", hook.progress, letters
        )

    async def settle(self, batch: DeliveryBatch, outcome: DeliveryOutcome, now_ms: int) -> bool:
        hook = self.hooks[batch.webhook]
        hook.is_leased = False
        hook.progress = progress_after(batch, outcome, now_ms)
        for _ in range(outcome.delivered):
            hook.waiting.popleft()
        return True

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


def url_of(hook: Hook) -> str:
    return f"https://{hook.kind}.{hook.book}.example/"


def p99_s(hostile: int, seed: int) -> float:
    """The delay of honest merchants' events that one in a hundred exceeds."""
    loop = VirtualLoop()
    street = Street(loop, hostile, seed)
    bounds = DeliveryBounds(timeout_s=TIMEOUT_S)
    worker = DeliveryWorker(street, street, SEALER, Loops(loop), "Tollgate", bounds)

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
