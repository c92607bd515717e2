"""The totals of all processes, and which processes are alive: pure, fed deltas and the time."""

from collections.abc import Mapping

from tollgate.actors.ratelimit.statistics.tallies import StatisticsDelta
from tollgate.actors.ratelimit.statistics.totals import (
    SOURCE_SILENCE_S,
    Flush,
    Statistics,
    Totals,
)

EVICTED = "ratelimit.counters.evicted"
CALLS = "ratelimit.counters.calls"
ENTRIES = "ratelimit.counters.entries"
SNAPSHOT_AGE = "ratelimit.counters.snapshot.age_seconds"
SNAPSHOT_BYTES = "ratelimit.counters.snapshot.bytes"
SNAPSHOT_FAILURES = "ratelimit.counters.snapshot.failures"
COPY_AGE = "ratelimit.counters.copy.age_seconds"
COPIED = "ratelimit.counters.copied"
RESETS = "ratelimit.counters.resets"
LOANS = "ratelimit.counters.loans"
SLOTS_LENT = "ratelimit.counters.slots_lent"
CLOCK_OFFSET = "ratelimit.counters.clock.offset_ms"
# By what a partition calls them. (Those that keep no snapshots, or no copy, say nothing of them.)
PARTITION_COUNTS = {
    "evicted": EVICTED,
    "resets": RESETS,
    "calls": CALLS,
    "snapshot_failures": SNAPSHOT_FAILURES,
}
PARTITION_GAUGES = {
    "counters": ENTRIES,
    "loans": LOANS,
    "slots_lent": SLOTS_LENT,
    "clock_offset_ms": CLOCK_OFFSET,
    "snapshot_age_s": SNAPSHOT_AGE,
    "snapshot_bytes": SNAPSHOT_BYTES,
    "copy_age_s": COPY_AGE,
    "copied_counters": COPIED,
}


class ProcessTotals:
    """Sums deltas by process. Times are monotonic, in seconds. Not thread-safe.

    `is_successor`: another one summed up before, so what a partition has counted when it is first
    heard of is known already, and may have been sent to a server that adds it up."""

    def __init__(self, dynamic_series_max: int, *, is_successor: bool = False) -> None:
        self._is_successor = is_successor
        self._totals = Totals(dynamic_series_max=dynamic_series_max)
        self._counted: dict[tuple[str, str], int] = {}
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
        """Adds what a counter partition says of itself: `pid`, and what is listed above."""
        counts = {}
        for key in PARTITION_COUNTS.keys() & described.keys():
            count = described[key]
            before = self._counted.get((name, key), count if self._is_successor else 0)
            self._counted[name, key] = count
            # A partition that was restarted counts from zero again.
            counts[PARTITION_COUNTS[key]] = count - before if count >= before else count
        gauges = {
            PARTITION_GAUGES[key]: described[key]
            for key in PARTITION_GAUGES.keys() & described.keys()
        }
        delta = StatisticsDelta(source=name, counts=counts, gauges=gauges)
        self.absorb(delta, now_s, described["pid"])

    def processes(self, now_s: float) -> dict[str, int]:
        """The pids of the processes that were heard from lately, by name, fronts first."""
        heard = sorted(
            self._heard.items(), key=lambda each: (not each[0].startswith("front"), each)
        )
        return {name: pid for name, (pid, at_s) in heard if at_s >= now_s - SOURCE_SILENCE_S}

    def statistics(self) -> Statistics:
        """All totals at this moment."""
        return self._totals.statistics()

    def flush(self) -> Flush:
        """What was counted since the last flush."""
        return self._totals.flush()
