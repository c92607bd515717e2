"""Memcached that fails: nonsense, full, killed, slow (B11)."""

import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tests.support.ratelimit.counting_in_memcached import (
    NOW_S,
    asked,
    counted,
    counting_in,
    hit,
    only,
)
from tests.support.servers.gated_proxy import gated_proxy
from tests.support.servers.memcached import Memcached, memcached
from tests.support.servers.scripted_memcached import scripted
from tests.support.waiting import until
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters
from tollgate.serve.ratelimit.backends.memcached.items import node_number


@pytest.mark.parametrize(
    "reply",
    [
        b"SERVER_ERROR out of memory writing get response\r\n",
        b"ERROR\r\n",
        b"VALUE x\r\n",
        b"VALUE another_key 0 1\r\n1\r\nEND\r\n",
        b"VALUE a 0 x\r\n1\r\nEND\r\n",
        b"VALUE a 0 -1\r\n",
        b"VALUE a 0 -5\r\n1\r\nEND\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\x00\xff\r\n",
    ],
)
def test_a_reply_that_is_none_counts_as_0_and_is_an_error(name: str, reply: bytes) -> None:
    tallies = Tallies("test")
    with (
        scripted(lambda word: reply if word == b"get" else b"3\r\n") as (port, _),
        counting_in({"MEMCACHE_HOST_PORT": f"127.0.0.1:{port}"}, tallies) as counters,
    ):
        assert hit(counters, (name, 2)) == [2]
        assert not counters.down, "it did answer"
    assert counted(tallies) == {
        "multiget.__code=error": 1,
        "keys_requested": 1,
        "increment.__code=success": 1,
    }


def test_an_error_of_one_increment_is_that_ones_alone(
    counters: MemcachedCounters, server: Memcached, name: str
) -> None:
    server.ask(f"add {name}_960 0 300 4\r\nnone".encode())
    assert hit(counters, (name, 1), (f"{name}x", 1), (f"{name}y", 1)) == [1, 1, 1]
    assert server.value(f"{name}_960".encode()) == b"none"
    assert hit(counters, (f"{name}x", 0), (f"{name}y", 0)) == [1, 1]


def test_a_full_memory_is_told_and_lets_hits_pass(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """`-M`: an error, rather than to throw older counters out."""
    tallies = Tallies("test")
    with (
        memcached("-M", "-m", "2") as full,
        counting_in({"MEMCACHE_HOST_PORT": full.address}, tallies) as counters,
    ):
        number = 0
        while "add.__code=error" not in counted(tallies):
            number += 1
            batch = [(f"{name}.{number}.{each}", 1) for each in range(1_024)]
            assert hit(counters, *batch) == [1] * len(batch)
        assert not counters.down
    assert caplog.text.count("refuses to count: SERVER_ERROR out of memory") == 1


def test_a_node_that_is_killed_is_waited_for_by_nobody_and_counts_when_it_is_back(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    tallies = Tallies("test")
    with (
        memcached() as server,
        gated_proxy(server.port) as proxy,
        counting_in({"MEMCACHE_HOST_PORT": proxy.address}, tallies) as counters,
    ):
        assert [hit(counters, (name, 1)) for _ in range(3)] == [[1], [2], [3]]
        server.kill()
        assert [hit(counters, (name, 1)) for _ in range(3)] == [[1], [1], [1]]
        assert counters.down == {0}
        server.start()
        proxy.target = server.port
        until(lambda: not counters.down, "the node is found again")
        assert [hit(counters, (name, 1)) for _ in range(2)] == [[1], [2]]
    codes = counted(tallies)
    assert codes["multiget.__code=error"] == 3
    assert codes["increment.__code=error"] == 3
    assert caplog.text.count("is out of reach") == 1
    assert caplog.text.count("answers again") == 1


def test_an_idle_connection_that_has_ended_costs_no_count(server: Memcached, name: str) -> None:
    tallies = Tallies("test")
    with (
        gated_proxy(server.port) as proxy,
        counting_in({"MEMCACHE_HOST_PORT": proxy.address}, tallies) as counters,
    ):
        assert hit(counters, (name, 1)) == [1]
        proxy.cut()
        assert hit(counters, (name, 1)) == [2]
        proxy.cut()
        assert hit(counters, (name, 1)) == [3]
        assert not counters.down
    assert not any("error" in name for name in counted(tallies))


def test_a_node_that_is_slow_counts_as_0_and_its_hits_are_counted_later(
    server: Memcached, name: str
) -> None:
    with gated_proxy(server.port) as proxy:
        environ = {"MEMCACHE_HOST_PORT": proxy.address, "MEMCACHE_TIMEOUT": "100ms"}
        with counting_in(environ) as counters:
            until(lambda: hit(counters, (name, 1)) > [1], "two hits in a row are counted")
            with proxy.held():
                assert only(counters.hit({0: asked((name, 1))}, NOW_S)[0]) == [1]
                assert counters.down == {0}
            until(lambda: not counters.down, "the node answers again")


def test_where_errors_were_asked_for_a_count_that_cannot_be_read_is_out_of_reach(
    server: Memcached, name: str
) -> None:
    with memcached() as other:
        addresses = f"{server.address},{other.address}"
        environ = {"MEMCACHE_HOST_PORT": addresses, "FAILURE_MODE": "error"}
        with counting_in(environ) as counters:
            other.kill()
            names = [f"{name}.{number}" for number in range(20)]
            counts = hit(counters, *((each, 1) for each in names))
            for each, after in zip(names, counts, strict=True):
                if node_number(f"{each}_960".encode(), 2):
                    assert isinstance(after, Unreachable)
                    assert str(after) == f"Memcached ({other.address}) is down"
                else:
                    assert after == 1


def test_the_end_of_a_process_counts_what_waits(server: Memcached, name: str) -> None:
    with counting_in({"MEMCACHE_HOST_PORT": server.address}) as counters:
        for number in range(50):
            counters.hit({0: asked((f"{name}.{number}", 1))}, NOW_S)
    assert all(server.value(f"{name}.{number}_960".encode()) == b"1" for number in range(50))


def test_a_node_is_killed_and_started_anew_while_everybody_calls(name: str) -> None:
    is_over = Event()
    with (
        memcached() as server,
        gated_proxy(server.port) as proxy,
        counting_in({"MEMCACHE_HOST_PORT": proxy.address}) as counters,
    ):
        item = f"{name}_960".encode()

        def call() -> int:
            calls = 0
            while not is_over.is_set():
                (after,) = only(counters.hit({0: asked((name, 1))}, NOW_S)[0])
                assert isinstance(after, int)
                assert after > 0
                calls += 1
            return calls

        with ThreadPoolExecutor(4) as threads:
            callers = [threads.submit(call) for _ in range(4)]
            try:
                until(lambda: server.value(item), "hits are counted")
                server.kill()
                until(lambda: counters.down, "the node is missed")
                server.start()
                proxy.target = server.port
                until(lambda: server.value(item), "hits are counted again")
            finally:
                is_over.set()
        assert all(caller.result() for caller in callers)
        until(lambda: not counters.down, "the node is not missed any more")
        before = int(server.value(item) or 0)
        assert counters.wait_until_counted()
        assert hit(counters, (name, 0)) >= [before]
