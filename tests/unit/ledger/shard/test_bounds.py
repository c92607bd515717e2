"""The shard: in bounded room, undisturbed by who hangs up, and gone when it was replaced."""

import asyncio
import json
from dataclasses import replace

import pytest

from tests.support.ledger.books import ABSENT, Books, authorise, open_shop
from tests.support.ledger.shard import Writer, authorised, quiet, run, void
from tollgate.actors.ledger.law.commands import Authorise, Order, Refund, Void
from tollgate.actors.ledger.law.outcomes import Done, Indefinite, Refusal, RefusalReason, TurnedAway
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.law.webhook_law import AddWebhook, RemoveWebhook
from tollgate.actors.ledger.shard.pipeline import ShardBounds
from tollgate.actors.ledger.storage.store import Fenced, OutcomeUnknown

# Bounds


def test_a_full_mailbox_turns_away_before_any_effect() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        orders = [writer.order(void(transaction)) for _ in range(5)]
        answers = await writer.ask(*orders)
        assert [type(answer) for answer in answers] == [
            Done,
            Done,
            TurnedAway,
            TurnedAway,
            TurnedAway,
        ]
        assert writer.shard.figures.turned_away == 3
        # A copy that comes late is told the same.
        assert await writer.ask(orders[4]) == [answers[4]]
        assert orders[4].operation not in writer.tables.operations

    run(scenario, bounds=ShardBounds(mailbox_max=2))


def test_a_copy_of_what_was_done_is_never_told_that_it_was_not() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        await writer.ask(order)
        late = replace(order, time_left_ms=0)
        assert isinstance((await writer.ask(late))[0], Indefinite)

    run(scenario)


def test_an_expired_order_is_dropped_undecided() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        before = writer.store.calls.total()
        asked = writer.asked(order)
        await asyncio.sleep(0)
        writer.clock.advance(10)
        (answer,) = await asked
        assert isinstance(answer, TurnedAway)
        assert writer.store.calls.total() == before
        assert writer.shard.figures.expired == 1

    run(scenario)


@pytest.mark.parametrize("ahead_s", [-3_600, -11, 11, 3_600])
def test_the_time_of_day_of_a_shard_ends_no_order(ahead_s: int) -> None:
    """The clocks of the caller's machine and of the shard's differ."""

    async def scenario(writer: Writer) -> None:
        asked = writer.asked(writer.order(authorise(100)))
        await asyncio.sleep(0)
        writer.clock.turn(ahead_s)
        assert isinstance((await asked)[0], Done)
        assert isinstance(await writer.do(authorise(100)), Done)

    run(scenario)


@pytest.mark.parametrize("ahead_s", [-3_600, 3_600])
def test_the_time_of_day_of_a_shard_lengthens_no_order(ahead_s: int) -> None:
    async def scenario(writer: Writer) -> None:
        writer.clock.turn(ahead_s)
        asked = writer.asked(writer.order(authorise(100)))
        await asyncio.sleep(0)
        writer.clock.advance(10)
        assert isinstance((await asked)[0], TurnedAway)

    run(scenario)


def test_what_is_in_memory_is_not_read_again() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        await writer.do(void(transaction))
        writer.store.calls.clear()
        await writer.do(void(transaction))
        assert writer.store.calls == {"operations": 1, "append": 1}

    run(scenario)


def test_books_make_room_and_come_back() -> None:
    books = Books()
    shop, other = open_shop(books=books), open_shop(books=books)

    async def scenario(writer: Writer) -> None:
        for _ in range(2):
            for place in (shop, other):
                order = replace(
                    writer.order(authorise(100)),
                    book=place.book,
                    origin=replace(writer.order(authorise(100)).origin, app=place.app),
                )
                assert isinstance((await writer.ask(order))[0], Done)
        assert writer.shard.books == 1
        assert writer.store.calls["heads"] == 4

    run(scenario, shop, ShardBounds(books_max=1))


def large(amount: int) -> Authorise:
    """A payment with 50 kB of the merchant's own."""
    return replace(authorise(amount), custom=f'"{"x" * 50_000}"')


def test_large_books_stay_in_the_bytes_that_they_have_and_come_back_whole() -> None:
    budget = 1_000_000

    async def scenario(writer: Writer) -> None:
        transactions = []
        for number in range(12):
            done = await writer.do(large(100 + number))
            assert isinstance(done, Done)
            transactions.append(EntityId(json.loads(done.body)["transaction"]["id"]))
            assert 0 < writer.shard.cached_bytes <= budget
        writer.store.calls.clear()
        # Those that came last are here, ...
        for transaction in transactions[-4:]:
            await writer.do(Void(transaction, 50))
        assert writer.store.calls["entities"] == 0
        # ... the others made room, and are what they were.
        for number, transaction in enumerate(transactions):
            done = await writer.do(Void(transaction, 10))
            assert isinstance(done, Done)
            left = 90 + number - (50 if transaction in transactions[-4:] else 0)
            assert json.loads(done.body)["transaction"]["pendingAmount"] == left
            assert writer.shard.cached_bytes <= budget
        assert writer.store.calls["entities"] == 12

    run(scenario, bounds=ShardBounds(cache_bytes_max=budget))


