"""Tracing of what other actors' processes allocate, with the interpreter's own tracemalloc."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from tollgate.actors.kernel.allocations import finish_tracing, start_tracing

BEGIN_WITHIN_S = 0.5
FINISH_WITHIN_S = 30.0


class ActorAllocations:
    """`handles` of the actors, by the names of their processes; without one it is this process."""

    def __init__(self, handles: Mapping[str, Any]) -> None:
        self._handles = handles

    async def start(self, process: str) -> None:
        """Begin tracing. RayError or TimeoutError when the process does not answer."""
        await asyncio.wait_for(self._in(process, lambda _: start_tracing()), BEGIN_WITHIN_S)

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
