"""The operations actor: totals of all processes, the debug port and the metrics port.

Fronts push what they counted; the config watcher and the counter partitions are asked every second.
A process that is silent or dead costs nothing but its own lines: nothing here waits for it long.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from tollgate.actors.kernel.allocations import finish_tracing, start_tracing
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta
from tollgate.actors.ratelimit.statistics.totals import SOURCE_SILENCE_S, Statistics, Totals
from tollgate.serve.net.listener import Listener, listen
from tollgate.serve.ratelimit.debug.port import DebugPort
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText, metrics_app
from tollgate.serve.settings import Settings
from tollgate.serve.settings.choices import Transport

LOG = logging.getLogger("tollgate.operations")
ASK_EVERY_S = 1.0
ANSWER_WITHIN_S = 0.5
FINISH_WITHIN_S = 30.0
PENDING_CALLS_MAX = 1_000


class ActorAllocations:
    """Traces allocations in other actors' processes, with the interpreter's own tracemalloc."""

    def __init__(self, handles: Mapping[str, Any]) -> None:
        self._handles = handles

    async def start(self, process: str) -> None:
        """Begin tracing. RayError when the process does not answer."""
        await asyncio.wait_for(self._in(process, lambda _: start_tracing()), ANSWER_WITHIN_S)

    async def finish(self, process: str) -> str:
        """Stop tracing; what was allocated since and is still held, by line, most first."""
        report = await asyncio.wait_for(
            self._in(process, lambda _: finish_tracing()), FINISH_WITHIN_S
        )
        return str(report)

    async def _in(self, process: str, function: Callable[[object], str | None]) -> str | None:
        if process not in self._handles:
            return function(None)
        answer: str | None = await self._handles[process].__ray_call__.remote(function)
        return answer


class Operations:
    """`partitions` and `watcher` are actor handles; ports and paths come from the settings."""

    def __init__(
        self, settings: Settings, partitions: Sequence[Any], watcher: Any, clock: Clock
    ) -> None:
        self._settings = settings
        self._partitions = list(partitions)
        self._watcher = watcher
        self._clock = clock
        self._totals = Totals(dynamic_series_max=settings.bounds.dynamic_series_max)
        self._evicted: dict[str, int] = {}
        self._handles: dict[str, Any] = {
            "watcher": watcher,
            **{f"partition-{number}": handle for number, handle in enumerate(partitions)},
        }
        self._processes: dict[str, tuple[int, float]] = {}
        self._listeners: dict[str, Listener] = {}
        self._beginning = asyncio.Lock()

    async def absorb(self, delta: StatisticsDelta, pid: int, handle: Any) -> None:
        """Add what a front counted; it also says that the front is there, and how to reach it."""
        await self.begin()
        self._note(delta.source, pid)
        self._handles[delta.source] = handle
        self._totals.absorb(delta, self._clock.monotonic_s())

    async def begin(self) -> dict[str, str]:
        """Listen, if not done yet: name of each port to its address. OSError if one is taken."""
        async with self._beginning:
            if not self._listeners:
                await self._listen()
                self._asking = asyncio.create_task(self._ask_for_ever(), name="asking")
        return {name: f"{each.host}:{each.port}" for name, each in self._listeners.items()}

    async def end(self) -> None:
        """Free the ports."""
        for listener in self._listeners.values():
            await listener.stop()

    async def _listen(self) -> None:
        settings = self._settings
        debug = DebugPort(
            statistics=self.statistics,
            dump_rules=self._dump_rules,
            processes=self._pids,
            allocations=ActorAllocations(self._handles),
        )
        self._listeners["debug"] = await listen(
            debug.app(), settings.debug.host, settings.debug.port, what="the debug port"
        )
        statistics = settings.statistics
        if statistics.transport is Transport.PULLMETRICS:
            text = MetricsText(
                dict(statistics.extra_tags), has_milliseconds=statistics.is_response_time_in_ms
            )
            self._listeners["metrics"] = await listen(
                metrics_app(text, self.statistics, statistics.pullmetrics_path),
                statistics.pullmetrics_addr.host,
                statistics.pullmetrics_addr.port,
                what="the metrics port",
            )

    async def statistics(self) -> Statistics:
        """All totals at this moment; loads of rules are asked for first."""
        await self._ask_watcher()
        return self._totals.statistics()

    async def _dump_rules(self) -> str:
        return str(await asyncio.wait_for(self._watcher.dump.remote(), ANSWER_WITHIN_S))

    async def _pids(self) -> Mapping[str, int]:
        alive_since_s = self._clock.monotonic_s() - SOURCE_SILENCE_S
        pids = {
            name: pid
            for name, (pid, heard_s) in sorted(self._processes.items())
            if heard_s >= alive_since_s
        }
        return {**pids, "operations": os.getpid()}

    async def _ask_for_ever(self) -> None:
        while True:
            await asyncio.gather(
                self._ask_watcher(), *map(self._ask_partition, range(len(self._partitions)))
            )
            await asyncio.sleep(ASK_EVERY_S)

    async def _ask_watcher(self) -> None:
        delta = await self._answer(self._watcher.drain_statistics.remote())
        if delta is not None:
            self._totals.absorb(delta, self._clock.monotonic_s())
        described = await self._answer(self._watcher.describe.remote())
        if described is not None:
            self._note("watcher", described["pid"])

    async def _ask_partition(self, number: int) -> None:
        described = await self._answer(self._partitions[number].describe.remote())
        if described is None:
            return
        name = f"partition-{number}"
        self._note(name, described["pid"])
        evicted = described["evicted"]
        # A partition that was restarted counts from zero again.
        before = self._evicted.get(name, 0)
        self._evicted[name] = evicted
        self._totals.absorb(
            StatisticsDelta(
                source=name,
                counts={"ratelimit.counters.evicted": max(0, evicted - before)},
                gauges={"ratelimit.counters.entries": described["counters"]},
            ),
            self._clock.monotonic_s(),
        )

    async def _answer(self, call: Any) -> Any:
        """What the call brings; None when the process is away or slow, as its lines will show."""
        try:
            return await asyncio.wait_for(call, ANSWER_WITHIN_S)
        except (RayError, TimeoutError) as error:
            LOG.debug("no answer for the statistics: %s", type(error).__name__)
            return None

    def _note(self, name: str, pid: int) -> None:
        self._processes[name] = (pid, self._clock.monotonic_s())


def start_operations(name: str, namespace: str, *arguments: object) -> Any:
    """Create the named actor, or find it."""
    return (
        ray.remote(Operations)
        .options(
            name=name,
            namespace=namespace,
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,
            max_task_retries=0,
            max_pending_calls=PENDING_CALLS_MAX,
            num_cpus=0,
            enable_task_events=False,
        )
        .remote(*arguments)
    )
