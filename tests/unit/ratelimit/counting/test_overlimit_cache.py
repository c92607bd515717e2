"""What the local over-limit cache keeps, and for how long (B8)."""

from tollgate.actors.ratelimit.counting.overlimit_cache import (
    ENTRY_BYTES,
    CacheGauges,
    OverLimitCache,
)

LIMIT = 10
END_S = 60
ENTRY = ENTRY_BYTES + len(b"k1")


def cache_with(*keys: bytes, size_bytes_max: int = 65_536) -> OverLimitCache:
    cache = OverLimitCache(size_bytes_max)
    for key in keys:
        cache.add(key, END_S, LIMIT, cache.drops)
    return cache


def test_an_entry_holds_for_its_window_and_limit() -> None:
    cache = cache_with(b"k1")
    assert cache.holds(b"k1", END_S, LIMIT)
    assert cache.holds(b"k1", END_S, LIMIT)
    assert not cache.holds(b"k2", END_S, LIMIT)
    assert cache.gauges == CacheGauges(hit_count=2, miss_count=1)
    assert cache.gauges.lookup_count == 3


def test_an_entry_dies_with_its_window() -> None:
    cache = cache_with(b"k1")
    assert not cache.holds(b"k1", END_S + 60, LIMIT)
    assert len(cache) == 0
    assert cache.gauges == CacheGauges(miss_count=1, expired_count=1)
    assert not cache.holds(b"k1", END_S, LIMIT)


def test_an_entry_dies_when_the_limit_changes() -> None:
    cache = cache_with(b"k1")
    assert not cache.holds(b"k1", END_S, LIMIT + 1)
    assert not cache.holds(b"k1", END_S, LIMIT)


def test_an_entry_is_overwritten() -> None:
    cache = cache_with(b"k1")
    cache.add(b"k1", END_S + 60, LIMIT + 1, cache.drops)
    assert len(cache) == 1
    assert cache.holds(b"k1", END_S + 60, LIMIT + 1)
    assert cache.gauges.overwrite_count == 1


def test_an_entry_is_dropped_when_hits_are_given_back() -> None:
    cache = cache_with(b"k1", b"k2")
    cache.drop(b"k1")
    cache.drop(b"k3")
    assert not cache.holds(b"k1", END_S, LIMIT)
    assert cache.holds(b"k2", END_S, LIMIT)


def test_a_count_from_before_hits_were_given_back_is_not_believed() -> None:
    cache = OverLimitCache(65_536)
    drops = cache.drops
    cache.drop(b"k1")
    cache.add(b"k1", END_S, LIMIT, drops)
    assert len(cache) == 0
    cache.add(b"k1", END_S, LIMIT, cache.drops)
    assert len(cache) == 1


def test_the_oldest_make_room() -> None:
    cache = cache_with(b"k1", b"k2", b"k3", size_bytes_max=2 * ENTRY + 1)
    assert len(cache) == 2
    assert cache.gauges.evacuate_count == 1
    assert not cache.holds(b"k1", END_S, LIMIT)
    assert cache.holds(b"k2", END_S, LIMIT)
    assert cache.holds(b"k3", END_S, LIMIT)


def test_the_bound_is_in_bytes_and_those_of_the_dropped_are_free_again() -> None:
    cache = cache_with(b"k1", b"k2", size_bytes_max=2 * ENTRY)
    cache.drop(b"k1")
    assert not cache.holds(b"k2", END_S + 60, LIMIT)
    for key in (b"k3", b"k4"):
        cache.add(key, END_S, LIMIT, cache.drops)
    assert len(cache) == 2
    assert cache.gauges.evacuate_count == 0
    cache.add(b"k" * 100, END_S, LIMIT, cache.drops)
    assert cache.gauges.evacuate_count == 2
    assert len(cache) == 1


def test_what_is_larger_than_the_cache_does_not_stay() -> None:
    cache = cache_with(b"k" * 200, size_bytes_max=ENTRY_BYTES)
    assert len(cache) == 0
    cache = cache_with(b"k1", size_bytes_max=ENTRY)
    assert len(cache) == 1


def test_what_is_cleared_is_asked_for_again() -> None:
    cache = OverLimitCache(10_000)
    cache.add(b"k", 120, 5, cache.drops)
    drops = cache.drops
    cache.clear()
    assert not cache.holds(b"k", 120, 5)
    cache.add(b"k", 120, 5, drops)  # from a count that was under way
    assert not cache.holds(b"k", 120, 5)
    cache.add(b"k", 120, 5, cache.drops)
    assert cache.holds(b"k", 120, 5)
