"""Counters as items of a real Memcached, on one node and on two (B11)."""

import pytest

from tests.support.ratelimit.counting_in_memcached import (
    NOW_S,
    asked,
    counted,
    counting_in,
    hit,
    only,
)
from tests.support.servers.memcached import Memcached
from tests.support.servers.scripted_memcached import scripted
from tollgate.actors.ratelimit.counting.counters import Conditional
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters
from tollgate.serve.ratelimit.backends.memcached.items import item_name, node_number


def test_hits_are_counted_under_the_name_of_the_reference(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    assert hit(counters, (name, 2)) == [2]
    assert server.value(f"{name}_960".encode()) == b"2"
    assert hit(counters, (name, 3)) == [5]
    assert server.value(f"{name}_960".encode()) == b"5"


def test_a_name_may_have_any_letters(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    assert hit(counters, (f"{name}é漢|:/", 1)) == [1]
    assert hit(counters, (f"{name}é漢|:/", 1)) == [2]
    assert server.value(f"{name}é漢|:/_960".encode()) == b"2"


def test_what_the_reference_has_counted_is_counted_on_with(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    assert server.ask(f"add {name}_960 0 300 1\r\n7".encode()) == b"STORED\r\n"
    assert hit(counters, (name, 1)) == [8]


def test_hits_of_one_batch_on_one_counter_see_each_other(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    other = f"{name}x"
    assert hit(counters, (name, 1), (other, 5), (name, 2), (name, 0)) == [1, 5, 3, 3]
    assert server.value(f"{name}_960".encode()) == b"3"


def test_a_look_leaves_no_item(counters: MemcachedCounters, server: Memcached, name: str) -> None:
    assert hit(counters, (name, 0)) == [0]
    assert server.value(f"{name}_960".encode()) is None


def test_a_refund_stops_at_0_and_makes_no_item(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    assert hit(counters, (name, -3)) == [0]
    assert server.value(f"{name}_960".encode()) is None
    assert hit(counters, (name, 10), (name, -1)) == [10, 9]
    assert hit(counters, (name, 0)) == [9], "Memcached leaves a blank where a digit was"
    assert hit(counters, (name, -20), (name, 4)) == [0, 4]
    assert hit(counters, (name, 0)) == [4]


@pytest.mark.parametrize("value", [b"none", b"2147483648", b"99999999999999999999"])
def test_a_value_that_is_no_count_is_0(
    counters: MemcachedCounters, server: Memcached, name: str, value: bytes
) -> None:
    server.ask(f"add {name}_960 0 300 {len(value)}\r\n".encode() + value)
    assert hit(counters, (name, 1)) == [1]


def test_a_name_that_memcached_would_not_take_is_counted_all_the_same(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    names = [f"{name}_{'x' * 250}", f"{name} a", f"{name}\r\nflush_all", f"{name}  a"]
    assert hit(counters, *((each, 1) for each in names)) == [1, 1, 1, 1]
    assert hit(counters, *((each, 1) for each in names)) == [2, 2, 2, 2]
    for each in names:
        assert server.value(item_name(f"{each}_960".encode())) == b"2"


@pytest.mark.parametrize(
    ("unit", "length_s"),
    [(1, 1), (2, 60), (3, 3_600), (4, 86_400), (7, 604_800), (5, 2_592_000), (6, 31_536_000)],
)
def test_an_item_lives_for_its_window_and_what_is_drawn(
    server: Memcached, name: str, unit: int, length_s: int
) -> None:
    environ = {"MEMCACHE_HOST_PORT": server.address, "EXPIRATION_JITTER_MAX_SECONDS": "3600"}
    with counting_in(environ) as counters:
        counters.hit({0: asked((name, 1), unit=unit, end_s=10 * length_s)}, NOW_S)
        assert counters.wait_until_counted()
    item = f"{name}_{9 * length_s}"
    reply = server.ask(f"mg {item} t v".encode())
    assert reply.startswith(b"VA 1 t"), f"a counter of {length_s} s is there: {reply!r}"
    left_s = int(reply.split()[2][1:])
    # (a minute for this test, on whatever machine; and the server's clock ticks once a second)
    assert length_s + 3_599 - 60 <= left_s <= length_s + 3_599 + 2


def test_without_jitter_an_item_lives_as_long_as_its_window(server: Memcached, name: str) -> None:
    environ = {"MEMCACHE_HOST_PORT": server.address, "EXPIRATION_JITTER_MAX_SECONDS": "0"}
    with counting_in(environ) as counters:
        hit(counters, (name, 1))
        hit(counters, (name, 1))
    left_s = int(server.ask(f"mg {name}_960 t".encode()).split()[1][1:])
    assert 0 <= left_s <= 62


def test_nothing_is_held_back_by_a_condition(counters: MemcachedCounters, name: str) -> None:
    request = Conditional([1_020] * 2, [f"2|{name}{n}_".encode() for n in "ab"], [5, 1], [4, 10])
    assert only(counters.hit_conditionally({0: [request]}, NOW_S)[0]) == [5, 1]
    assert counters.wait_until_counted()
    assert hit(counters, (f"{name}a", 0), (f"{name}b", 0)) == [5, 1]


def test_two_nodes_share_the_counters_as_the_reference_does(
    server: Memcached, second: Memcached, name: str
) -> None:
    names = [f"{name}.{number}" for number in range(600)]
    with counting_in({"MEMCACHE_HOST_PORT": f"{server.address},{second.address}"}) as counters:
        assert hit(counters, *((each, 1) for each in names)) == [1] * len(names)
        assert hit(counters, *((each, 1) for each in names)) == [2] * len(names)
    nodes = (server, second)
    used = set()
    for each in names[:50]:
        item = f"{each}_960".encode()
        number = node_number(item, 2)
        used.add(number)
        assert nodes[number].value(item) == b"2"
        assert nodes[1 - number].value(item) is None
    assert used == {0, 1}


def test_statistics_tell_commands_by_their_outcome(server: Memcached, name: str) -> None:
    tallies = Tallies("test")
    with counting_in({"MEMCACHE_HOST_PORT": server.address}, tallies) as counters:
        hit(counters, (name, 1), (f"{name}x", 1))
        assert counted(tallies) == {
            "multiget.__code=success": 1,
            "keys_requested": 2,
            "increment.__code=miss": 2,
            "add.__code=success": 2,
        }
        hit(counters, (name, 1), (f"{name}y", 0))
        assert counted(tallies) == {
            "multiget.__code=success": 1,
            "keys_requested": 2,
            "keys_found": 1,
            "increment.__code=success": 1,
        }


def test_an_item_that_somebody_else_adds_meanwhile_is_incremented(name: str) -> None:
    """Miss, add, not stored, increment (B11)."""
    tallies = Tallies("test")
    increments = iter([b"NOT_FOUND\r\n", b"6\r\n"])
    replies = {b"get": b"END\r\n", b"add": b"NOT_STORED\r\n"}
    with scripted(lambda word: replies.get(word) or next(increments)) as (port, seen):
        environ = {"MEMCACHE_HOST_PORT": f"127.0.0.1:{port}"}
        with counting_in(environ, tallies) as counters:
            assert hit(counters, (name, 1)) == [1]
    assert seen == [b"get", b"incr", b"add", b"incr"]
    assert counted(tallies) == {
        "multiget.__code=success": 1,
        "keys_requested": 1,
        "increment.__code=miss": 1,
        "add.__code=not_stored": 1,
        "increment.__code=success": 1,
    }
