"""Orders that no shard can do: refused and told of in the log, and nobody else suffers for them."""

import json
import logging
from dataclasses import replace

import pytest

from tests.support.ledger.books import authorise
from tests.support.ledger.shard import SteeredStore, Writer, authorised, capture, quiet, run
from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.book.machine import OrderEffect, execute
from tollgate.actors.ledger.law.commands import Command, Order
from tollgate.actors.ledger.law.outcomes import (
    Done,
    Indefinite,
    OrderOutcome,
    Refusal,
    RefusalReason,
    TurnedAway,
)
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.shard import batch as speculation
from tollgate.actors.ledger.shard import book_cache
from tollgate.actors.ledger.shard.pipeline import ShardBounds
from tollgate.actors.ledger.storage.store import BrokenCommit, Fenced

POISON = 666


def amount_of(order: Order) -> int:
    return int(getattr(order.command, "amount", 0))


@pytest.fixture
def poisoned_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciding an order of a certain amount breaks an invariant."""

    def broken(
        head: Head | None, entities: Entities, order: Order, now_ms: int
    ) -> OrderEffect | Refusal:
        assert amount_of(order) != POISON, "sums differ"
        return execute(head, entities, order, now_ms)

    monkeypatch.setattr(speculation, "execute", broken)


@pytest.fixture
def unforeseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deciding an order of a certain amount meets a bug that no rule of the books foresaw."""

    def broken(
        head: Head | None, entities: Entities, order: Order, now_ms: int
    ) -> OrderEffect | Refusal:
        if amount_of(order) == POISON:
            raise RecursionError("maximum recursion depth exceeded")
        return execute(head, entities, order, now_ms)

    monkeypatch.setattr(speculation, "execute", broken)


@pytest.fixture
def poisoned_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an order of a certain amount needs cannot even be said."""
    needs = book_cache.needs

    def broken(command: Command, known: Entities) -> set[EntityId]:
        if getattr(command, "amount", 0) == POISON:
            raise ValueError("a bug")
        return needs(command, known)

    monkeypatch.setattr(book_cache, "needs", broken)


@pytest.fixture
def poisoned_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables refuse whatever a certain amount has to do with."""
    append = SteeredStore.append

    async def refusing(self: SteeredStore, commit: Commit) -> None:
        if any(f'"amount":{POISON}' in row.document for row in commit.entities):
            await self.disk.wait()
            raise BrokenCommit("a value no column holds")
        await append(self, commit)

    monkeypatch.setattr(SteeredStore, "append", refusing)


@pytest.fixture
def poisoned(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(request.param)


either = pytest.mark.parametrize(
    "poisoned", ["poisoned_rules", "unforeseen", "poisoned_needs", "poisoned_tables"], indirect=True
)


def is_broken(answer: OrderOutcome) -> bool:
    return isinstance(answer, Refusal) and answer.kind is RefusalReason.BROKEN


@either
@pytest.mark.usefixtures("poisoned")
def test_it_is_refused_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(writer: Writer) -> None:
        before = writer.journal
        order = writer.order(authorise(POISON), key="k")
        (answer,) = await writer.ask(order)
        assert is_broken(answer)
        assert (writer.journal, writer.ends) == (before, [])
        assert order.operation not in writer.tables.operations
        (said,) = [record for record in caplog.records if record.levelno == logging.CRITICAL]
        assert order.operation in said.getMessage()
        assert "Authorise" in said.getMessage()
        assert writer.shard.figures.broken == 1
        # Asked again it gets the same answer, without another try.
        assert await writer.ask(order) == [answer]
        assert writer.shard.figures.broken == 1

    run(scenario)


@either
@pytest.mark.usefixtures("poisoned")
def test_the_next_incarnation_survives_it_too() -> None:
    async def scenario(writer: Writer) -> None:
        order = writer.order(authorise(POISON))
        await writer.ask(order)
        older = await writer.take_over()
        assert is_broken((await writer.ask(order))[0])
        assert (older.ends, writer.ends) == ([], [])
        await authorised(writer)

    run(scenario)


@either
@pytest.mark.usefixtures("poisoned")
def test_the_orders_of_its_batch_are_done_each_once() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer, 10)
        good = [writer.order(capture(transaction, 1)) for _ in range(12)]
        orders = [*good[:4], writer.order(authorise(POISON)), *good[4:]]
        answers = await writer.ask(*orders)
        assert is_broken(answers.pop(4))
        # In the order in which they came; two of them found nothing left.
        kinds = [type(answer) for answer in answers]
        assert kinds == [Done] * 10 + [Refusal] * 2
        captured = [
            json.loads(answer.body)["transaction"]["capturedAmount"]
            for answer in answers
            if isinstance(answer, Done)
        ]
        assert captured == list(range(1, 11))
        assert await writer.ask(*good[:10]) == answers[:10]
        assert writer.ends == []

    run(scenario)


