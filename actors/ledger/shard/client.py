"""The way of an order to the shard of its book, and of the answer back; without Ray.

Theory of operation. Orders of concurrent requests are gathered per shard: while calls are in
flight, what arrives forms the next one, each book in its turn (fair_queue.py). A call that is not
answered may have been carried out or not, so each of its orders is asked again, with the same
operation id, until the shard tells what became of it (F4); its deadline ends that:

    waiting --sent--> asked --Done, Refused--> answered
                      asked --TurnedAway----> answered, if no earlier call got lost
                      asked --no answer, Indefinite--> uncertain, waiting again
    at its deadline, or after `patience_s` if its shard is lost: Indefinite if it was ever sent,
    TurnedAway if it never was

`TurnedAway` promises that nothing was done, and so it never answers an uncertain order: the call
that got lost may still have done it. A shard of another release takes none of the orders of a call,
which are turned away at once. After a call without an answer the next one waits a little, longer
each time, and there is only one of them until the shard answers. Meanwhile nobody is kept for long:
whoever still waits when patience ends hears so, and asks again with the same key; what was not sent
yet, the shard never sees. A first call that is merely slow is waited for.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tollgate.actors.kernel.call_parts import PARTS, CallPart, note_part
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import Indefinite, OrderOutcome, TurnedAway
from tollgate.actors.ledger.shard.call_format import OrdersRefused
from tollgate.actors.ledger.shard.fair_queue import FairQueue
from tollgate.actors.ledger.shard.routing import ShardMap

LOG = logging.getLogger("tollgate.ledger")
RETRY_AFTER_S = 1
SHARD_BATCH = "shard batch"
_NOT_SENT = TurnedAway(0)


class Unanswered(Exception):  # noqa: N818 - a state of the world, not a mistake
    """A shard gave no answer: the orders may or may not have been carried out."""


class NotSent(Exception):  # noqa: N818 - likewise
    """A call did not leave: none of its orders was carried out."""


class ShardConnection(Protocol):
    """One shard, as it is reached from here."""

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """The answers, in order. Raises Unanswered, NotSent, OrdersRefused."""


@dataclass(frozen=True, slots=True)
class ClientBounds:
    """The named ends of everything that grows, per shard. `beside_min`: so many orders are worth a
    call beside another one; fewer do better to wait for its answer, as the shard commits one batch
    at a time. `patience_s`: the longest wait for a shard that is known not to answer."""

    waiting_max: int = 8_192
    batch_max: int = 256
    calls_max: int = 2
    beside_min: int = 32
    backoff_first_s: float = 0.05
    backoff_max_s: float = 0.25
    patience_s: float = 0.8


@dataclass(slots=True, eq=False)
class _Waiter:
    """`is_asked`: a call with it leaves, is in flight, or got lost; `is_uncertain`: one got lost.
    `is_impatient`: a timer runs that ends its wait if the shard is still lost then. `since_s`: of
    the loop's time. `parts`: of the traced call that waits."""

    order: Order
    answer: asyncio.Future[OrderOutcome]
    since_s: float
    is_asked: bool = False
    is_uncertain: bool = False
    is_impatient: bool = False
    deadline: asyncio.TimerHandle | None = None
    parts: list[CallPart] | None = None


