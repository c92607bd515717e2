"""An event loop whose time is made up: it never waits, and a seed decides all there is to decide.

When nothing is ready, its clock jumps to the next timer. When there is no timer either, something
waits for what can never come: that is a finding, and raises `Stuck`.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Stuck(AssertionError):  # noqa: N818 - what was found
    """Everything waits, and nothing is left that could happen."""


class _NoFiles:
    """Where a real loop would wait for files, this one lets time pass."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck("everything waits, and nothing is left that could happen")
        self._loop.now_s += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """`now_s`: the one true time, from 0. `accidents`: what went wrong where nobody looked."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _NoFiles(self)
        self.now_s = 0.0
        self.accidents: list[str] = []
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self.now_s

    async def rest(self, seconds: float) -> None:
        """`asyncio.sleep`, at a third of its price: a run does hardly anything else."""
        awake = self.create_future()
        self.call_at(self.now_s + seconds, _wake, awake)
        await awake

    def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        """The result of `main`; what is still going on then is cancelled."""
        try:
            return self.run_until_complete(main)
        finally:
            left = asyncio.all_tasks(self)
            for task in left:
                task.cancel()
            if left:
                self.run_until_complete(asyncio.wait(left))
            self.close()

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.accidents.append(f"{context['message']}: {error!r}")

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list, "there are no files"

    def _write_to_self(self) -> None:
        raise AssertionError("nothing here runs in another thread")


def _wake(awake: asyncio.Future[None]) -> None:
    if not awake.done():
        awake.set_result(None)
