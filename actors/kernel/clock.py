"""The system's clocks, read here and nowhere else."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for windows, monotonic time for deadlines; both in seconds."""

    def now_s(self) -> float: ...

    def monotonic_s(self) -> float: ...


class SystemClock:
    """The machine's clocks."""

    def now_s(self) -> float:
        return time.time()

    def monotonic_s(self) -> float:
        return time.monotonic()


def thread_cpu_s() -> float:
    """The time of a processor that this thread has used."""
    return time.thread_time()
