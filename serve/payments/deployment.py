"""The payments API as a Ray Serve deployment: one replica is one process that answers calls.

Beside the calls it takes events to webhooks, asks card networks for outcomes that it does not know,
sends letters that wait, writes down when keys were used, reads exchange rates again when their file
has changed, and hands on what its limits have counted. Several replicas share all of that by leases
and by adding up; none of them owns anything.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import FastAPI
from ray import get_runtime_context
from ray import serve as ray_serve

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.operations.actor import send_statistics
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta, StatisticsReporter
from tollgate.serve.net.listener import Listener, listen
from tollgate.serve.node.logs import configure_logs
from tollgate.serve.node.replica_health import HEARD_WITHIN_S, REPLICA_OPTIONS, leave_at_once
from tollgate.serve.payments.reference.exchange_rates import RATES_AGE, rates_age_s
from tollgate.serve.payments.telemetry.shard_reports import ShardReports
from tollgate.serve.payments.upkeep import Upkeep
from tollgate.serve.payments.wiring import PaymentsParts, payments_parts
from tollgate.serve.ratelimit.wiring import rate_limit_actors
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Transport

LOG = logging.getLogger("tollgate.payments")
ROUTE_PREFIX = "/payments"
ONGOING_REQUESTS_MAX = 4_096
HAND_ON_EVERY_S = 0.5
ASK_SHARDS_EVERY_S = 1.0
WRITE_USES_EVERY_S = 30.0
SEND_LETTERS_EVERY_S = 60.0
LOOK_FOR_RATES_EVERY_S = 5.0
LOOK_AT_COUNTS_EVERY_S = 5.0
LOOK_AT_BOOKS_EVERY_S = 15.0


@ray_serve.deployment(
    name="Payments",
    max_ongoing_requests=ONGOING_REQUESTS_MAX,
    graceful_shutdown_timeout_s=HEARD_WITHIN_S + 10,
    **REPLICA_OPTIONS,
)
@ray_serve.ingress()
class Payments:
    """One process of the API."""

    async def __init__(  # type: ignore[misc]  # (Serve awaits it)
        self, settings: Settings, run: str
    ) -> None:
        configure_logs(settings)
        self._settings, self._is_ending = settings, False
        self._actors = await asyncio.to_thread(rate_limit_actors, settings, run)
        self._parts: PaymentsParts = await payments_parts(settings, self._actors)
        self._reporter = self._statistics_reporter()
        self._shard_reports = self._asked_shards()
        self._operator = await self._listen_for_the_operator()
        self._work: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        for work in (
            self._parts.delivery_worker.run(),
            self._parts.enquiries.run(),
            _every(HAND_ON_EVERY_S, self._hand_on),
            _every(ASK_SHARDS_EVERY_S, self._ask_shards),
            _every(WRITE_USES_EVERY_S, self._write_uses),
            _every(SEND_LETTERS_EVERY_S, self._send_letters),
            _every(LOOK_FOR_RATES_EVERY_S, self._renew_rates),
            _every(LOOK_AT_COUNTS_EVERY_S, self._look_at_counts),
            _every(LOOK_AT_BOOKS_EVERY_S, self._parts.books_gauges.look),
            _keep_up(self._parts.upkeep, settings.ledger.upkeep_interval_s),
        ):
            self._work.append(loop.create_task(work))
        if self._parts.tracing is not None:
            self._parts.tracing.spans.start()
        spare_what_is_there()

    def _statistics_reporter(self) -> StatisticsReporter | None:
        if self._settings.statistics.transport is Transport.DISABLED:
            return None
        me = get_runtime_context().current_actor
        send = partial(send_statistics, self._actors.operations, os.getpid(), me)
        return StatisticsReporter(self._parts.tallies, send)

    def _asked_shards(self) -> ShardReports:
        def send(shard: Any, pid: int, delta: StatisticsDelta) -> None:
            send_statistics(self._actors.operations, pid, shard, delta)

        is_off = self._settings.statistics.transport is Transport.DISABLED
        return ShardReports(self._parts.shards, self._parts.tallies, None if is_off else send)

    async def _listen_for_the_operator(self) -> Listener | None:
        """Every process on the same port: whichever takes a call answers it."""
        app, own = self._parts.operator_app, self._settings.payments
        if app is None:
            return None
        return await listen(
            app, own.operator_host, own.operator_port, what="the operator's calls", is_shared=True
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        return self._parts.app

    async def check_health(self) -> None:
        """Raises when work beside the calls has ended, which it never does by itself."""
        for task in self._work:
            if task.done():
                task.result()

    async def expect_end(self) -> None:
        """The node stops: who is silent from now on does not hang."""
        self._is_ending = True
        leave_at_once()

    async def __del__(self) -> None:
        if self._operator is not None:
            await self._operator.stop()
        self._parts.delivery_worker.stop()
        worker, *others = self._work
        for task in others:
            task.cancel()
        await asyncio.wait([worker])
        await self._write_uses()
        if self._parts.tracing is not None:
            await asyncio.to_thread(self._parts.tracing.spans.stop)
        if self._parts.shared_counts is not None:
            await self._parts.shared_counts.close()
        await self._parts.sender.close()
        for gateway in self._parts.gateways:
            await gateway.close()
        await self._parts.database.close()

    async def _hand_on(self) -> None:
        if self._parts.tracing is not None:
            self._parts.tracing.spans.tend()
        if self._reporter is None:
            self._parts.tallies.drain()
        else:
            self._reporter.report()

    async def _ask_shards(self) -> None:
        if not self._is_ending:
            await self._shard_reports.ask()

    async def _write_uses(self) -> None:
        try:
            await self._parts.key_uses.write_down()
        except StorageError as error:
            LOG.warning("%s", error)

    async def _look_at_counts(self) -> None:
        if self._parts.shared_counts is not None:
            await self._parts.shared_counts.look()

    async def _renew_rates(self) -> None:
        """And tells their age. The vault's keys are looked at with them."""
        self._parts.vault_keys.reload()
        rates, now_ms = self._parts.rates, int(SystemClock().now_s() * 1000)
        rates.reload()
        self._parts.tallies.gauge(RATES_AGE, rates_age_s(rates, now_ms))

    async def _send_letters(self) -> None:
        if sent := await self._parts.post.send_waiting():
            LOG.warning("%d letters that had waited were sent", sent)


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await work()
        await asyncio.sleep(seconds)


async def _keep_up(upkeep: Upkeep, interval_s: float) -> None:
    """Not at the start, when there is enough to do."""
    while True:
        await asyncio.sleep(interval_s)
        await upkeep.run()


def application(settings: Settings, run: str) -> ray_serve.Application:
    """The application of one run."""
    payments = Payments.options(  # type: ignore[attr-defined]
        num_replicas=settings.payments.replicas
    )
    door: ray_serve.Application = payments.bind(settings, run)
    return door
