"""Shards that are asked what they do: some say nothing, and the others are heard all the same."""

import asyncio
from typing import Any

from tollgate.actors.ledger.shard.client import NotSent, Unanswered
from tollgate.actors.ledger.shard.figures import ShardReport
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta, Tallies
from tollgate.serve.payments.telemetry.shard_reports import SILENCES, ShardReports


class Asked:
    def __init__(self, name: str, failure: Exception | None = None) -> None:
        self.name = name
        self.failure = failure

    async def report(self) -> tuple[ShardReport, Any]:
        if self.failure is not None:
            raise self.failure
        return ShardReport(self.name, 17, 3), f"handle of {self.name}"


def test_those_that_answer_are_heard_and_silences_are_counted() -> None:
    heard: list[tuple[Any, int, StatisticsDelta]] = []
    tallies = Tallies("payments-1")
    shards = [
        Asked("one"),
        Asked("two", Unanswered("hangs")),
        Asked("three", NotSent("waits")),
        Asked("four", RuntimeError("what nobody foresaw")),
        Asked("five"),
    ]
    reports = ShardReports(shards, tallies, lambda *told: heard.append(told))
    assert tallies.drain().counts == {SILENCES: 0}
    asyncio.run(reports.ask())
    assert [(handle, pid, delta.source) for handle, pid, delta in heard] == [
        ("handle of one", 17, "one"),
        ("handle of five", 17, "five"),
    ]
    assert tallies.drain().counts == {SILENCES: 2}


def test_without_statistics_shards_are_looked_after_all_the_same() -> None:
    tallies = Tallies("payments-1")
    asyncio.run(ShardReports([Asked("one", Unanswered("hangs"))], tallies, None).ask())
    assert tallies.drain().counts == {SILENCES: 1}
