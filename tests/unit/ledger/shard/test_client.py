"""The way to a shard: gathered, asked again until it is known, never told what is not sure."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import pytest

from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.law.commands import CreateApp, Order
from tollgate.actors.ledger.law.outcomes import (
    Done,
    DoneKind,
    Indefinite,
    OrderOutcome,
    Refusal,
    RefusalReason,
    TurnedAway,
)
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, BookId, Origin
from tollgate.actors.ledger.shard.call_format import OrdersRefused
from tollgate.actors.ledger.shard.client import ClientBounds, LedgerClient, NotSent, Unanswered
from tollgate.actors.ledger.shard.routing import ShardMap

DONE = Done(DoneKind.MADE, b"{}")
REFUSED = Refusal(RefusalReason.CONSTRAINT, "no")
LOST, UNSENT = Unanswered("lost"), NotSent("full")
DEADLINE_S = 10.0
PATIENCE_S = ClientBounds().patience_s

Reply = OrderOutcome | Exception


class Line:
    """Answers every order of a call with the next reply; the last one stays. `takes_s`: a call."""

    def __init__(self, *replies: Reply, takes_s: float = 0.01) -> None:
        self.replies = deque(replies)
        self.takes_s = takes_s
        self.calls: list[list[str]] = []
        self.at_s: list[float] = []
        self.left_ms: list[list[int]] = []
        self.in_flight = 0
        self.in_flight_max = 0

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        self.calls.append([order.operation for order in orders])
        self.left_ms.append([order.time_left_ms for order in orders])
        self.at_s.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        await asyncio.sleep(self.takes_s)
        self.in_flight -= 1
        reply = self.replies.popleft() if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return [reply] * len(orders)


def order(number: int = 1, book: BookId = DIRECTORY) -> Order:
    origin = Origin(NOBODY, "", "192.0.2.1", f"request-{number}")
    command = CreateApp("", "digest", "1234")
    return Order(f"operation-{number}", book, command, origin, int(DEADLINE_S * 1000))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def play() -> None:
        await scenario()

    loop = VirtualLoop()
    loop.run(play())
    assert not loop.accidents, loop.accidents


def client(*lines: Line, **bounds: int) -> LedgerClient:
    return LedgerClient(lines, ClientBounds(**bounds))


@pytest.mark.parametrize("answer", [DONE, REFUSED, TurnedAway(1)])
def test_an_answer_is_passed_on(answer: OrderOutcome) -> None:
    async def scenario() -> None:
        line = Line(answer)
        assert await client(line).execute([order()]) == [answer]
        assert line.calls == [["operation-1"]]

    run(scenario)


def test_concurrent_requests_share_calls() -> None:
    async def scenario() -> None:
        line = Line(DONE)
        ledger = client(line, calls_max=1, batch_max=3)
        asked = [ledger.execute([order(number)]) for number in range(5)]
        assert await asyncio.gather(*asked) == [[DONE]] * 5
        assert [len(call) for call in line.calls] == [3, 2]
        assert line.in_flight_max == 1

    run(scenario)


def test_a_few_calls_are_in_flight() -> None:
    async def scenario() -> None:
        line = Line(DONE)
        ledger = client(line, calls_max=2, batch_max=1, beside_min=1)
        await asyncio.gather(*(ledger.execute([order(number)]) for number in range(6)))
        assert line.in_flight_max == 2

    run(scenario)


@pytest.mark.parametrize(("later", "calls"), [(2, [1, 2]), (3, [1, 3]), (4, [1, 4])])
def test_few_orders_wait_for_the_call_before_them(later: int, calls: list[int]) -> None:
    async def scenario() -> None:
        line = Line(DONE)
        ledger = client(line, beside_min=3)
        first = asyncio.create_task(ledger.execute([order(0)]))
        await asyncio.sleep(0.001)
        await asyncio.gather(first, *(ledger.execute([order(1 + n)]) for n in range(later)))
        assert [len(call) for call in line.calls] == calls
        assert line.in_flight_max == (1 if later < 3 else 2)

    run(scenario)


def test_each_order_goes_to_the_shard_of_its_book() -> None:
    async def scenario() -> None:
        shards = ShardMap(3)
        lines = [Line(DONE) for _ in range(3)]
        books = [BookId(f"{number:024x}") for number in range(30)]
        orders = [order(number, book) for number, book in enumerate(books)]
        assert await client(*lines).execute(orders) == [DONE] * 30
        for number, line in enumerate(lines):
            sent = {operation for call in line.calls for operation in call}
            assert sent == {o.operation for o in orders if shards.shard_of(o.book) == number}

    run(scenario)


@pytest.mark.parametrize("trouble", [LOST, UNSENT, Indefinite("gone")])
def test_an_order_that_got_lost_is_asked_again_with_its_operation(trouble: Reply) -> None:
    async def scenario() -> None:
        line = Line(trouble, trouble, DONE)
        assert await client(line).execute([order()]) == [DONE]
        assert line.calls == [["operation-1"]] * 3
        first, second, third = line.at_s
        assert third - second > second - first > 0.05

    run(scenario)


@pytest.mark.parametrize("answer", [DONE, REFUSED])
def test_what_is_known_in_the_end_is_told(answer: OrderOutcome) -> None:
    async def scenario() -> None:
        assert await client(Line(LOST, answer)).execute([order()]) == [answer]

    run(scenario)


def test_a_call_tells_how_much_time_is_left() -> None:
    async def scenario() -> None:
        line = Line(LOST, DONE)
        await asyncio.sleep(3)
        assert await client(line).execute([order()]) == [DONE]
        ((first_ms,), (second_ms,)) = line.left_ms
        assert first_ms == DEADLINE_S * 1000
        passed_ms = (line.at_s[1] - line.at_s[0]) * 1000
        assert abs(first_ms - passed_ms - second_ms) <= 1 <= passed_ms

    run(scenario)


def test_busy_is_no_answer_to_an_order_that_may_have_been_done() -> None:
    async def scenario() -> None:
        line = Line(LOST, TurnedAway(1), TurnedAway(1), DONE)
        assert await client(line).execute([order()]) == [DONE]
        begun_s = asyncio.get_running_loop().time()
        lost_for_good = await client(Line(LOST, TurnedAway(1))).execute([order()])
        assert isinstance(lost_for_good[0], Indefinite)
        assert asyncio.get_running_loop().time() == begun_s + DEADLINE_S

    run(scenario)


def test_busy_is_the_answer_to_an_order_that_never_left() -> None:
    async def scenario() -> None:
        assert await client(Line(UNSENT)).execute([order()]) == [TurnedAway(1)]
        assert asyncio.get_running_loop().time() < 1

    run(scenario)


def test_nobody_waits_for_long_for_a_shard_that_is_lost() -> None:
    async def scenario() -> None:
        line, loop = Line(LOST), asyncio.get_running_loop()
        ledger = client(line, calls_max=2, batch_max=1, beside_min=1)

        async def waits_s(number: int) -> float:
            begun_s = loop.time()
            assert type((await ledger.execute([order(number)]))[0]) in (Indefinite, TurnedAway)
            return loop.time() - begun_s

        before = [asyncio.create_task(waits_s(number)) for number in range(6)]
        await asyncio.sleep(0.5)
        meanwhile = [asyncio.create_task(waits_s(number)) for number in range(6, 12)]
        assert max(await asyncio.gather(*before, *meanwhile)) < PATIENCE_S + 0.1

    run(scenario)


def test_an_order_that_was_given_up_before_it_was_sent_never_is() -> None:
    async def scenario() -> None:
        line = Line(LOST)
        ledger = client(line, calls_max=1, batch_max=1)
        first = asyncio.create_task(ledger.execute([order(1)]))
        second = asyncio.create_task(ledger.execute([order(2)]))
        assert await second == [TurnedAway(1)]
        assert isinstance((await first)[0], Indefinite)
        line.replies = deque([DONE])
        await asyncio.sleep(1)
        assert await ledger.execute([order(3)]) == [DONE]
        assert {operation for call in line.calls for operation in call} == {
            "operation-1",
            "operation-3",
        }

    run(scenario)


def test_an_order_is_not_sent_in_the_turn_in_which_its_wait_ends() -> None:
    """A loop that was busy finds two timers due at once: one sends, the other one gives up."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        line = Line(UNSENT, DONE)
        hurried = replace(order(), time_left_ms=100)
        asked = asyncio.create_task(client(line).execute([hurried]))
        await asyncio.sleep(0.02)
        loop.now_s = 0.2
        assert not isinstance((await asked)[0], Done)
        await asyncio.sleep(1)
        assert line.calls == [["operation-1"]]

    run(scenario)


