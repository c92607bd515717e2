"""Threads for large documents: the event loop answers others while one of them is worked on."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tollgate.serve.catalog_auth.api.problems import BusyProblem

T = TypeVar("T")

# What is smaller takes less time than many a request that is let in meanwhile.
LARGE_BYTES = 32 * 1024
THREADS = 2
# Large documents that are worked on or wait for a thread; one more is refused.
WORKS_MAX = 64


class WorkThreads:
    """The threads of a process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "catalog-work")
        self._count = 0

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Does work on a body of `size` bytes, here or in a thread. Raises BusyProblem, and what
        the work raises."""
        if size < LARGE_BYTES:
            return work()
        if self._count == WORKS_MAX:
            raise BusyProblem("as many large documents as are allowed wait: call again")
        self._count += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._count -= 1
