"""Routes of counters: each counter has one partition that owns it, and a store says how to find it.

Counters of our own are spread over partitions by their keys. In an outside store a partition is a
server that the store speaks with.
"""

from collections.abc import Callable

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.windows import Unit

Route = Callable[[bytes, Unit], int]
"""The partition of a counter, by its key and its unit."""


def spread_over(partitions: int) -> Route:
    """Counters spread evenly, by the hashes of their keys."""
    assert partitions > 0, "counters need at least one partition"

    def route(key: bytes, unit: Unit, /) -> int:
        return stable_hash(key) % partitions

    return route


def per_second_apart(key: bytes, unit: Unit) -> int:
    """Counters of seconds in partition 1, all others in partition 0 (B10)."""
    return 1 if unit is Unit.SECOND else 0
