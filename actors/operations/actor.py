"""The operations actor: keeps the totals of all processes, and opens the ports that show them.

Fronts push what they counted; the config watcher and the counter partitions are asked every second.
A process that is silent or dead costs nothing but its own lines: nothing here waits for it long.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from ray.exceptions import RayError

from tollgate.actors.kernel.actor import named_actor
from tollgate.actors.kernel.allocations import finish_tracing, start_tracing
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.operations.process_totals import ProcessTotals
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta
from tollgate.actors.ratelimit.statistics.totals import Statistics

LOG = logging.getLogger("tollgate.operations")
ASK_EVERY_S = 1.0
ANSWER_WITHIN_S = 0.5
FINISH_WITHIN_S = 30.0
PENDING_CALLS_MAX = 1_000


class OpenPort(Protocol):
    """A listening port of this process."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    async def stop(self) -> None: ...


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
    """`partitions` and `watcher` are actor handles. `open_ports` serves pages from this actor's
    public methods; it is called once, in this actor's event loop."""

    def __init__(
        self,
        open_ports: "Callable[[Operations], Awaitable[Mapping[str, OpenPort]]]",
        partitions: Sequence[Any],
        watcher: Any,
        clock: Clock,
        dynamic_series_max: int,
    ) -> None:
        self._open_ports = open_ports
        self._watcher = watcher
        self._clock = clock
        self._totals = ProcessTotals(dynamic_series_max)
        self._partitions = {f"partition-{number}": each for number, each in enumerate(partitions)}
        self._handles: dict[str, Any] = {"watcher": watcher, **self._partitions}
        self._ports: Mapping[str, OpenPort] = {}
        self._beginning = asyncio.Lock()
        self.allocations = ActorAllocations(self._handles)

    async def absorb(self, delta: StatisticsDelta, pid: int, handle: Any) -> None:
        """Add what a front counted; it also says that the front is there, and how to reach it."""
        await self.begin()
        self._handles[delta.source] = handle
        self._totals.absorb(delta, self._clock.monotonic_s(), pid)

    async def begin(self) -> dict[str, str]:
        """Listen, if not done yet: name of each port to its address. OSError if one is taken."""
        async with self._beginning:
            if not self._ports:
                self._ports = await self._open_ports(self)
                self._asking = asyncio.create_task(self._ask_for_ever(), name="asking")
        return {name: f"{each.host}:{each.port}" for name, each in self._ports.items()}

    async def end(self) -> None:
        """Free the ports."""
        for port in self._ports.values():
            await port.stop()

    async def statistics(self) -> Statistics:
        """All totals at this moment; loads of rules are asked for first."""
        await self._ask_watcher()
        return self._totals.statistics()

    async def dump_rules(self) -> str:
        """The rules in force, as the debug port prints them."""
        return str(await asyncio.wait_for(self._watcher.dump.remote(), ANSWER_WITHIN_S))

    async def processes(self) -> Mapping[str, int]:
        """The pids of the processes that are alive, fronts first."""
        pids = self._totals.processes(self._clock.monotonic_s())
        return {**pids, "operations": os.getpid()}

    async def _ask_for_ever(self) -> None:
        while True:
            asked = map(self._ask_partition, self._partitions)
            await asyncio.gather(self._ask_watcher(), *asked)
            await asyncio.sleep(ASK_EVERY_S)

    async def _ask_watcher(self) -> None:
        delta = await self._answer(self._watcher.drain_statistics.remote())
        if delta is not None:
            self._totals.absorb(delta, self._clock.monotonic_s())
        described = await self._answer(self._watcher.describe.remote())
        if described is not None:
            self._totals.hear("watcher", described["pid"], self._clock.monotonic_s())

    async def _ask_partition(self, name: str) -> None:
        described = await self._answer(self._partitions[name].describe.remote())
        if described is not None:
            self._totals.absorb_partition(name, described, self._clock.monotonic_s())

    async def _answer(self, call: Any) -> Any:
        """The call's result; None when the process is away or slow, as its lines will show."""
        try:
            return await asyncio.wait_for(call, ANSWER_WITHIN_S)
        except (RayError, TimeoutError) as error:
            LOG.debug("no answer for the statistics: %s", type(error).__name__)
            return None


def send_statistics(
    operations: Any, pid: int, me: Any, delta: StatisticsDelta
) -> "Future[object] | None":
    """Sends a process's statistics to the actor; None when it has too many calls, or is away."""
    try:
        report: Future[object] = operations.absorb.remote(delta, pid, me).future()
    except RayError as error:
        LOG.warning("statistics could not be sent: %s", type(error).__name__)
        return None
    return report


def start_operations(name: str, namespace: str, *arguments: object) -> Any:
    """Create the named actor, or find it."""
    options = {"max_task_retries": 0, "max_pending_calls": PENDING_CALLS_MAX}
    return named_actor(Operations, name, namespace, **options).remote(*arguments)
