"""Counters in a Memcached of the tests, opened as the settings open them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    LimitedHits,
    PartitionCounts,
    Unreachable,
)
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters
from tollgate.serve.ratelimit.backends.memcached.store import memcached_store
from tollgate.serve.settings import Settings

NOW_S = 1_000
"""In the minute that begins at 960 and ends at 1020."""
# Long, for a wait that is cut short is counted as an error: a loaded machine must not do that.
PATIENT = {"BACKEND_TYPE": "memcache", "MEMCACHE_TIMEOUT": "30s"}


class SettledCounters:
    """Waits after each call until its hits are counted, so that the next call sees them."""

    partitions = 1

    def __init__(self, counters: MemcachedCounters) -> None:
        self._counters = counters

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        counts = self._counters.hit(batches, now_s)
        assert self._counters.wait_until_counted()
        return counts

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        counts = self._counters.hit_conditionally(batches, now_s)
        assert self._counters.wait_until_counted()
        return counts


@contextmanager
def counting_in(
    environ: Mapping[str, str], tallies: Tallies | None = None
) -> Iterator[MemcachedCounters]:
    """The counters of these settings, for as long as the block lasts."""
    settings = Settings.from_environment(PATIENT | dict(environ))
    counters = memcached_store(settings).open(SystemClock(), tallies or Tallies("test"))
    assert isinstance(counters, MemcachedCounters)
    try:
        yield counters
    finally:
        counters.close()


def asked(*hits: tuple[str, int], unit: int = 2, end_s: int = 1_020) -> list[LimitedHits]:
    """A batch of hits on counters (name and addend) of minutes, unless it is another unit."""
    keys = [f"{unit}|{name}_".encode() for name, _ in hits]
    return [LimitedHits(end_s, keys, [addend for _, addend in hits], [10] * len(hits))]


def hit(counters: MemcachedCounters, *hits: tuple[str, int]) -> list[int | Unreachable]:
    """The counts after these hits, once they are counted."""
    counts = only(counters.hit({0: asked(*hits)}, NOW_S)[0])
    assert counters.wait_until_counted()
    return counts


def only(counts: PartitionCounts) -> list[int | Unreachable]:
    """The counts of all windows together."""
    assert not isinstance(counts, Unreachable)
    return [each for window in counts for each in window]


def counted(tallies: Tallies) -> dict[str, int]:
    """What was counted about Memcached, by the end of its name."""
    counts = tallies.drain().counts.items()
    return {name.removeprefix("ratelimit.memcache."): by for name, by in counts if by}