@pytest.mark.usefixtures("poisoned_tables")
def test_what_was_decided_on_a_refused_commit_is_decided_anew() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer, 1)
        writer.store.disk.clear()
        first = writer.asked(writer.order(authorise(POISON)), writer.order(capture(transaction, 1)))
        await quiet()
        # (refused, for all that is known by then)
        second = writer.asked(writer.order(capture(transaction, 1)))
        await quiet()
        writer.store.disk.set()
        broken, done = await first
        assert is_broken(broken)
        assert isinstance(done, Done)
        (refused,) = await second
        assert isinstance(refused, Refusal)
        assert refused.kind is RefusalReason.CONSTRAINT
        await authorised(writer)
        assert writer.ends == []

    run(scenario)


@pytest.mark.usefixtures("poisoned_tables")
def test_what_had_been_told_before_stays_told() -> None:
    """A late copy of an order that was turned away shares a batch with a broken one."""

    async def scenario(writer: Writer) -> None:
        late = writer.order(authorise(5))
        (told,) = await writer.ask(replace(late, time_left_ms=0))
        assert isinstance(told, TurnedAway)
        broken, again = await writer.ask(writer.order(authorise(POISON)), late)
        assert is_broken(broken)
        assert again == told
        assert late.operation not in writer.tables.operations

    run(scenario)


@pytest.mark.usefixtures("poisoned_tables")
def test_afterwards_batches_are_whole_again() -> None:
    async def scenario(writer: Writer) -> None:
        await writer.ask(*(writer.order(authorise(amount)) for amount in (1, POISON, 2)))
        before = writer.store.calls["append"]
        await writer.ask(*(writer.order(authorise(3)) for _ in range(8)))
        assert writer.store.calls["append"] == before + 1

    run(scenario, bounds=ShardBounds(batch_max=8))


@pytest.mark.usefixtures("poisoned_rules")
def test_a_shard_that_was_replaced_blames_nobody() -> None:
    """What breaks there may be the mixture of old and new that it sees."""

    async def scenario(writer: Writer) -> None:
        older = await writer.take_over()
        (answer,) = await older.ask(writer.order(authorise(POISON)))
        assert not is_broken(answer)
        assert [type(end) for end in older.ends] == [Fenced]

    run(scenario)


def test_an_entity_that_cannot_be_read_is_not_taken_for_absent() -> None:
    """What is stored of one transaction is no JSON any more: the others of the batch go on."""

    async def scenario(writer: Writer) -> None:
        spoilt, sound = await authorised(writer), await authorised(writer)
        row = writer.tables.entities[spoilt]
        writer.tables.entities[spoilt] = replace(row, state="{")
        await writer.take_over()
        orders = [capture(spoilt, 1), capture(sound, 1), capture(spoilt, 2)]
        first, done, second = await writer.ask(*map(writer.order, orders))
        assert (is_broken(first), is_broken(second)) == (True, True)
        assert isinstance(done, Done)
        assert writer.ends == []

    run(scenario)


def test_memory_that_has_run_out_is_not_one_orders_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def starved(*_: object) -> OrderEffect | Refusal:
        raise MemoryError

    monkeypatch.setattr(speculation, "execute", starved)

    async def scenario(writer: Writer) -> None:
        (answer,) = await writer.ask(writer.order(authorise(1)))
        assert isinstance(answer, Indefinite)
        assert [type(end) for end in writer.ends] == [MemoryError]

    run(scenario)