@dataclass(slots=True)
class _Lane:
    """The orders that wait for one shard. `backoff_s`: 0 while the shard answers."""

    connection: ShardConnection
    waiting: FairQueue[_Waiter]
    calls: int = 0
    backoff_s: float = 0.0
    is_resting: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class LedgerClient:
    """Belongs to one event loop. `connections`: one per shard of the map, in order."""

    def __init__(
        self,
        connections: Sequence[ShardConnection],
        bounds: ClientBounds = ClientBounds(),
    ) -> None:
        self._shards = ShardMap(len(connections))
        self._lanes = [_Lane(each, FairQueue(bounds.waiting_max)) for each in connections]
        self._bounds = bounds

    async def execute(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """The outcome of each order, in order; at the latest at its deadline."""
        admitted = [self._admit(order) for order in orders]
        try:
            return [
                await place.answer if isinstance(place, _Waiter) else place for place in admitted
            ]
        finally:
            for place in admitted:
                if isinstance(place, _Waiter):
                    assert place.deadline is not None, "set when it was admitted"
                    place.deadline.cancel()
                    place.answer.cancel()

    def _admit(self, order: Order) -> _Waiter | OrderOutcome:
        lane = self._lanes[self._shards.shard_of(order.book)]
        loop = asyncio.get_running_loop()
        waiter = _Waiter(order, loop.create_future(), loop.time(), parts=PARTS.get())
        is_first = not lane.waiting
        if order.time_left_ms <= 0 or not lane.waiting.put(
            order.book, waiter, is_test=order.is_test
        ):
            return TurnedAway(RETRY_AFTER_S)
        deadline_s = waiter.since_s + order.time_left_ms / 1000
        waiter.deadline = loop.call_at(deadline_s, _expire, waiter)
        if lane.backoff_s:
            self._lose_patience(lane, waiter)
        if is_first:
            # Soon, not now: what else this turn of the loop brings comes along. Where somebody
            # waits already, something will send them: a turn like this one, a call that returns.
            loop.call_soon(self._send, lane)
        return waiter

    def _send(self, lane: _Lane) -> None:
        """Send what waits, as far as calls may be in flight."""
        while not lane.is_resting and lane.calls < self._calls_max(lane):
            if lane.calls and len(lane.waiting) < self._bounds.beside_min:
                return
            batch = self._batch(lane)
            if not batch:
                return
            lane.calls += 1
            for waiter in batch:
                # Not in the task, which begins a turn of the loop later: a timer that is due
                # before it does would say that nothing was done.
                waiter.is_asked = True
            task = asyncio.get_running_loop().create_task(self._ask(lane, batch))
            lane.tasks.add(task)
            task.add_done_callback(lane.tasks.discard)

    def _calls_max(self, lane: _Lane) -> int:
        return 1 if lane.backoff_s else self._bounds.calls_max

    def _batch(self, lane: _Lane) -> list[_Waiter]:
        batch: list[_Waiter] = []
        while lane.waiting and len(batch) < self._bounds.batch_max:
            waiter = lane.waiting.pop()
            if not waiter.answer.done():
                batch.append(waiter)
        return batch

    async def _ask(self, lane: _Lane, batch: list[_Waiter]) -> None:
        batch = [waiter for waiter in batch if not waiter.answer.done()]
        if not batch:
            # Nobody waits any more; and of the shard, nothing was learnt.
            lane.calls -= 1
            self._send(lane)
            return
        answers: list[OrderOutcome] = [Indefinite("no answer")] * len(batch)
        begun_s = asyncio.get_running_loop().time()
        try:
            answers = await lane.connection.call(_due_now(batch))
            assert len(answers) == len(batch), "a shard gives one answer per order"
        except Unanswered:
            pass  # what the answers say already
        except NotSent:
            answers = [_NOT_SENT] * len(batch)
        except OrdersRefused as refused:
            LOG.error("a ledger shard is of another release than this process: %s", refused)
            answers = [TurnedAway(RETRY_AFTER_S)] * len(batch)
        finally:
            lane.calls -= 1
            _note_batch(batch, begun_s)
            self._deliver(lane, batch, answers)
            self._send(lane)

    def _deliver(self, lane: _Lane, batch: list[_Waiter], answers: list[OrderOutcome]) -> None:
        """Answers whom it is an answer for; the others ask again."""
        again = []
        for waiter, answer in zip(batch, answers, strict=True):
            if answer is _NOT_SENT:
                waiter.is_asked = waiter.is_uncertain
                again.append(waiter)
            elif isinstance(answer, Indefinite):
                waiter.is_uncertain = True
                again.append(waiter)
            elif waiter.answer.done():
                continue
            elif isinstance(answer, TurnedAway) and waiter.is_uncertain:
                # The shard answers, so the others need not wait with this one.
                loop = asyncio.get_running_loop()
                loop.call_later(self._bounds.backoff_first_s, self._again, lane, waiter)
            else:
                waiter.answer.set_result(answer)
        self._rest(lane, again)

    def _again(self, lane: _Lane, waiter: _Waiter) -> None:
        lane.waiting.put_back([waiter])
        self._send(lane)

    def _rest(self, lane: _Lane, again: list[_Waiter]) -> None:
        if not again:
            lane.backoff_s = 0.0
            return
        lane.waiting.put_back(again)
        for waiter in again if lane.backoff_s else lane.waiting:
            self._lose_patience(lane, waiter)
        first_s, max_s = self._bounds.backoff_first_s, self._bounds.backoff_max_s
        lane.backoff_s = min(max_s, 2 * lane.backoff_s) or first_s
        if not lane.is_resting:
            lane.is_resting = True
            asyncio.get_running_loop().call_later(lane.backoff_s, self._wake, lane)

    def _lose_patience(self, lane: _Lane, waiter: _Waiter) -> None:
        if not waiter.is_impatient:
            waiter.is_impatient = True
            until_s = waiter.since_s + self._bounds.patience_s
            asyncio.get_running_loop().call_at(until_s, self._give_up, lane, waiter)

    def _give_up(self, lane: _Lane, waiter: _Waiter) -> None:
        waiter.is_impatient = False
        if lane.backoff_s:
            _expire(waiter)

    def _wake(self, lane: _Lane) -> None:
        lane.is_resting = False
        self._send(lane)


def _due_now(batch: Sequence[_Waiter]) -> list[Order]:
    """Their orders, with the time that is left to each by now."""
    now_s = asyncio.get_running_loop().time()
    return [
        replace(
            waiter.order,
            time_left_ms=waiter.order.time_left_ms - int((now_s - waiter.since_s) * 1000),
        )
        for waiter in batch
    ]


def _note_batch(batch: Sequence[_Waiter], begun_s: float) -> None:
    """For the traced calls that were in it."""
    ended_s = asyncio.get_running_loop().time()
    part = CallPart(SHARD_BATCH, begun_s, ended_s, (("tollgate.orders", str(len(batch))),))
    for waiter in batch:
        note_part(waiter.parts, part)


def _expire(waiter: _Waiter) -> None:
    if waiter.answer.done():
        return
    if waiter.is_asked:
        waiter.answer.set_result(
            Indefinite("the ledger did not tell in time: ask again with the same key")
        )
    else:
        waiter.answer.set_result(TurnedAway(RETRY_AFTER_S))