def test_what_is_larger_than_the_cache_is_fetched_each_time() -> None:
    async def scenario(writer: Writer) -> None:
        done = await writer.do(large(100))
        assert isinstance(done, Done)
        transaction = EntityId(json.loads(done.body)["transaction"]["id"])
        small = await authorised(writer)
        for _ in range(2):
            assert isinstance(await writer.do(Void(transaction, 10)), Done)
            assert isinstance(await writer.do(Void(small, 1)), Done)
        assert writer.store.calls["entities"] == 2
        assert writer.shard.cached_bytes <= 100_000

    run(scenario, bounds=ShardBounds(cache_bytes_max=100_000))


def test_what_is_gone_is_gone_from_memory_too() -> None:
    async def scenario(writer: Writer) -> None:
        answer = await writer.do(AddWebhook("https://example.com/", "sealed"))
        assert isinstance(answer, Done)
        webhook = EntityId(json.loads(answer.body)["webhook"]["id"])
        assert isinstance(await writer.do(RemoveWebhook(webhook)), Done)
        refused = await writer.do(RemoveWebhook(webhook))
        assert isinstance(refused, Refusal)
        assert refused.kind is RefusalReason.NOT_FOUND

    run(scenario)


def test_an_entity_of_another_book_is_not_here() -> None:
    books = Books()
    shop, other = open_shop(books=books), open_shop(books=books)
    theirs = other.captured(100)

    async def scenario(writer: Writer) -> None:
        for transaction in (theirs, ABSENT):
            refused = await writer.do(Refund(transaction, 100, ""))
            assert isinstance(refused, Refusal)
            assert refused.kind is RefusalReason.NOT_FOUND
        # It is not kept: this shard need not be the one that writes it.
        assert writer.store.calls["entities"] == 2
        await writer.do(Refund(theirs, 100, ""))
        assert writer.store.calls["entities"] == 3

    run(scenario, shop)


# Waiters


def test_a_cancelled_waiter_disturbs_nobody() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        writer.store.disk.clear()
        orders = [writer.order(void(transaction)) for _ in range(3)]
        asked = [writer.asked(order) for order in orders]
        await quiet()
        asked[1].cancel()
        await quiet()
        writer.store.disk.set()
        assert isinstance((await asked[0])[0], Done)
        assert isinstance((await asked[2])[0], Done)
        assert asked[1].cancelled()
        assert orders[1].operation in writer.tables.operations
        assert not writer.ends

    run(scenario)


def test_what_nobody_waits_for_is_not_begun() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        asked = writer.asked(order)
        await asyncio.sleep(0)
        asked.cancel()
        await quiet()
        assert asked.cancelled()
        assert order.operation not in writer.tables.operations
        assert isinstance(await writer.do(authorise(100)), Done)

    run(scenario)


# The end


@pytest.mark.parametrize(
    "failure", [OutcomeUnknown("input/output error"), Fenced("a newer one"), ValueError("a bug")]
)
def test_a_commit_that_fails_ends_the_shard(failure: Exception) -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        before = writer.journal
        writer.store.disk.clear()
        writer.store.failure = failure
        on_its_way = writer.asked(writer.order(void(transaction)))
        await quiet()
        decided = writer.asked(*(writer.order(void(transaction)) for _ in range(2)))
        await quiet()
        waiting = writer.asked(*(writer.order(void(transaction)) for _ in range(2)))
        await quiet()
        writer.store.disk.set()
        for asked in (on_its_way, decided, waiting):
            assert all(isinstance(answer, Indefinite) for answer in await asked)
        assert writer.ends == [failure]
        assert isinstance(await writer.do(void(transaction)), Indefinite)
        assert writer.journal == before
        assert writer.ends == [failure]

    run(scenario, bounds=ShardBounds(batch_max=2))


def test_a_shard_that_was_replaced_neither_writes_nor_refuses() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        older = await writer.take_over()
        hopeless: Order = older.order(Refund(transaction, 100, ""))
        assert isinstance((await older.ask(hopeless))[0], Indefinite)
        assert [type(end) for end in older.ends] == [Fenced]
        assert isinstance((await writer.ask(hopeless))[0], Refusal)
        assert isinstance((await older.ask(older.order(void(transaction))))[0], Indefinite)
        assert isinstance(await writer.do(void(transaction)), Done)

    run(scenario)


def test_a_replaced_writer_that_sees_what_cannot_be_was_replaced() -> None:
    """Its head is older than the transaction that it reads."""

    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        older = await writer.take_over()
        writer.clock.advance(60)
        await writer.do(void(transaction))
        older.clock.set(0)
        older.shard._book_cache._entities.discard(transaction)
        order = older.order(void(transaction))
        assert isinstance((await older.ask(order))[0], Indefinite)
        assert [type(end) for end in older.ends] == [Fenced]

    run(scenario)
