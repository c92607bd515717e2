"""What was used longest ago makes room."""

import pytest

from tollgate.actors.kernel.bounded_cache import LruCache


def test_the_least_recently_used_goes() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    assert len(cache) == 2


def test_a_value_is_replaced() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 3)
    cache.put("c", 4)
    assert [cache.get(key) for key in "abc"] == [3, None, 4]


def test_a_value_is_taken_out() -> None:
    cache: LruCache[str, int] = LruCache(2)
    cache.put("a", 1)
    cache.discard("a")
    cache.discard("b")
    assert cache.get("a") is None


def test_it_holds_something() -> None:
    with pytest.raises(AssertionError, match="at least one"):
        LruCache(0)


def test_values_have_a_weight() -> None:
    cache: LruCache[str, str] = LruCache(9, 5, len)
    cache.put("a", "aa")
    cache.put("b", "bb")
    cache.put("a", "aaa")
    assert cache.weight == 5
    cache.put("c", "cc")
    assert [cache.get(key) for key in "abc"] == ["aaa", None, "cc"]
    cache.discard("a")
    cache.discard("a")
    assert cache.weight == 2
    cache.put("d", "dddddd")
    # What is too heavy by itself drives nobody out.
    assert (cache.get("c"), cache.get("d"), cache.weight) == ("cc", None, 2)
