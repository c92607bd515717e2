"""Asks ledger shards what they have done, and hands it on as statistics of theirs.

A shard that hangs is noticed by that, and replaced, also when nobody has an order for it. Several
processes may ask: what a shard has counted it tells once, and its gauges stand under its own name.
What is told and gets lost on its way is not counted.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tollgate.actors.ledger.shard.client import NotSent, Unanswered
from tollgate.actors.ledger.shard.figures import ShardReport
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta, Tallies

LOG = logging.getLogger("tollgate.payments")
COMMANDS = "payments.commands"
COMMIT_TIMES, COMMIT_ORDERS = "payments.commit.duration", "payments.commit.orders"
SILENCES = "payments.shard.silences"

# Hands statistics of a process on: its handle, its pid, what it counted.
SendOf = Callable[[Any, int, StatisticsDelta], object]


class AskedShard(Protocol):
    """A shard, as it is asked from here."""

    async def report(self) -> tuple[ShardReport, Any]:
        """What it has done since it was asked, and its handle. Raises Unanswered, NotSent."""


class ShardReports:
    """`send` None: nobody wants statistics, and shards are only looked after."""

    def __init__(self, shards: Sequence[AskedShard], tallies: Tallies, send: SendOf | None) -> None:
        self._shards = shards
        self._tallies = tallies
        self._send = send
        tallies.count(SILENCES, 0)  # shown before it first happens

    async def ask(self) -> None:
        """All of them, once; each may take its time."""
        asked = (self._ask(shard) for shard in self._shards)
        for failure in await asyncio.gather(*asked, return_exceptions=True):
            if failure is not None:
                LOG.error("a ledger shard could not be asked for its report", exc_info=failure)

    async def _ask(self, shard: AskedShard) -> None:
        try:
            report, handle = await shard.report()
        except (Unanswered, NotSent) as error:
            self._tallies.count(SILENCES)
            LOG.warning("a ledger shard says nothing of itself: %s", error)
            return
        if self._send is not None:
            self._send(handle, report.pid, statistics_of(report))


def statistics_of(report: ShardReport) -> StatisticsDelta:
    """A report by the names of statistics."""
    of_shard = f".__shard={report.name}"
    times = {COMMIT_TIMES: report.commit_times, COMMIT_ORDERS: report.commit_orders}
    gauges = {
        "payments.shard.epoch": report.epoch,
        "payments.shard.is_taken_over": int(report.epoch > 0),
        "payments.shard.takeover_seconds": report.takeover_s,
        "payments.shard.mailbox_depth": report.waiting,
        "payments.shard.books": report.books,
        "payments.shard.cached_bytes": report.cached_bytes,
    }
    return StatisticsDelta(
        source=report.name,
        counts={
            f"{COMMANDS}.__command={command}.__outcome={outcome}": number
            for (command, outcome), number in report.commands.items()
        },
        gauges={f"{name}{of_shard}": value for name, value in gauges.items()},
        latencies={name: taken for name, taken in times.items() if taken and taken.count},
    )
