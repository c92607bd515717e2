"""The ledger's shards as real processes: killed under load, stopped and replaced, crowded."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from tests.integration.conftest import kill, pid_of
from tests.support.ledger.actors import Desk, Ledger, start_ledger
from tests.support.ledger.books import authorise
from tests.support.waiting import until
from tollgate.actors.ledger.law.commands import Capture, Order
from tollgate.actors.ledger.law.outcomes import Done, Indefinite, OrderOutcome, Refusal
from tollgate.actors.ledger.shard.call_format import VERSION, OrdersRefused, answers_of, call_of
from tollgate.actors.ledger.shard.client import Unanswered

CALLERS = 100
UNDER_LOAD = 600


def test_a_killed_shard_loses_and_doubles_nothing(desk: Desk) -> None:
    orders = [desk.order(authorise(100 + number)) for number in range(UNDER_LOAD)]
    client = desk.ledger.client()

    async def under_fire() -> list[OrderOutcome]:
        told = 0
        killed: list[int] = []

        async def ask(order: Order) -> OrderOutcome:
            nonlocal told
            (answer,) = await client.execute([order])
            told += 1
            if told in (UNDER_LOAD // 4, UNDER_LOAD // 2):
                killed.append(await asyncio.to_thread(kill, desk.ledger.handle))
            return answer

        places = asyncio.Semaphore(50)

        async def in_turn(order: Order) -> OrderOutcome:
            async with places:
                return await ask(order)

        answers = await asyncio.gather(*(in_turn(order) for order in orders))
        assert len(set(killed)) == 2
        return list(answers)

    answers = asyncio.run(under_fire())
    assert [type(answer) for answer in answers] == [Done] * UNDER_LOAD
    audited = desk.audit()
    assert len(audited.transactions) == UNDER_LOAD
    assert all(len(audited.operations[order.operation]) == 1 for order in orders)
    ids = {json.loads(a.body)["transaction"]["id"] for a in answers if isinstance(a, Done)}
    assert ids == set(audited.transactions)
    assert desk.give(*orders[:100]) == answers[:100]


def test_a_stopped_shard_that_was_replaced_never_commits(
    request: pytest.FixtureRequest, tmp_path: Path, desk: Desk, end_after: Callable[[Any], Any]
) -> None:
    older, pid = desk.ledger, pid_of(desk.ledger.handle)
    only_for_the_older, for_both = desk.order(authorise(1)), desk.order(authorise(2))
    os.kill(pid, signal.SIGSTOP)
    try:
        newer = start_ledger(tmp_path, f"{request.node.name}, newer")
        end_after(newer.handle)

        async def meanwhile() -> tuple[object, object]:
            to_older = [
                asyncio.create_task(_told_by(older, order))
                for order in (only_for_the_older, for_both)
            ]
            await asyncio.sleep(0)
            done = await newer.client().execute([for_both])
            os.kill(pid, signal.SIGCONT)
            return done, [await task for task in to_older]

        done, told_by_older = asyncio.run(meanwhile())
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert isinstance(done, list)
    assert isinstance(done[0], Done)
    assert told_by_older == ["nothing"] * 2
    until(lambda: not psutil.pid_exists(pid), "a shard that was replaced ends its process")
    audited = desk.audit()
    assert only_for_the_older.operation not in audited.operations
    assert len(audited.operations[for_both.operation]) == 1


async def _told_by(ledger: Ledger, order: Order) -> str:
    """What an incarnation itself says, without asking again."""
    try:
        (answer,) = await ledger.line().call([order])
    except Unanswered:
        return "nothing"
    return "nothing" if isinstance(answer, Indefinite) else f"{answer}"


def test_of_a_hundred_full_captures_one_is_done(desk: Desk) -> None:
    transaction = desk.authorised(1_000)
    whole = Capture(transaction, 1_000, None, "", None, None)
    answers = desk.give(*(desk.order(whole) for _ in range(CALLERS)))
    assert sum(isinstance(answer, Done) for answer in answers) == 1
    assert sum(isinstance(answer, Refusal) for answer in answers) == CALLERS - 1
    assert desk.audit().transactions[transaction].captured == 1_000


def test_a_hundred_orders_with_one_key_are_one_effect(desk: Desk) -> None:
    orders = [desk.order(authorise(500), key="one key") for _ in range(CALLERS)]
    answers = desk.give(*orders)
    bodies = {(a.kind, a.body) for a in answers if isinstance(a, Done)}
    assert len(bodies) == 1
    assert sum(isinstance(a, Done) and not a.is_replay for a in answers) == 1
    assert sum(isinstance(a, Done) and a.is_replay for a in answers) == CALLERS - 1
    assert len(desk.audit().transactions) == 1


def test_every_incarnation_has_an_epoch_of_its_own(desk: Desk) -> None:
    before = ray.get(desk.ledger.handle.describe.remote())
    kill(desk.ledger.handle)
    desk.authorised(100)
    after = ray.get(desk.ledger.handle.describe.remote())
    assert after["epoch"] == before["epoch"] + 1
    assert after["pid"] != before["pid"]


def test_orders_of_another_release_are_refused_and_the_shard_goes_on(desk: Desk) -> None:
    before = ray.get(desk.ledger.handle.describe.remote())
    order = desk.order(authorise(100))
    call = b"\0\0\0\1" + call_of([order])[4:]
    reply = ray.get(desk.ledger.handle.execute.remote(call))
    with pytest.raises(OrdersRefused, match=f"takes orders of version {VERSION.hex()}"):
        answers_of(reply)
    after = ray.get(desk.ledger.handle.describe.remote())
    assert (after["pid"], after["orders"]) == (before["pid"], before["orders"])
    assert [type(answer) for answer in desk.give(order)] == [Done]


def test_a_shard_that_was_removed_is_found_again(desk: Desk) -> None:
    """For good, as an operator would: the clients' handles are of no use any more."""
    client = desk.ledger.client()
    order = desk.order(authorise(100))

    async def ask() -> list[OrderOutcome]:
        ray.kill(desk.ledger.handle)
        return await client.execute([order])

    (answer,) = asyncio.run(ask())
    assert isinstance(answer, Done)
    ray.kill(ray.get_actor(desk.ledger.spec.actor_name, desk.ledger.namespace))


def test_a_call_that_is_none_disturbs_nobody(desk: Desk) -> None:
    with pytest.raises(OrdersRefused):
        answers_of(ray.get(desk.ledger.handle.execute.remote(b"not orders")))
    assert isinstance(desk.give(desk.order(authorise(100)))[0], Done)