def test_a_shard_that_is_back_in_time_answers_who_waits() -> None:
    async def scenario() -> None:
        line = Line(LOST)
        ledger = client(line)
        asked = asyncio.create_task(ledger.execute([order()]))
        await asyncio.sleep(PATIENCE_S / 2)
        line.replies = deque([DONE])
        assert await asked == [DONE]

    run(scenario)


def test_a_first_call_that_is_slow_is_waited_for() -> None:
    async def scenario() -> None:
        assert await client(Line(DONE, takes_s=5)).execute([order()]) == [DONE]

    run(scenario)


def test_orders_that_a_shard_of_another_release_refuses_are_turned_away_at_once() -> None:
    async def scenario() -> None:
        line = Line(OrdersRefused("this shard takes orders of version 2"))
        assert await client(line).execute([order()]) == [TurnedAway(1)]
        assert len(line.calls) == 1
        # Of an order that may have been done already, that is no answer.
        line = Line(LOST, OrdersRefused("this shard takes orders of version 2"))
        (answer,) = await client(line).execute([order()])
        assert isinstance(answer, Indefinite)

    run(scenario)


def test_a_deadline_ends_it_while_a_call_is_in_flight() -> None:
    async def scenario() -> None:
        line = Line(DONE, takes_s=60)
        (answer,) = await client(line).execute([order()])
        assert isinstance(answer, Indefinite)
        assert asyncio.get_running_loop().time() == DEADLINE_S

    run(scenario)


