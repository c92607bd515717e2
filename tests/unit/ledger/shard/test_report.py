"""What a shard tells of itself: orders by what became of them, and its commits."""

from dataclasses import replace

from tests.support.ledger.books import ABSENT, authorise
from tests.support.ledger.shard import Writer, authorised, run, void
from tollgate.actors.ledger.law.commands import Void
from tollgate.actors.ledger.law.outcomes import Done, DoneKind, Indefinite, TurnedAway
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.shard.figures import became
from tollgate.actors.ledger.shard.pipeline import ShardBounds


def test_orders_are_counted_by_what_became_of_them() -> None:
    async def scenario(writer: Writer) -> None:
        transaction = await authorised(writer)
        writer.shard.tally.take()
        first = replace(writer.order(void(transaction)), idempotency_key="key")
        again = replace(first, operation="another")
        await writer.ask(first)
        await writer.ask(again, first)
        await writer.ask(writer.order(Void(EntityId(ABSENT), 1)))
        commands, times, orders = writer.shard.tally.take()
        assert commands == {
            ("Void", "done"): 1,
            ("Void", "replayed"): 1,
            ("Void", "repeated"): 1,
            ("Void", "not_found"): 1,
        }
        assert times.count == orders.count == 3
        assert round(1_000 * orders.sum_s) == 4
        # What was taken is not told again.
        commands, times, orders = writer.shard.tally.take()
        assert (commands, times.count, orders.count) == ({}, 0, 0)

    run(scenario)


def test_orders_that_find_no_room_are_counted() -> None:
    async def scenario(writer: Writer) -> None:
        await writer.ask(*(writer.order(authorise(100)) for _ in range(3)))
        commands, *_ = writer.shard.tally.take()
        assert commands[("Authorise", "turned_away")] == 1

    run(scenario, bounds=ShardBounds(mailbox_max=2))


def test_every_outcome_has_a_word() -> None:
    assert became(TurnedAway(1)) == "turned_away"
    assert became(Indefinite("")) == "indefinite"
    assert {became(Done(kind, b"")) for kind in DoneKind} == {
        "done",
        "attempt_failed",
    }
