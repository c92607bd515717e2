"""Clocks: the system's, read here and nowhere else, and one that tests move by hand."""

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


class ManualClock:
    """A clock that moves only when a test or a simulation moves it."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def monotonic_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, "a manual clock does not run backwards"
        self._now_s += seconds

    def set(self, now_s: float) -> None:
        self._now_s = now_s
