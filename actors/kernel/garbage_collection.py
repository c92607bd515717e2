"""Garbage collection in the processes that answer calls: the same thresholds for all of them."""

import gc
from collections.abc import Callable

from tollgate.actors.kernel.clock import Clock

# Young generations only: what a call leaves behind forms no cycles that live on, and a collection
# of everything would stop all calls meanwhile.
THRESHOLDS = (50_000, 50, 1_000_000)

QUIET_EVERY_S = 60.0
LATEST_S = 3_600.0
QUIET_BATCHES_MAX = 2
PAUSES_SHARE = 1 / 2_000


def spare_what_is_there() -> None:
    """Leaves what the start has made out of all later collections, and makes those rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


class QuietCollection:
    """Collects everything now and then, at a moment when hardly anybody waits.

    Its pauses take a two-thousandth of the time at most: after a long one it waits longer. Where it
    is never quiet it collects once an hour all the same, for what is never collected grows.
    """

    def __init__(self, clock: Clock, collect: Callable[[], object] = gc.collect) -> None:
        self._clock = clock
        self._collect = collect
        self._batches = 0
        self._ended_s = clock.monotonic_s()
        self._wait_s = QUIET_EVERY_S

    def look(self, batches: int) -> float | None:
        """Called several times a second with the number of batches that were decided until now; the
        pause in seconds, if this was the moment."""
        is_quiet = batches - self._batches <= QUIET_BATCHES_MAX
        self._batches = batches
        begin_s = self._clock.monotonic_s()
        waited_s = begin_s - self._ended_s
        if waited_s < self._wait_s or not (is_quiet or waited_s >= max(LATEST_S, self._wait_s)):
            return None
        self._collect()
        self._ended_s = self._clock.monotonic_s()
        pause_s = self._ended_s - begin_s
        self._wait_s = max(QUIET_EVERY_S, pause_s / PAUSES_SHARE)
        return pause_s
