"""Sends what was counted to a server of statistics, at intervals, and bears with its absence.

    is there --a look finds nobody, or nothing is taken--> away --something is taken--> is there

What is counted while the server is away stays where it is summed up, which costs nothing: nobody
asks for it until there is somebody to send it to. Then it goes as one sum for each counter. What
was asked for and not taken waits, and nothing more is asked for meanwhile, so there is never more
of it than one flush. Each change of the two states is one line in the log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.statistics.totals import LOST, Flush
from tollgate.serve.ratelimit.sinks.connections import StatsdConnection
from tollgate.serve.ratelimit.sinks.lines import Lines

LOG = logging.getLogger("tollgate.operations")
SEND_WITHIN_S = 2.0
LOOK_EVERY_S = 1.0
"""The shortest time between two looks for a server that is away."""
LINES_PER_CALL = 4_096


class LineSink:
    """One server. May block for some seconds, and belongs to one thread at a time."""

    def __init__(
        self,
        connection: StatsdConnection,
        lines: Lines,
        clock: Clock,
        count: Callable[[str, int], None],
    ) -> None:
        self._connection = connection
        self._lines = lines
        self._clock = clock
        self._count = count
        self._waiting: deque[bytes] = deque()
        self._lost = 0
        self._is_away = False
        self._look_s = 0.0
        count(LOST, 0)  # shown before it first happens

    def is_ready(self) -> bool:
        """True when the server is there and has taken everything so far."""
        now_s = self._clock.monotonic_s()
        if self._is_away and now_s < self._look_s:
            return False
        self._look_s = now_s + LOOK_EVERY_S
        try:
            self._connection.open()
        except OSError as error:
            self._note_away(error.strerror or type(error).__name__)
            return False
        finally:
            self._count_lost()
        self._transmit()
        return not self._waiting

    def send(self, flush: Flush) -> None:
        """Sends a flush, once ready. What is not taken goes first the next time."""
        self._waiting.extend(self._lines(flush))
        self._transmit()

    def close(self) -> None:
        self._connection.close()

    def _transmit(self) -> None:
        while self._waiting:
            some = list(islice(self._waiting, LINES_PER_CALL))
            taken = self._connection.send(some, 0.0 if self._is_away else SEND_WITHIN_S)
            for _ in range(taken):
                self._waiting.popleft()
            self._count_lost()
            if taken:
                self._note_there()
            if taken < len(some):
                if not taken:
                    self._note_away("it takes nothing")
                return

    def _count_lost(self) -> None:
        if self._connection.lost > self._lost:
            self._count(LOST, self._connection.lost - self._lost)
            self._lost = self._connection.lost

    def _note_away(self, reason: str) -> None:
        if not self._is_away:
            LOG.warning(
                "no statistics are sent to %s (%s): they are added up until it is there",
                *(self._connection.address, reason),
            )
        self._is_away = True

    def _note_there(self) -> None:
        if self._is_away:
            LOG.warning("statistics are sent to %s again", self._connection.address)
        self._is_away = False


class StatisticsPump:
    """Sends every `every_s`, from a task of its own. `flush` gives what was counted since it was
    asked last."""

    def __init__(
        self, sink: LineSink, flush: Callable[[], Awaitable[Flush]], every_s: float
    ) -> None:
        self._sink = sink
        self._flush = flush
        self._every_s = every_s
        self._task: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._sending = asyncio.Lock()

    @property
    def has_ended(self) -> bool:
        return self._task is not None and self._task.done() and not self._is_stopped

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._pump(), name="statistics")

    async def stop(self) -> None:
        """Send what was counted since the last time, and end."""
        if self._is_stopped:
            return
        self._is_stopped = True
        async with self._sending:
            if self._task is not None:
                self._task.cancel()
            await self._send()
            self._sink.close()

    async def _pump(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            async with self._sending:
                await self._send()

    async def _send(self) -> None:
        # In a thread: the server may be slow, and ten thousand rules make a megabyte of lines.
        if await asyncio.to_thread(self._sink.is_ready):
            await asyncio.to_thread(self._sink.send, await self._flush())
