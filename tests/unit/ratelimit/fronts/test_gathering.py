"""Single calls become batches: one in flight, the rest waits and goes together."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from tollgate.serve.ratelimit.fronts.batcher import CallBatcher
from tollgate.serve.ratelimit.fronts.front import ErrorStatus, StatusCode, WireReply


class HeldExecutor(Executor):
    """Runs nothing until told to, in the caller's thread."""

    def __init__(self) -> None:
        self._held: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.batches: list[list[bytes]] = []

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._held.append((future, lambda: task(*arguments)))
        self.batches.append(list(arguments[0]))
        return future

    @property
    def in_flight(self) -> int:
        return len(self._held)

    def run_one(self, error: Exception | None = None) -> None:
        future, task = self._held.pop(0)
        if error is None:
            future.set_result(task())
        else:
            future.set_exception(error)


def echo(payloads: Sequence[bytes]) -> list[WireReply]:
    return [b"re:" + payload for payload in payloads]


async def settle() -> None:
    """Lets the loop run until everything that can happen without the executor has."""
    for _ in range(10):
        await asyncio.sleep(0)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def test_calls_of_one_turn_go_together_and_in_order() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        calls = [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(3)]
        await settle()
        executor.run_one()
        assert await asyncio.gather(*calls) == [b"re:0", b"re:1", b"re:2"]
        assert executor.batches == [[b"0", b"1", b"2"]]

    run(scenario())


def test_one_batch_is_in_flight_and_the_next_forms_meanwhile() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        first = asyncio.create_task(batcher.decide(b"first"))
        await settle()
        later = []
        for i in range(4):
            later.append(asyncio.create_task(batcher.decide(b"%d" % i)))
            await settle()
        assert executor.in_flight == 1
        executor.run_one()
        assert await first == b"re:first"
        await settle()
        assert executor.in_flight == 1
        executor.run_one()
        assert await asyncio.gather(*later) == [b"re:0", b"re:1", b"re:2", b"re:3"]
        assert executor.batches == [[b"first"], [b"0", b"1", b"2", b"3"]]

    run(scenario())


def test_it_starts_again_after_idling() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        for payload in (b"a", b"b"):
            call = asyncio.create_task(batcher.decide(payload))
            await settle()
            executor.run_one()
            assert await call == b"re:" + payload
        assert executor.in_flight == 0

    run(scenario())


def test_a_batch_has_a_largest_size() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor, batch_max=2)
        calls = [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(5)]
        for _ in range(3):
            await settle()
            executor.run_one()
        await asyncio.gather(*calls)
        assert executor.batches == [[b"0", b"1"], [b"2", b"3"], [b"4"]]

    run(scenario())


def test_a_caller_that_gives_up_in_flight_harms_nobody() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        calls = [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(3)]
        await settle()
        calls[1].cancel()
        await settle()
        executor.run_one()
        assert [await calls[0], await calls[2]] == [b"re:0", b"re:2"]
        assert calls[1].cancelled()

    run(scenario())


def test_a_caller_that_gives_up_while_waiting_is_not_decided() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        calls = [asyncio.create_task(batcher.decide(b"first"))]
        await settle()
        calls += [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(2)]
        await settle()
        calls[1].cancel()
        await settle()
        executor.run_one()
        await settle()
        executor.run_one()
        assert await calls[2] == b"re:1"
        assert executor.batches == [[b"first"], [b"1"]]

    run(scenario())


def test_when_all_that_waited_gave_up_it_idles() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        first = asyncio.create_task(batcher.decide(b"first"))
        await settle()
        waiting = asyncio.create_task(batcher.decide(b"gone"))
        await settle()
        waiting.cancel()
        await settle()
        executor.run_one()
        await first
        await settle()
        assert executor.in_flight == 0
        last = asyncio.create_task(batcher.decide(b"last"))
        await settle()
        executor.run_one()
        assert await last == b"re:last"

    run(scenario())


def test_an_exception_reaches_everybody_in_the_batch_and_nobody_else() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(echo, executor)
        failing = [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(2)]
        await settle()
        later = asyncio.create_task(batcher.decide(b"later"))
        await settle()
        executor.run_one(ZeroDivisionError("by zero"))
        outcomes = await asyncio.gather(*failing, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError] * 2
        await settle()
        executor.run_one()
        assert await later == b"re:later"

    run(scenario())


def test_an_answer_too_few_is_an_error_for_all() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        batcher = CallBatcher(lambda payloads: echo(payloads)[1:], executor)
        calls = [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(2)]
        await settle()
        executor.run_one()
        for call in calls:
            with pytest.raises(AssertionError, match="one answer per request"):
                await call

    run(scenario())


def test_beyond_its_bound_the_queue_sheds_the_oldest() -> None:
    async def scenario() -> None:
        executor = HeldExecutor()
        shed: list[tuple[str, int]] = []
        batcher = CallBatcher(echo, executor, 2, count=lambda name, by: shed.append((name, by)))
        calls = [asyncio.create_task(batcher.decide(b"first"))]
        await settle()
        calls += [asyncio.create_task(batcher.decide(b"%d" % i)) for i in range(3)]
        await settle()
        assert await calls[1] == ErrorStatus(
            StatusCode.RESOURCE_EXHAUSTED,
            "too many calls are waiting for a decision, try again later",
        )
        executor.run_one()
        await settle()
        executor.run_one()
        assert await asyncio.gather(calls[0], *calls[2:]) == [b"re:first", b"re:1", b"re:2"]
        assert shed == [("ratelimit.front.calls_shed", 1)]

    run(scenario())
