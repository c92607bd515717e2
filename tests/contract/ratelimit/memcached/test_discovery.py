"""Nodes of Memcached that the DNS names: their order, new ones, and a DNS that fails (B11)."""

from collections.abc import Iterator
from contextlib import contextmanager

import dns.rcode
import pytest

from tests.support.ratelimit.counting_in_memcached import PATIENT, hit
from tests.support.servers.memcached import Memcached
from tests.support.servers.name_server import NameServer, name_server
from tests.support.waiting import PATIENCE_S, until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.backends.memcached import nodes as memcached_nodes
from tollgate.serve.ratelimit.backends.memcached.counters import MemcachedCounters
from tollgate.serve.ratelimit.backends.memcached.items import node_number
from tollgate.serve.ratelimit.backends.memcached.store import memcached_nodes as nodes_of
from tollgate.serve.settings import Settings

RECORD = "_memcache._tcp.example.com"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    monkeypatch.setattr(memcached_nodes, "LOOK_UP_WITHIN_S", PATIENCE_S)
    with name_server() as server:
        yield server


@contextmanager
def discovered(names: NameServer, refresh: str = "0") -> Iterator[MemcachedCounters]:
    settings = Settings.from_environment(
        PATIENT | {"MEMCACHE_SRV": RECORD, "MEMCACHE_SRV_REFRESH": refresh}
    )
    nodes = nodes_of(settings, SystemClock(), Tallies("test"), names.resolver)
    counters = MemcachedCounters(nodes, fails_open=True, has_calendar_months=False)
    try:
        yield counters
    finally:
        counters.close()


def test_nodes_are_in_the_order_of_their_names(
    names: NameServer, server: Memcached, second: Memcached, name: str
) -> None:
    records = [f"{n} 1 {node.port} localhost." for n, node in ((1, second), (2, server))]
    names.records[RECORD] = records
    in_order = sorted((server, second), key=lambda each: f"localhost.:{each.port}")
    items = [f"{name}.{number}" for number in range(20)]
    with discovered(names) as counters:
        until(lambda: counters.has_begun, "the nodes are known")
        assert hit(counters, *((each, 1) for each in items)) == [1] * len(items)
    for each in items:
        item = f"{each}_960".encode()
        assert in_order[node_number(item, 2)].value(item) == b"1"


def test_a_node_that_is_new_counts_and_one_that_is_gone_does_not(
    names: NameServer, server: Memcached, second: Memcached, name: str
) -> None:
    names.records[RECORD] = [f"1 1 {server.port} localhost."]
    with discovered(names, "50ms") as counters:
        until(lambda: counters.has_begun, "the node is known")
        assert hit(counters, (name, 1)) == [1]
        names.records[RECORD] = [f"1 1 {second.port} localhost."]
        until(lambda: hit(counters, (name, 1)) and second.value(f"{name}_960".encode()), "the move")
        assert not counters.down
        counters.probe()


def test_a_look_up_that_fails_changes_nothing(
    names: NameServer, server: Memcached, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    names.records[RECORD] = [f"1 1 {server.port} localhost."]
    with discovered(names, "50ms") as counters:
        until(lambda: counters.has_begun, "the node is known")
        names.failure = dns.rcode.SERVFAIL
        seen = names.asked
        until(lambda: names.asked > seen + 4, "it is looked up again")
        assert hit(counters, (name, 1)) == [1]
        assert hit(counters, (name, 1)) == [2]
    assert caplog.text.count("cannot be looked up") == 1


def test_without_nodes_the_store_has_not_begun_and_hits_pass(
    names: NameServer, server: Memcached, name: str
) -> None:
    with discovered(names) as counters:
        until(lambda: names.asked, "it is looked up")
        assert not counters.has_begun
        assert counters.down == {0}
        assert hit(counters, (name, 1)) == [1]
        names.records[RECORD] = [f"1 1 {server.port} localhost."]
        until(lambda: counters.has_begun, "it is looked up again")
        assert hit(counters, (name, 1)) == [1]
        assert hit(counters, (name, 1)) == [2]
