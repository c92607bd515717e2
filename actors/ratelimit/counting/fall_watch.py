"""Hears from partitions whether counts may have fallen: hits were given back, or one was reset.

A front that remembers which counters are over their limit does not ask about them, and so would not
see it. It asks this instead, now and then, whatever the number of its counters is.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from tollgate.actors.kernel.clock import Clock

ASK_EVERY_S = 1.0

Described = Mapping[str, int]
Ask = Callable[[], "Future[Described] | None"]
"""Asks one partition to describe itself, and does not wait; None: it cannot be asked now."""


class FallWatch:
    """`falls` changes when counts may have fallen anywhere. Belongs to one thread."""

    def __init__(self, asks: Sequence[Ask], clock: Clock) -> None:
        self._asks = asks
        self._clock = clock
        self._asked: list[Future[Described] | None] = [None] * len(asks)
        self._heard: list[tuple[int, int] | None] = [None] * len(asks)
        self._ask_at_s = 0.0
        self.falls = 0

    def look(self) -> int:
        """Take the answers that have come, and ask again when it is time; `falls`."""
        for number, future in enumerate(self._asked):
            if future is not None and future.done():
                self._asked[number] = None
                if future.exception() is None:
                    self._note(number, future.result())
        now_s = self._clock.monotonic_s()
        if now_s >= self._ask_at_s:
            self._ask_at_s = now_s + ASK_EVERY_S
            asked = zip(self._asked, self._asks, strict=True)
            self._asked = [future or ask() for future, ask in asked]
        return self.falls

    def _note(self, number: int, described: Described) -> None:
        # (Another process of the partition counts from 0, and its counters do, too.)
        heard = (described["pid"], described["falls"])
        if self._heard[number] not in (None, heard):
            self.falls += 1
        self._heard[number] = heard
