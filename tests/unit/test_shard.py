"""The shard: durable before told, once, in bounded room, and gone when it was replaced."""

import asyncio
import json
from dataclasses import replace

import pytest

from actors.ledger.answers import Busy, Done, Indefinite, RefusalKind, Refused
from actors.ledger.commands import AddWebhook, Capture, Order, Refund, RemoveWebhook, Void
from actors.ledger.shard import ShardBounds
from actors.ledger.store import Fenced, OutcomeUnknown
from actors.ledger.values import EntityId
from tests.ledger_books import ABSENT, FREE, Books, authorise, open_shop
from tests.ledger_shard import Writer, quiet, run


def void(transaction: EntityId, amount: int = 100) -> Void:
    return Void(transaction, amount)


def capture(transaction: EntityId, amount: int) -> Capture:
    return Capture(transaction, amount, None, "", None, None)


async def authorised(writer: Writer, amount: int = 1_000) -> EntityId:
    answer = await writer.do(authorise(amount))
    assert isinstance(answer, Done)
    return EntityId(json.loads(answer.body)["transaction"]["id"])


# Durable, then told


def test_what_is_told_is_durable() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        (answer,) = await writer.ask(order)
        assert isinstance(answer, Done)
        stored = writer.tables.operations[order.operation]
        assert (answer.status, answer.body) == (stored.status, stored.body)

    run(scenario)


def test_nobody_is_told_before_it_is_durable() -> None:
    async def scenario(writer: Writer) -> None:
        before = writer.journal
        writer.store.disk.clear()
        asked = writer.asked(writer.order(authorise(100)))
        await quiet()
        assert writer.store.calls["append"] == 1
        assert not asked.done()
        assert writer.journal == before
        writer.store.disk.set()
        assert isinstance((await asked)[0], Done)
        assert writer.journal == before + 1

    run(scenario)


def test_a_refusal_that_rests_on_an_effect_waits_for_it() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer, 100)
        writer.store.disk.clear()
        asked = writer.asked(*(writer.order(void(transaction)) for _ in range(2)))
        await quiet()
        assert not asked.done()
        writer.store.disk.set()
        done, refused = await asked
        assert isinstance(done, Done)
        assert isinstance(refused, Refused)
        assert refused.kind is RefusalKind.CONSTRAINT

    run(scenario)


def test_what_comes_while_the_disk_is_busy_is_decided_and_becomes_one_commit() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        writer.store.disk.clear()
        first = writer.asked(writer.order(void(transaction)))
        await quiet()
        others = [writer.asked(writer.order(void(transaction))) for _ in range(5)]
        await quiet()
        assert writer.shard.figures.effects == 7
        assert writer.store.calls["append"] == 2
        writer.store.disk.set()
        for asked in (first, *others):
            assert isinstance((await asked)[0], Done)
        assert [len(commit.operations) for commit in writer.store.commits] == [1, 1, 5]

    run(scenario)


def test_a_batch_has_an_end() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        answers = await writer.ask(*(writer.order(void(transaction)) for _ in range(10)))
        assert all(isinstance(answer, Done) for answer in answers)
        assert [len(commit.operations) for commit in writer.store.commits] == [1, 4, 4, 2]

    run(scenario, bounds=ShardBounds(batch_max=4))


def test_the_last_state_is_written_once() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        await writer.ask(*(writer.order(void(transaction)) for _ in range(3)))
        (_, commit) = writer.store.commits
        (row,) = (row for row in commit.entities if row.id == transaction)
        assert json.loads(row.document)["voidedAmount"] == 300
        (head,) = commit.heads
        assert head.seq == commit.entries[-1].seq
        assert len(commit.entries) == len(commit.operations) == 3

    run(scenario)


# Once


def test_asking_again_with_the_operation_gives_the_same_answer() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        (first,) = await writer.ask(order)
        before = writer.journal
        (again,) = await writer.ask(order)
        assert again == first
        assert isinstance(again, Done)
        assert not again.is_replay
        assert writer.journal == before

    run(scenario)


@pytest.mark.parametrize("how", ["one after the other", "in one batch", "while it is written"])
def test_a_key_is_one_effect(how: str) -> None:
    async def scenario(writer: Writer) -> None:
        orders = [writer.order(authorise(100), key="k") for _ in range(3)]
        before = writer.journal
        if how == "in one batch":
            answers = await writer.ask(*orders)
        elif how == "while it is written":
            writer.store.disk.clear()
            first = writer.asked(orders[0])
            await quiet()
            others = writer.asked(*orders[1:])
            await quiet()
            writer.store.disk.set()
            answers = [*await first, *await others]
        else:
            answers = [(await writer.ask(order))[0] for order in orders]
        assert writer.journal == before + 1
        (done, *replays) = answers
        assert isinstance(done, Done)
        assert not done.is_replay
        assert replays == [replace(done, is_replay=True)] * 2

    run(scenario)


