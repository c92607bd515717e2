"""Hits beyond all counts, and replies of Memcached that never end (B11)."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.ratelimit.counting_in_memcached import counted, counting_in, hit
from tests.support.servers.memcached import Memcached
from tests.support.servers.scripted_memcached import scripted
from tests.support.waiting import until
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends import timed_socket
from tollgate.serve.ratelimit.backends.memcached.connections import EXCHANGE_BYTES_MAX
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters
from tollgate.serve.ratelimit.backends.memcached.items import COUNT_MAX
from tollgate.serve.ratelimit.backends.timed_socket import LongReplyError, TimedSocket


@pytest.mark.parametrize("addend", [2**64 - 50, 2**63, 2**31, COUNT_MAX])
def test_no_hit_is_so_large_that_the_counter_begins_anew(
    counters: MemcachedCounters, server: Memcached, name: str, addend: int
) -> None:
    assert hit(counters, (name, 100)) == [100]
    assert hit(counters, (name, addend)) == [100 + addend]
    assert server.value(f"{name}_960".encode()) == b"%d" % COUNT_MAX
    assert hit(counters, (name, 1)) == [COUNT_MAX + 1]
    assert hit(counters, (name, 0)) == [COUNT_MAX]
    assert hit(counters, (f"{name}new", addend), (f"{name}new", addend)) == [addend, 2 * addend]
    assert hit(counters, (f"{name}new", 0)) == [COUNT_MAX]


def test_hits_that_come_when_all_has_ended_are_errors(server: Memcached, name: str) -> None:
    tallies = Tallies("test")
    with counting_in({"MEMCACHE_HOST_PORT": server.address}, tallies) as counters:
        assert hit(counters, (name, 1)) == [1]
        tallies.drain()
    writer = f"memcached {server.address}"
    until(lambda: writer not in {each.name for each in threading.enumerate()}, "it has ended")
    assert hit(counters, (name, 1), (f"{name}x", 2)) == [2, 2]
    assert counted(tallies)["increment.__code=error"] == 2


def test_a_line_that_does_not_end_is_an_error(name: str) -> None:
    tallies = Tallies("test")
    endless = b"x" * (EXCHANGE_BYTES_MAX + 1)
    with (
        scripted(lambda word: endless if word == b"get" else b"3\r\n") as (port, _),
        counting_in({"MEMCACHE_HOST_PORT": f"127.0.0.1:{port}"}, tallies) as counters,
    ):
        assert hit(counters, (name, 2)) == [2]
        assert not counters.down, "it did answer"
    assert counted(tallies)["multiget.__code=error"] == 1


@pytest.fixture
def ends() -> Iterator[tuple[TimedSocket, socket.socket, socket.socket]]:
    """A socket with half a minute for each exchange, what is below it, and the node's end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield TimedSocket(ours, 30.0, reply_bytes_max=4), ours, theirs


def test_a_reply_has_one_time_out_as_a_whole(
    ends: tuple[TimedSocket, socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed, below, node = ends
    now_s = 100.0
    monkeypatch.setattr(timed_socket, "monotonic", lambda: now_s)
    timed.sendall(b"get a\r\n")
    node.sendall(b"VA")
    now_s += 20
    assert timed.recv(1) == b"V"
    assert below.gettimeout() == 10.0, "what is left of it"
    now_s += 20
    assert timed.recv(1) == b"A", "it is here, although nobody would wait for it"
    with pytest.raises(TimeoutError):
        timed.recv(1)
    assert below.gettimeout() == 0.0
    timed.sendall(b"get b\r\n")
    node.sendall(b"E")
    assert timed.recv(9) == b"E"
    assert below.gettimeout() == 30.0, "the next exchange has its own"


def test_a_reply_has_a_longest_length(
    ends: tuple[TimedSocket, socket.socket, socket.socket],
) -> None:
    timed, _, node = ends
    for _ in range(2):
        timed.sendall(b"get a\r\n")
        node.sendall(b"END\n")
        assert timed.recv(9) == b"END\n"
    node.sendall(b"x")
    with pytest.raises(LongReplyError):
        timed.recv(9)
