"""Shards that hang, seem to hang, or are of another release: who is replaced, and by whom."""

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from tests.support.ledger.actors import ANSWERS_WITHIN_S, Desk, start_ledger
from tests.support.ledger.books import authorise
from tests.support.waiting import until
from tollgate.actors.ledger.law.outcomes import Done, OrderOutcome
from tollgate.actors.ledger.shard.actor import RayShardConnection, start_shard
from tollgate.actors.ledger.shard.client import Unanswered
from tollgate.actors.ledger.storage.migration import open_database


def test_a_shard_that_hangs_is_replaced_by_its_clients(
    desk: Desk, end_after: Callable[[Any], Any]
) -> None:
    before = ray.get(desk.ledger.handle.describe.remote())
    clients = [desk.ledger.client() for _ in range(2)]
    orders = [desk.order(authorise(1 + number)) for number in range(2)]
    os.kill(before["pid"], signal.SIGSTOP)

    async def ask() -> list[list[OrderOutcome]]:
        asked = zip(clients, orders, strict=True)
        return await asyncio.gather(*(client.execute([order]) for client, order in asked))

    answers = asyncio.run(ask())
    successor = ray.get_actor(desk.ledger.spec.actor_name, desk.ledger.namespace)
    end_after(successor)
    assert [type(answer) for (answer,) in answers] == [Done] * 2
    after: dict[str, Any] = ray.get(successor.describe.remote())
    assert after["epoch"] > before["epoch"]
    assert after["pid"] != before["pid"]
    until(lambda: not psutil.pid_exists(before["pid"]), "a shard that hung ends, stopped or not")
    audited = desk.audit()
    assert all(len(audited.operations[order.operation]) == 1 for order in orders)


def test_a_shard_that_hangs_is_replaced_though_nobody_has_an_order_for_it(
    desk: Desk, end_after: Callable[[Any], Any]
) -> None:
    before = ray.get(desk.ledger.handle.describe.remote())
    os.kill(before["pid"], signal.SIGSTOP)
    find = partial(start_shard, desk.ledger.spec, desk.ledger.namespace)
    impatient = RayShardConnection(find, desk.ledger.handle, 1.0)
    with pytest.raises(Unanswered):
        asyncio.run(impatient.report())
    successor = ray.get_actor(desk.ledger.spec.actor_name, desk.ledger.namespace)
    end_after(successor)
    after: dict[str, Any] = ray.get(successor.describe.remote())
    assert after["epoch"] > before["epoch"]
    report = ray.get(successor.report.remote())
    assert (report.pid, report.epoch) == (after["pid"], after["epoch"])


def test_a_shard_whose_storage_is_slow_is_not_replaced(desk: Desk) -> None:
    """Its process answers: another one would wait for the same storage."""
    before = ray.get(desk.ledger.handle.describe.remote())
    order = desk.order(authorise(1))
    client = desk.ledger.client()

    async def ask() -> OrderOutcome:
        database = await open_database(desk.ledger.url)
        writer = await database.writing()
        await writer.run("BEGIN IMMEDIATE")
        asked = asyncio.create_task(client.execute([order]))
        # (longer than a call and a ping)
        done, _ = await asyncio.wait([asked], timeout=1.5 * ANSWERS_WITHIN_S)
        assert not done
        await writer.roll_back()
        await writer.close()
        await database.close()
        (answer,) = await asked
        return answer

    assert isinstance(asyncio.run(ask()), Done)
    after = ray.get(desk.ledger.handle.describe.remote())
    assert (after["pid"], after["epoch"]) == (before["pid"], before["epoch"])


def test_a_shard_of_another_release_is_ended_and_not_used(
    request: pytest.FixtureRequest, tmp_path: Path, desk: Desk, end_after: Callable[[Any], Any]
) -> None:
    older = ray.get(desk.ledger.handle.describe.remote())
    newer = start_ledger(tmp_path, request.node.name, release="another")
    end_after(newer.handle)
    described = ray.get(newer.handle.describe.remote())
    assert described["name"] == older["name"]
    assert described["epoch"] == older["epoch"] + 1
    until(lambda: not psutil.pid_exists(older["pid"]), "a shard of another release ends")
    with pytest.raises(ValueError, match="Failed to look up actor"):
        ray.get_actor(desk.ledger.spec.actor_name, request.node.name)
