"""The totals of all processes, and which processes are alive: pure, fed deltas and the time."""

from collections.abc import Mapping

from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta
from tollgate.actors.ratelimit.statistics.totals import SOURCE_SILENCE_S, Statistics, Totals

EVICTED = "ratelimit.counters.evicted"
ENTRIES = "ratelimit.counters.entries"


class ProcessTotals:
    """Sums deltas by process. Times are monotonic, in seconds. Not thread-safe."""

    def __init__(self, dynamic_series_max: int) -> None:
        self._totals = Totals(dynamic_series_max=dynamic_series_max)
        self._evicted: dict[str, int] = {}
        self._heard: dict[str, tuple[int, float]] = {}

    def absorb(self, delta: StatisticsDelta, now_s: float, pid: int | None = None) -> None:
        """Adds what a process counted; with its pid, the process is noted as alive."""
        if pid is not None:
            self.hear(delta.source, pid, now_s)
        self._totals.absorb(delta, now_s)

    def hear(self, name: str, pid: int, now_s: float) -> None:
        """Notes that a process is alive."""
        self._heard[name] = (pid, now_s)

    def absorb_partition(self, name: str, described: Mapping[str, int], now_s: float) -> None:
        """Adds what a counter partition says of itself: `pid`, `counters` and `evicted`."""
        evicted = described["evicted"]
        # A partition that was restarted counts from zero again.
        before = self._evicted.get(name, 0)
        self._evicted[name] = evicted
        delta = StatisticsDelta(
            source=name,
            counts={EVICTED: max(0, evicted - before)},
            gauges={ENTRIES: described["counters"]},
        )
        self.absorb(delta, now_s, described["pid"])

    def processes(self, now_s: float) -> dict[str, int]:
        """The pids of the processes that were heard from lately, by name."""
        return {
            name: pid
            for name, (pid, heard_s) in sorted(self._heard.items())
            if heard_s >= now_s - SOURCE_SILENCE_S
        }

    def statistics(self) -> Statistics:
        """All totals at this moment."""
        return self._totals.statistics()
