"""The shard: durable before told, and once."""

import json
from dataclasses import replace

import pytest

from tests.support.ledger.books import FREE, Books, authorise, open_shop
from tests.support.ledger.shard import Writer, authorised, capture, quiet, run, void
from tollgate.actors.ledger.law.commands import Import, Refund
from tollgate.actors.ledger.law.outcomes import Done, Refusal, RefusalReason
from tollgate.actors.ledger.law.values import OPERATOR, EntityId
from tollgate.actors.ledger.shard.pipeline import ShardBounds

# Durable, then told


def test_what_is_told_is_durable() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(100))
        (answer,) = await writer.ask(order)
        assert isinstance(answer, Done)
        stored = writer.tables.operations[order.operation]
        assert (answer.kind, answer.body) == (stored.done, stored.body)

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
        assert isinstance(refused, Refusal)
        assert refused.kind is RefusalReason.CONSTRAINT

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


@pytest.mark.parametrize("how", ["one after the other", "in one batch", "while it is written"])
def test_a_line_is_imported_once(how: str) -> None:
    line = EntityId("560fd97a7973ff3d2362a78d")

    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        first, second = (
            writer.order(Import(capture(transaction, 100), line), OPERATOR) for _ in range(2)
        )
        if how == "in one batch":
            done, refused = await writer.ask(first, second)
        elif how == "while it is written":
            writer.store.disk.clear()
            asked = writer.asked(first)
            await quiet()
            asked_again = writer.asked(second)
            await quiet()
            writer.store.disk.set()
            (done,), (refused,) = await asked, await asked_again
        else:
            (done,), (refused,) = await writer.ask(first), await writer.ask(second)
        assert isinstance(done, Done)
        assert isinstance(refused, Refusal)
        assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "id")

    run(scenario)


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
        assert isinstance(refused, Refusal)
        assert refused.kind is RefusalReason.KEY_REUSED
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
        assert isinstance(await writer.do(refund, key="k"), Refusal)
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
        assert isinstance(refused, Refusal)
        await writer.do(capture(transaction, 500))
        assert await writer.ask(refund) == [refused]
        assert isinstance(await writer.do(refund.command), Done)

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
