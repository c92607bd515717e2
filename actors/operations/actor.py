"""The operations actor: keeps the totals of all processes, opens the ports that show them, hands
them to the pump that sends them on, and looks after the config watcher and the counter partitions.

Fronts push what they counted; the watcher and the partitions are asked every second. A process that
is silent or dead costs nothing but its own lines: nothing here waits for it long. One that hangs is
ended, so that Ray starts it anew (attendance.py). This actor itself is looked after by all fronts.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from threading import Event, Thread
from typing import Any

from ray.exceptions import RayError

from tollgate.actors.kernel.actor import ActorSeat, is_started_again, named_actor
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.operations.allocations import ActorAllocations
from tollgate.actors.operations.attendance import USUAL_BOUNDS, AttendanceBounds
from tollgate.actors.operations.attendant import Attendant
from tollgate.actors.operations.counter_desk import CounterDesk
from tollgate.actors.operations.outlets import OpenPort, Pump
from tollgate.actors.operations.process_totals import ProcessTotals
from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta, Tallies
from tollgate.actors.ratelimit.statistics.totals import Flush, Statistics

LOG = logging.getLogger("tollgate.operations")
ASK_EVERY_S = 1.0
ANSWER_WITHIN_S = 0.5
PENDING_CALLS_MAX = 1_000


class Operations:
    """`partitions` and `watcher` are actor handles. `open_ports` serves pages from this actor's
    public methods; it is called once, in this actor's event loop. `make_pump` gives None when
    statistics are not sent from here; `is_successor` as in `ProcessTotals`."""

    def __init__(
        self,
        open_ports: "Callable[[Operations], Awaitable[Mapping[str, OpenPort]]]",
        partitions: Sequence[Any],
        watcher: Any,
        clock: Clock,
        dynamic_series_max: int,
        bounds: AttendanceBounds = USUAL_BOUNDS,
        make_pump: "Callable[[Operations], Pump | None]" = lambda _: None,
        *,
        is_successor: Callable[[], bool] = lambda: False,
    ) -> None:
        self._open_ports = open_ports
        self._watcher = watcher
        self._clock = clock
        self._totals = ProcessTotals(dynamic_series_max, is_successor=is_successor())
        self._partitions = {f"partition-{number}": each for number, each in enumerate(partitions)}
        self._handles: dict[str, Any] = {"watcher": watcher, **self._partitions}
        self._ports: Mapping[str, OpenPort] = {}
        self._beginning = asyncio.Lock()
        self.allocations = ActorAllocations(self._handles)
        self.counters = CounterDesk(self._partitions, self._answer)
        self._tallies = Tallies("operations")
        seats = {name: ActorSeat(handle) for name, handle in self._handles.items()}
        attendant = Attendant(seats, clock, self._tallies.count, bounds)
        self._is_dismissed = Event()
        self._attending = Thread(
            target=attendant.attend, args=(self._is_dismissed,), name="attendance", daemon=True
        )
        self._asking: asyncio.Task[None] | None = None
        self.count = self._tallies.count
        self._pump = make_pump(self)

    async def absorb(self, delta: StatisticsDelta, pid: int, handle: Any) -> None:
        """Add what a front counted; it also says that the front is there, and how to reach it."""
        await self.begin()
        self._handles[delta.source] = handle
        self._totals.absorb(delta, self._clock.monotonic_s(), pid)

    async def begin(self) -> dict[str, str]:
        """Work and listen, if not done yet: name of each port to its address. OSError if one is
        taken."""
        async with self._beginning:
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask_for_ever(), name="asking")
                self._attending.start()
                if self._pump is not None:
                    self._pump.start()
            if not self._ports:
                self._ports = await self._open_ports(self)
        return {name: f"{each.host}:{each.port}" for name, each in self._ports.items()}

    async def describe(self) -> dict[str, int]:
        """The process. Raises when it does not do its work, though it answers. Also begins: so one
        that was restarted listens again where nobody sends statistics."""
        try:
            await self.begin()
        except OSError as error:  # another process would find the port taken, too
            LOG.error("%s", error)
        if self._asking is None or self._asking.done():
            raise RuntimeError("it does not ask the other processes any more")
        if not self._attending.is_alive() and not self._is_dismissed.is_set():
            raise RuntimeError("it does not look after the other actors any more")
        if self._pump is not None and self._pump.has_ended:
            raise RuntimeError("it does not send statistics any more")
        return {"pid": os.getpid()}

    async def dismiss(self) -> None:
        """End nobody any more: the node stops, and who is slow then does not hang."""
        self._is_dismissed.set()

    async def stop_sending(self) -> None:
        """Send what was counted, and nothing from then on."""
        if self._pump is not None:
            await self._pump.stop()

    async def end(self) -> None:
        """Send what was counted, and free the ports."""
        await self.stop_sending()
        for port in self._ports.values():
            await port.stop()

    async def statistics(self) -> Statistics:
        """All totals at this moment; loads of rules are asked for first."""
        await self._ask_watcher()
        return self._totals.statistics()

    async def flush(self) -> Flush:
        """What was counted since the last flush; for one receiver."""
        await self._ask_watcher()
        self._totals.absorb(self._tallies.drain(), self._clock.monotonic_s())
        return self._totals.flush()

    async def dump_rules(self) -> str | None:
        """The rules in force, as the debug port prints them; None when the watcher is silent."""
        dumped: str | None = await self._answer(self._watcher.dump)
        return dumped

    async def describe_rules(self) -> Mapping[str, object] | None:
        """Their source and what became of the last load; None when the watcher is silent."""
        described: Mapping[str, object] | None = await self._answer(self._watcher.describe)
        return described

    async def processes(self) -> Mapping[str, int]:
        """The pids of the processes that are alive, fronts first."""
        pids = self._totals.processes(self._clock.monotonic_s())
        return {**pids, "operations": os.getpid()}

    async def _ask_for_ever(self) -> None:
        while True:
            asked = map(self._ask_partition, self._partitions)
            results = await asyncio.gather(self._ask_watcher(), *asked, return_exceptions=True)
            for failure in filter(None, results):
                LOG.error("a process could not be asked for its statistics", exc_info=failure)
            self._totals.absorb(self._tallies.drain(), self._clock.monotonic_s())
            await asyncio.sleep(ASK_EVERY_S)

    async def _ask_watcher(self) -> None:
        delta = await self._answer(self._watcher.drain_statistics)
        if delta is not None:
            self._totals.absorb(delta, self._clock.monotonic_s())
        described = await self._answer(self._watcher.describe)
        if described is not None:
            self._totals.hear("watcher", described["pid"], self._clock.monotonic_s())

    async def _ask_partition(self, name: str) -> None:
        described = await self._answer(self._partitions[name].describe)
        if described is not None:
            self._totals.absorb_partition(name, described, self._clock.monotonic_s())

    async def _answer(
        self, method: Any, *arguments: object, within_s: float = ANSWER_WITHIN_S
    ) -> Any:
        """The method's result; None when the process is away or slow, as its lines will show."""
        try:
            return await asyncio.wait_for(method.remote(*arguments), within_s)
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
    return named_actor(Operations, name, namespace, **options).remote(
        *arguments, is_successor=is_started_again
    )
