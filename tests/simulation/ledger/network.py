"""Between clients and shards: messages get lost, arrive late, twice and out of order.

A message may arrive after everybody has given up waiting for it: what it orders is done then, so
whoever was told must have been told that it might be.

A copy of a request is carried out like any other, and its reply reaches nobody: a caller takes the
reply to what he sent. A client keeps the handle it has until a call on it fails; so it may go on
talking to an incarnation that others have given up. A message is for one incarnation and never
reaches another one.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from tests.simulation.ledger.faults import NONE, Faults
from tests.simulation.ledger.process import Process
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.actors.ledger.shard.client import NotSent, Unanswered

LATENCY_S = 0.01
# Longer than an order is waited for.
SLOW_S = 6.0
TIMEOUT_S = 0.5
REFUSED_S = 0.02


class Line:
    """From one client to one shard."""

    def __init__(self, current: Callable[[], Process], chance: Random, faults: Faults) -> None:
        self._current = current
        self._chance = chance
        self._faults = faults
        self._process: Process | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def storm(self, faults: Faults) -> None:
        self._faults = faults

    def heal(self) -> None:
        self._faults = NONE
        self._process = None

    def look_again(self) -> None:
        """The next call goes to whichever incarnation is the newest by then."""
        self._process = None

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """See ShardConnection."""
        dice, faults = self._chance.random, self._faults
        if dice() < faults.not_sent:
            raise NotSent("too many calls are waiting")
        process = self._process = self._process or self._current()
        reply: asyncio.Future[list[OrderOutcome]] = process.loop.create_future()
        if dice() >= faults.lost_request:
            self._send(process, orders, reply, self._latency_s(0.05))
        if dice() < faults.duplicate:
            nobody: asyncio.Future[list[OrderOutcome]] = process.loop.create_future()
            nobody.cancel()
            self._send(process, orders, nobody, self._latency_s(0.5))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await reply
        except (TimeoutError, ConnectionError) as error:
            if self._faults is NONE or dice() < 0.7:
                self._process = None
            raise Unanswered(str(error)) from error

    def _send(
        self,
        process: Process,
        orders: Sequence[Order],
        reply: asyncio.Future[list[OrderOutcome]],
        latency_s: float,
    ) -> None:
        task = process.loop.create_task(self._carry(process, list(orders), reply, latency_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(
        self,
        process: Process,
        orders: list[Order],
        reply: asyncio.Future[list[OrderOutcome]],
        latency_s: float,
    ) -> None:
        await process.loop.rest(latency_s)
        if not process.is_alive or process.shard is None:
            await process.loop.rest(REFUSED_S)
            if not reply.done():
                reply.set_exception(ConnectionError("connection refused"))
            return
        await process.step()
        answers = await process.shard.execute(orders)
        await process.go_on()
        if self._chance.random() < self._faults.lost_reply:
            return
        await process.loop.rest(self._latency_s(0.05))
        if not reply.done():
            reply.set_result(answers)

    def _latency_s(self, slow: float) -> float:
        is_slow = self._faults is not NONE and self._chance.random() < slow
        return self._chance.random() * (SLOW_S if is_slow else LATENCY_S)