@pytest.mark.parametrize("is_one_batch", [True, False])
def test_a_key_for_another_request_is_refused(is_one_batch: bool) -> None:
    async def scenario(writer: Writer) -> None:
        first = writer.order(authorise(100), key="k")
        other = writer.order(authorise(200), key="k")
        if is_one_batch:
            _, refused = await writer.ask(first, other)
        else:
            await writer.ask(first)
            (refused,) = await writer.ask(other)
        assert isinstance(refused, Refused)
        assert refused.kind is RefusalKind.KEY_REUSED
        assert other.operation not in writer.tables.operations

    run(scenario)


def test_a_key_belongs_to_an_app_and_a_book() -> None:
    books = Books()
    shop, other = open_shop(books=books), open_shop(books=books)

    async def scenario(writer: Writer) -> None:
        mine = writer.order(authorise(100), key="k")
        theirs = replace(
            mine,
            operation="another",
            book=other.book,
            origin=replace(mine.origin, app=other.app),
        )
        answers = await writer.ask(mine, theirs)
        assert [isinstance(answer, Done) and not answer.is_replay for answer in answers] == [
            True,
            True,
        ]

    run(scenario, shop)


def test_a_refusal_is_not_stored_under_its_key() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        refund = Refund(transaction, 100, "")
        assert isinstance(await writer.do(refund, key="k"), Refused)
        assert isinstance(await writer.do(capture(transaction, 500)), Done)
        answer = await writer.do(refund, key="k")
        assert isinstance(answer, Done)
        assert not answer.is_replay

    run(scenario)


def test_a_late_copy_of_a_refused_order_is_not_done() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        refund = writer.order(Refund(transaction, 100, ""))
        (refused,) = await writer.ask(refund)
        assert isinstance(refused, Refused)
        await writer.do(capture(transaction, 500))
        assert await writer.ask(refund) == [refused]
        assert isinstance(await writer.do(refund.command), Done)

    run(scenario)


# Bounds


def test_a_full_mailbox_turns_away_before_any_effect() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        orders = [writer.order(void(transaction)) for _ in range(5)]
        answers = await writer.ask(*orders)
        assert [type(answer) for answer in answers] == [Done, Done, Busy, Busy, Busy]
        assert writer.shard.figures.turned_away == 3
        # A copy that comes late is told the same.
        assert await writer.ask(orders[4]) == [answers[4]]
        assert orders[4].operation not in writer.tables.operations

    run(scenario, bounds=ShardBounds(mailbox_max=2))


def test_a_copy_of_what_was_done_is_never_told_that_it_was_not() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        await writer.ask(order)
        writer.clock.advance(60)
        assert isinstance((await writer.ask(order))[0], Indefinite)

    run(scenario)


def test_an_expired_order_is_dropped_undecided() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        before = writer.store.calls.total()
        writer.clock.advance(10)
        (answer,) = await writer.ask(order)
        assert isinstance(answer, Busy)
        assert writer.store.calls.total() == before
        assert writer.shard.figures.expired == 1

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


def test_what_is_gone_is_gone_from_memory_too() -> None:
    async def scenario(writer: Writer) -> None:
        answer = await writer.do(AddWebhook("https://example.com/", "sealed"))
        assert isinstance(answer, Done)
        webhook = EntityId(json.loads(answer.body)["webhook"]["id"])
        assert isinstance(await writer.do(RemoveWebhook(webhook)), Done)
        refused = await writer.do(RemoveWebhook(webhook))
        assert isinstance(refused, Refused)
        assert refused.kind is RefusalKind.NOT_FOUND

    run(scenario)


def test_an_entity_of_another_book_is_not_here() -> None:
    books = Books()
    shop, other = open_shop(books=books), open_shop(books=books)
    theirs = other.captured(100)

    async def scenario(writer: Writer) -> None:
        for transaction in (theirs, ABSENT):
            refused = await writer.do(Refund(transaction, 100, ""))
            assert isinstance(refused, Refused)
            assert refused.kind is RefusalKind.NOT_FOUND
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
        assert isinstance((await writer.ask(hopeless))[0], Refused)
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
        older.shard._shelf._entities.discard(transaction)
        order = replace(older.order(void(transaction)), deadline_ms=10**15)
        assert isinstance((await older.ask(order))[0], Indefinite)
        assert [type(end) for end in older.ends] == [Fenced]

    run(scenario)


def test_no_fee_no_difference() -> None:
    """What a shard does is what the machine does: a whole capture, told and stored."""

    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        answer = await writer.do(capture(transaction, 400))
        assert isinstance(answer, Done)
        document = json.loads(answer.body)["transaction"]
        assert (document["pendingAmount"], document["capturedAmount"]) == (600, 400)
        assert json.loads(writer.tables.entities[transaction].document) == document

    run(scenario, open_shop(pricing=FREE))
