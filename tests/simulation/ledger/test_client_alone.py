"""The client alone, against shards that do as a seed says, on a loop that is busy now and then.

Whoever hears that nothing was done can rely on it: not then, and not later either.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.law.commands import Order, ReserveMerchant
from tollgate.actors.ledger.law.outcomes import Done, DoneKind, OrderOutcome, TurnedAway
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, Origin
from tollgate.actors.ledger.shard import client
from tollgate.actors.ledger.shard.call_format import OrdersRefused
from tollgate.actors.ledger.shard.client import ClientBounds, LedgerClient, NotSent, Unanswered

SEEDS = 300
ORDERS = 40
DONE = Done(DoneKind.MADE, b"{}")
# Shipped ones, and such as make the timers fall on the same moments.
BOUNDS = (ClientBounds(), ClientBounds(batch_max=2, beside_min=1), ClientBounds(patience_s=0.25))
TIMES_LEFT_MS = (300, 1_000, 10_000)
HANGS_UP = 0.1
TICK_S = 0.05
BUSY_EVERY_S = 0.2
BUSY_S = 0.12
LATE_S = 0.5


@dataclass(slots=True)
class Shard:
    """`done`: the operations that it carried out, whether it could tell or not."""

    loop: VirtualLoop
    chance: Random
    trouble: float
    done: set[str] = field(default_factory=set)

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """See ShardConnection."""
        if self.chance.random() >= self.trouble:
            await self.loop.rest(self.chance.random() * TICK_S)
            return self._do(orders)
        match self.chance.randrange(6):
            case 0:
                raise NotSent("too many calls are waiting")
            case 1:
                raise OrdersRefused("another release")
            case 2:
                return [DONE if each.operation in self.done else TurnedAway(1) for each in orders]
            case 3:
                self.loop.call_later(self.chance.random() * LATE_S, self._do, list(orders))
            case 4:
                self._do(orders)
            case _:
                pass  # lost on the way
        await self.loop.rest(self.chance.choice((0.0, TICK_S, 4 * TICK_S)))
        raise Unanswered("lost")

    def _do(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        self.done.update(order.operation for order in orders)
        return [DONE] * len(orders)


async def _caller(ledger: LedgerClient, loop: VirtualLoop, chance: Random, name: str) -> bool:
    """Whether it was told that nothing was done."""
    await loop.rest(chance.randrange(60) * TICK_S)
    time_left_ms = chance.choice(TIMES_LEFT_MS)
    order = Order(name, DIRECTORY, ReserveMerchant(), Origin(NOBODY, "", "", ""), time_left_ms)
    try:
        async with asyncio.timeout(TICK_S if chance.random() < HANGS_UP else None):
            (answer,) = await ledger.execute([order])
    except TimeoutError:
        return False
    return isinstance(answer, TurnedAway)


async def _busy(loop: VirtualLoop, chance: Random) -> None:
    """A large body, a collection of garbage: the timers that are due meanwhile are due at once."""
    while True:
        await loop.rest(chance.random() * BUSY_EVERY_S)
        loop.now_s += chance.random() * BUSY_S


async def _told_wrongly(loop: VirtualLoop, seed: int) -> set[str]:
    chance = Random(seed)
    shard = Shard(loop, chance, chance.choice((0.3, 0.6, 0.9)))
    ledger = LedgerClient([shard], chance.choice(BOUNDS))
    busy = loop.create_task(_busy(loop, chance))
    names = [f"operation-{number}" for number in range(ORDERS)]
    told = await asyncio.gather(*(_caller(ledger, loop, chance, name) for name in names))
    # What was given up may still be on its way.
    await loop.rest(5.0)
    busy.cancel()
    turned_away = {name for name, is_turned_away in zip(names, told, strict=True) if is_turned_away}
    return turned_away & shard.done


def told_wrongly(seed: int) -> set[str]:
    """The operations that were done, of which the caller heard that they were not."""
    loop = VirtualLoop()
    wrongly = loop.run(_told_wrongly(loop, seed))
    assert not loop.accidents, loop.accidents
    return wrongly


def test_nothing_was_done_when_that_was_told() -> None:
    assert not [(seed, wrongly) for seed in range(SEEDS) if (wrongly := told_wrongly(seed))]


def _asked_a_turn_later(
    self: LedgerClient, lane: client._Lane, batch: list[client._Waiter]
) -> Coroutine[None, None, None]:
    """An order counts as asked once its call begins, and goes then, answered or not."""
    for waiter in batch:
        waiter.is_asked = waiter.is_uncertain

    async def ask() -> None:
        for number, waiter in enumerate(batch):
            waiter.is_asked = True
            if waiter.answer.done():
                future = asyncio.get_running_loop().create_future()
                batch[number] = replace(waiter, answer=future)
        await _ask(self, lane, batch)

    return ask()


_ask = LedgerClient._ask


def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerClient, "_ask", _asked_a_turn_later)
    assert any(told_wrongly(seed) for seed in range(SEEDS))