def test_an_order_behind_a_lost_call_was_never_sent() -> None:
    async def scenario() -> None:
        line = Line(DONE, takes_s=60)
        ledger = client(line, calls_max=1)
        first = asyncio.create_task(ledger.execute([order(1)]))
        await asyncio.sleep(0.001)
        assert await ledger.execute([order(2)]) == [TurnedAway(1)]
        assert isinstance((await first)[0], Indefinite)

    run(scenario)


def test_an_order_past_its_deadline_is_not_sent() -> None:
    async def scenario() -> None:
        line = Line(DONE)
        assert await client(line).execute([replace(order(), time_left_ms=0)]) == [TurnedAway(1)]
        assert line.calls == []

    run(scenario)


def test_who_waits_has_room_for_so_many() -> None:
    async def scenario() -> None:
        ledger = client(Line(DONE), waiting_max=2)
        answers = await asyncio.gather(*(ledger.execute([order(n)]) for n in range(3)))
        assert answers == [[DONE], [DONE], [TurnedAway(1)]]

    run(scenario)


def test_a_caller_who_hangs_up_disturbs_nobody() -> None:
    async def scenario() -> None:
        line = Line(DONE)
        ledger = client(line)
        asked = [asyncio.create_task(ledger.execute([order(number)])) for number in range(3)]
        await asyncio.sleep(0.005)
        asked[1].cancel()
        assert [await asked[0], await asked[2]] == [[DONE], [DONE]]
        assert asked[1].cancelled()

    run(scenario)


def test_one_lost_shard_does_not_hold_up_the_other() -> None:
    async def scenario() -> None:
        shards = ShardMap(2)
        books = [BookId(f"{number:024x}") for number in range(10)]
        first = next(book for book in books if shards.shard_of(book) == 0)
        second = next(book for book in books if shards.shard_of(book) == 1)
        ledger = client(Line(LOST), Line(DONE))
        lost = asyncio.create_task(ledger.execute([order(1, first)]))
        await asyncio.sleep(1)
        assert await ledger.execute([order(2, second)]) == [DONE]
        assert isinstance((await lost)[0], Indefinite)

    run(scenario)


def test_while_a_shard_does_not_answer_one_call_asks() -> None:
    async def scenario() -> None:
        line = Line(LOST, LOST, LOST, DONE)
        ledger = client(line, calls_max=4, batch_max=1, beside_min=1)
        answers = await asyncio.gather(*(ledger.execute([order(n)]) for n in range(8)))
        assert answers == [[DONE]] * 8
        assert line.in_flight_max == 4
        assert max(line.at_s) < PATIENCE_S

    run(scenario)


class BrokenLine(Line):
    """Fails in a way that nobody foresaw, once."""

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        if not self.calls:
            self.calls.append([])
            raise ValueError("a bug")
        return await super().call(orders)


def test_a_bug_on_the_way_is_heard_of_and_holds_up_nobody() -> None:
    async def scenario() -> None:
        line = BrokenLine(DONE)
        assert await client(line).execute([order()]) == [DONE]

    async def play() -> None:
        await scenario()

    loop = VirtualLoop()
    loop.run(play())
    assert ["a bug" in accident for accident in loop.accidents] == [True]
