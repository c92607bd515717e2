"""Gathers single calls on an event loop into batches, without timers.

    idle --call--> deciding --answers, nobody waits--> idle
                   deciding --answers, calls waited--> deciding   (they are the next batch)

While one batch is being decided in the executor, arriving calls wait and form the next: the busier
the loop, the larger the batches. A caller that gives up never harms the batch it was part of.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from tollgate.serve.ratelimit.fronts.call_queue import QUEUE_MAX
from tollgate.serve.ratelimit.fronts.front import (
    BATCH_MAX,
    CALLS_SHED,
    OVERLOADED,
    BegunCall,
    CallTracer,
    DecideBatch,
    ErrorStatus,
    StatusCode,
    WireReply,
)


@dataclass(frozen=True, slots=True)
class _Waiter:
    payload: bytes
    answer: asyncio.Future[WireReply]
    begun: BegunCall | None


class CallBatcher:
    """One batch in flight at a time. Belongs to one event loop; not thread-safe."""

    def __init__(
        self,
        decide_batch: DecideBatch,
        executor: Executor,
        queue_max: int = QUEUE_MAX,
        batch_max: int = BATCH_MAX,
        count: Callable[[str, int], None] = lambda name, by: None,
        tracer: CallTracer | None = None,
    ) -> None:
        self._decide_batch = decide_batch
        self._executor = executor
        self._queue_max = queue_max
        self._batch_max = batch_max
        self._count = count
        self._tracer = tracer
        self._waiting: deque[_Waiter] = deque()
        self._is_deciding = False

    async def decide(self, payload: bytes, begun: BegunCall | None = None) -> WireReply:
        """The answer to `payload`, or Refused when `queue_max` calls are waiting already.

        Raises what `decide_batch` raised for the batch.
        """
        loop = asyncio.get_running_loop()
        waiter = _Waiter(payload, loop.create_future(), begun)
        self._waiting.append(waiter)
        if len(self._waiting) > self._queue_max:
            self._shed(self._waiting.popleft())
        if not self._is_deciding:
            self._is_deciding = True
            # Soon, not now: what else this turn of the loop brings comes along.
            loop.call_soon(self._start_batch, loop)
        return await waiter.answer

    def _shed(self, oldest: _Waiter) -> None:
        if not oldest.answer.done():
            oldest.answer.set_result(ErrorStatus(StatusCode.RESOURCE_EXHAUSTED, OVERLOADED))
            self._count(CALLS_SHED, 1)

    def _start_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        batch: list[_Waiter] = []
        while self._waiting and len(batch) < self._batch_max:
            waiter = self._waiting.popleft()
            if not waiter.answer.done():
                batch.append(waiter)
        if not batch:
            self._is_deciding = False
            return
        payloads = [waiter.payload for waiter in batch]
        decide = self._decide_batch
        if self._tracer is not None:
            decide = partial(self._decide_traced, self._tracer, batch)
        decided = loop.run_in_executor(self._executor, decide, payloads)
        decided.add_done_callback(lambda done: self._deliver(loop, batch, done))

    def _decide_traced(
        self, tracer: CallTracer, batch: list[_Waiter], payloads: Sequence[bytes]
    ) -> list[WireReply]:
        replies = self._decide_batch(payloads)
        # (a batch of another length is an error that is found where it is delivered)
        tracer.end(
            (waiter.begun, waiter.payload, reply)
            for waiter, reply in zip(batch, replies, strict=False)
        )
        return replies

    def _deliver(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: list[_Waiter],
        decided: asyncio.Future[list[WireReply]],
    ) -> None:
        error = decided.exception()
        if error is None and len(decided.result()) != len(batch):
            error = AssertionError("decide_batch gives one answer per request")
        for i, waiter in enumerate(batch):
            if waiter.answer.done():
                continue
            if error is None:
                waiter.answer.set_result(decided.result()[i])
            else:
                waiter.answer.set_exception(error)
        self._start_batch(loop)
