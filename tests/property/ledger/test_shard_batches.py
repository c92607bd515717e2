"""However orders are batched and interleaved: the same books, one effect per key, equal answers."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.support.ledger.books import Shop, authorise, open_shop
from tests.support.ledger.shard import Writer, run
from tollgate.actors.ledger.law.commands import Capture, Command, Order, Refund, Void
from tollgate.actors.ledger.law.outcomes import Done, OrderOutcome, Refusal
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.shard.pipeline import ShardBounds

AMOUNTS = st.sampled_from((1, 30, 50, 100))
KINDS = st.sampled_from(("capture", "refund", "void", "authorise"))
KEYS = st.sampled_from(("", "", "a", "b"))
WISHES = st.tuples(KINDS, st.integers(0, 1), AMOUNTS, KEYS)
TIGHT = ShardBounds(batch_max=3, books_max=1, entities_max=1)


def shop_with_two() -> tuple[Shop, list[EntityId]]:
    shop = open_shop()
    return shop, [shop.authorised(100), shop.captured(100)]


def command(transactions: Sequence[EntityId], kind: str, which: int, amount: int) -> Command:
    match kind:
        case "capture":
            return Capture(transactions[which], amount, None, "", None, None)
        case "refund":
            return Refund(transactions[which], amount, "")
        case "void":
            return Void(transactions[which], amount)
        case _:
            return authorise(amount)


def orders(
    writer: Writer, transactions: Sequence[EntityId], wishes: Sequence[tuple[str, int, int, str]]
) -> list[Order]:
    return [
        replace(
            writer.order(command(transactions, kind, which, amount), key=key),
            operation=f"operation {number}",
        )
        for number, (kind, which, amount, key) in enumerate(wishes)
    ]


def hashes(writer: Writer) -> list[str]:
    """The chain of the shop's book, which holds all there is to know of it."""
    return [entry.hash for entry in writer.tables.entries[writer.shop.book]]


@given(wishes=st.lists(WISHES, max_size=12), cuts=st.lists(st.integers(1, 6), max_size=12))
def test_batches_are_orders_one_by_one(
    wishes: list[tuple[str, int, int, str]], cuts: list[int]
) -> None:
    results: list[tuple[list[OrderOutcome], list[str]]] = []
    for sizes, bounds in (([1] * len(wishes), ShardBounds()), (cuts, TIGHT), ([], ShardBounds())):
        shop, transactions = shop_with_two()

        async def scenario(
            writer: Writer,
            transactions: list[EntityId] = transactions,
            sizes: list[int] = sizes,
        ) -> None:
            left = orders(writer, transactions, wishes)
            answers: list[OrderOutcome] = []
            for size in (*sizes, len(left)):
                answers += await writer.ask(*left[:size])
                left = left[size:]
            results.append((answers, hashes(writer)))

        run(scenario, shop, bounds)
    first, *others = results
    assert others == [first] * 2


@given(
    wishes=st.lists(WISHES, min_size=2, max_size=10),
    waits=st.lists(st.integers(0, 3), min_size=10, max_size=10),
    again=st.lists(st.integers(0, 9), max_size=6),
)
def test_any_interleaving_is_one_effect_per_key_and_operation(
    wishes: list[tuple[str, int, int, str]], waits: list[int], again: list[int]
) -> None:
    shop, transactions = shop_with_two()

    async def scenario(writer: Writer) -> None:
        given_orders = orders(writer, transactions, wishes)
        sent = given_orders + [given_orders[i % len(given_orders)] for i in again]
        asked = []
        for number, each in enumerate(sent):
            asked.append(writer.asked(each))
            for _ in range(waits[number % len(waits)]):
                await asyncio.sleep(0)
            # Now and then the disk is slow, so that batches overlap.
            (writer.store.disk.set if number % 3 else writer.store.disk.clear)()
        writer.store.disk.set()
        answers = [(await task)[0] for task in asked]
        _check(writer, sent, answers)

    run(scenario, shop, TIGHT)


def _check(writer: Writer, sent: Sequence[Order], answers: Sequence[OrderOutcome]) -> None:
    by_request: dict[tuple[str, str], set[tuple[int, bytes]]] = {}
    by_operation: dict[str, set[type[OrderOutcome]]] = {}
    for order, answer in zip(sent, answers, strict=True):
        assert isinstance(answer, Done | Refusal)
        by_operation.setdefault(order.operation, set()).add(type(answer))
        if isinstance(answer, Done):
            request = (order.idempotency_key or order.operation, order.fingerprint)
            by_request.setdefault(request, set()).add((answer.kind, answer.body))
    assert all(len(bodies) == 1 for bodies in by_request.values()), "byte for byte"
    # A key that a refusal left free may do it later; of an operation, what was told stays.
    assert all(len(kinds) == 1 for kinds in by_operation.values()), "told once, told for ever"
    keys = [row.key for row in writer.tables.operations.values() if row.key]
    assert len(keys) == len(set(keys)), "one effect per key"
    done = {entry.operation for entry in writer.tables.entries[writer.shop.book]}
    assert {o.operation for o in sent} & done == set(writer.tables.operations)


@given(callers=st.integers(2, 20), batch=st.integers(1, 5))
def test_of_many_full_captures_one_is_done(callers: int, batch: int) -> None:
    shop = open_shop()
    transaction = shop.authorised(100)

    async def scenario(writer: Writer) -> None:
        whole = Capture(transaction, 100, None, "", None, None)
        asked = [writer.asked(writer.order(whole)) for _ in range(callers)]
        answers = [(await task)[0] for task in asked]
        assert sum(isinstance(answer, Done) for answer in answers) == 1
        document = json.loads(writer.tables.entities[transaction].document)
        assert document["capturedAmount"] == 100

    run(scenario, shop, ShardBounds(batch_max=batch))
