"""Turns and room among the books that wait for one shard (F11)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.ledger.books import Books, Shop, authorise, open_shop
from tests.support.ledger.shard import Writer, run
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import Done, DoneKind, OrderOutcome, TurnedAway
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.shard.client import ClientBounds, LedgerClient
from tollgate.actors.ledger.shard.fair_queue import FairQueue
from tollgate.actors.ledger.shard.pipeline import ShardBounds

BATCH = 8
# Of those that flood, together.
FLOOD = 400
# One on its way, one that was full already, and the batch of one's own.
BATCHES_MAX = 3


def queue_of(*put: str, length_max: int = 100) -> FairQueue[str]:
    """Each is named `<book><number>`; books with capitals are live."""
    queue: FairQueue[str] = FairQueue(length_max)
    for item in put:
        assert queue.put(BookId(item[0]), item, is_test=item[0].islower())
    return queue


def all_of(queue: FairQueue[str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


def test_each_book_has_its_turn_and_its_own_order() -> None:
    assert all_of(queue_of("A1", "A2", "A3", "B1", "C1", "B2")) == [
        *("A1", "B1", "C1"),
        *("A2", "B2"),
        "A3",
    ]


def test_live_books_have_three_turns_of_four_and_all_while_no_test_one_waits() -> None:
    assert all_of(queue_of("a1", "b1", "a2", *(f"A{n}" for n in range(5)))) == [
        *("A0", "A1", "A2", "a1"),
        *("A3", "A4", "b1"),
        "a2",
    ]


def test_what_is_put_back_goes_first_again() -> None:
    queue = queue_of("A1", "A2", "a1", "B1")
    taken = [queue.pop() for _ in range(3)]
    queue.put_back(taken)
    assert sorted(queue) == ["A1", "A2", "B1", "a1"]
    assert all_of(queue) == [*taken, "a1"]


def test_a_book_alone_leaves_half_of_the_room_to_others() -> None:
    queue: FairQueue[int] = FairQueue(10)
    assert [queue.put(BookId("A"), n, is_test=False) for n in range(8)] == [True] * 6 + [False] * 2
    assert queue.put(BookId("B"), 0, is_test=False)


def test_test_books_share_their_room_and_leave_half_of_it() -> None:
    queue: FairQueue[int] = FairQueue(10)
    admitted = [queue.put(BookId(f"{n}"), n, is_test=True) for n in range(8)]
    assert admitted == [True] * 6 + [False] * 2
    assert [queue.put(BookId(f"L{n}"), n, is_test=False) for n in range(5)] == [True] * 4 + [False]


def flooded() -> tuple[list[Shop], Shop]:
    """Test merchants, and a live one, in the same books."""
    books = Books()
    return [open_shop(books=books) for _ in range(20)], open_shop(is_test=False, books=books)


def orders_of(shop: Shop, count: int) -> list[Order]:
    is_test = shop.books.head(shop.book).is_test
    return [
        replace(
            shop.books.order(shop.book, authorise(1), shop.app, time_left_ms=10_000),
            is_test=is_test,
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("books", [1, 20])
def test_a_live_order_does_not_wait_behind_a_flood_of_test_orders(books: int) -> None:
    floods, honest = flooded()

    async def scenario(writer: Writer) -> None:
        for each in floods[:books]:
            writer.asked(*orders_of(each, FLOOD // books))
        await asyncio.sleep(0)
        assert writer.shard.depth == FLOOD
        (answer,) = await writer.ask(*orders_of(honest, 1))
        assert isinstance(answer, Done)
        assert writer.shard.figures.batches <= BATCHES_MAX
        assert writer.shard.depth > FLOOD - (BATCHES_MAX + 1) * BATCH

    run(scenario, honest, ShardBounds(batch_max=BATCH))


def test_among_live_books_a_flood_holds_up_itself() -> None:
    books = Books()
    flood, honest = (open_shop(is_test=False, books=books) for _ in range(2))

    async def scenario(writer: Writer) -> None:
        writer.asked(*orders_of(flood, FLOOD))
        await asyncio.sleep(0)
        for _ in range(5):
            before = writer.shard.figures.batches
            (answer,) = await writer.ask(*orders_of(honest, 1))
            assert isinstance(answer, Done)
            assert writer.shard.figures.batches - before <= BATCHES_MAX

    run(scenario, honest, ShardBounds(batch_max=BATCH))


def test_a_full_mailbox_has_room_for_a_live_order() -> None:
    floods, honest = flooded()

    async def scenario(writer: Writer) -> None:
        turned_away = 0
        for each in floods:
            asked = writer.asked(*orders_of(each, 10))
            await asyncio.sleep(0)
            turned_away = writer.shard.figures.turned_away
            del asked
        assert turned_away > 0
        (answer,) = await writer.ask(*orders_of(honest, 1))
        assert isinstance(answer, Done)

    run(scenario, honest, ShardBounds(batch_max=BATCH, mailbox_max=32))


class Line:
    """A shard that takes a while for each call. `calls`: the books of each."""

    def __init__(self) -> None:
        self.calls: list[set[str]] = []

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        self.calls.append({order.book for order in orders})
        await asyncio.sleep(0.01)
        return [Done(DoneKind.MADE, b"{}")] * len(orders)


@pytest.mark.parametrize("waiting_max", [8_192, 64])
def test_a_live_order_leaves_the_web_process_before_a_flood_of_test_orders(
    waiting_max: int,
) -> None:
    floods, honest = flooded()

    async def scenario() -> None:
        line = Line()
        client = LedgerClient([line], ClientBounds(batch_max=BATCH, waiting_max=waiting_max))
        flood = [order for each in floods for order in orders_of(each, FLOOD // len(floods))]
        told = asyncio.get_running_loop().create_task(client.execute(flood))
        await asyncio.sleep(0)
        (answer,) = await client.execute(orders_of(honest, 1))
        assert isinstance(answer, Done)
        assert honest.book in line.calls[0] or honest.book in line.calls[1]
        assert any(isinstance(each, TurnedAway) for each in await told) is (waiting_max < FLOOD)

    loop = VirtualLoop()
    loop.run(scenario())
    assert not loop.accidents, loop.accidents
