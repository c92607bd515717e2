"""Threads for large bodies: the event loop answers others while one of them is worked on."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 2
# Large bodies that are worked on or wait for a thread; one more is refused.
WORKS_MAX = 64


class WorkThreads:
    """Threads of a process, for work on bodies of `large_bytes` and more. `busy` makes the refusal
    when WORKS_MAX of them are there already."""

    def __init__(self, name: str, large_bytes: int, busy: Callable[[], Exception]) -> None:
        self._threads = ThreadPoolExecutor(THREADS, name)
        self._large_bytes = large_bytes
        self._busy = busy
        self._count = 0

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Does work on a body of `size` bytes, here or in a thread. Raises what `busy` makes, and
        what the work raises."""
        if size < self._large_bytes:
            return work()
        if self._count == WORKS_MAX:
            raise self._busy()
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._count -= 1
