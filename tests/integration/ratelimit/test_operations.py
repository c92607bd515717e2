"""The operations actor: totals of several processes, and ports of its own."""

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import pytest
import ray

from tests.integration.conftest import pid_of
from tests.integration.ratelimit.conftest import SETTINGS, Operated, started
from tests.support.servers.statsd_server import statsd_server
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.operations.actor import PENDING_CALLS_MAX, send_statistics
from tollgate.actors.operations.process_totals import CALLS
from tollgate.actors.ratelimit.counting.actor import PartitionedCounters
from tollgate.actors.ratelimit.counting.counters import Hits
from tollgate.actors.ratelimit.statistics.tallies import StatisticsReporter, Tallies
from tollgate.actors.ratelimit.statistics.totals import SOURCE_SILENCE_S

HITS = "ratelimit.service.rate_limit.shop.k.total_hits"
LOADED = "ratelimit.service.config_load_success"
ENTRIES = "ratelimit.counters.entries"
CACHED = "ratelimit.localcache.entryCount"


def front_with(name: str, hits: int) -> Tallies:
    front = Tallies(name)
    rule = front.rule("shop.k", is_dynamic=False)
    rule.total_hits += hits
    front.touch(rule)
    front.count("ratelimit_server.ShouldRateLimit.total_requests", hits)
    return front


def test_fronts_are_summed_and_everybody_is_listed(operated: Operated) -> None:
    first, second = front_with("front-1", 5), front_with("front-2", 2)
    operated.hear_from(first, 111)
    operated.hear_from(second, 222)
    found = operated.statistics()
    assert found[HITS] == 7
    assert found["ratelimit_server.ShouldRateLimit.total_requests"] == 7
    assert found[LOADED] == 1
    operated.hear_from(first, 111)  # (it has counted nothing since)
    assert operated.statistics()[HITS] == 7
    expected = {
        "front-1": 111,
        "front-2": 222,
        "partition-0": pid_of(operated.partitions[0]),
        "partition-1": pid_of(operated.partitions[1]),
        "watcher": pid_of(operated.watcher),
    }
    until(lambda: operated.processes().items() >= expected.items(), "all processes are listed")
    assert next(iter(operated.processes())) == "front-1"


def test_both_ports_show_the_same_totals(operated: Operated) -> None:
    operated.hear_from(front_with("front-1", 4), 111)
    page = httpx.get(f"http://{operated.metrics}/metrics", timeout=20).text
    assert 'ratelimit_service_rate_limit_total_hits{domain="shop",key1="k"} 4\n' in page
    assert operated.statistics()[HITS] == 4
    rules = httpx.get(f"http://{operated.debug}/rlconfig", timeout=20).text
    assert rules.startswith("shop.k: unit=HOUR requests_per_unit=3")


def test_a_dead_fronts_counts_stay_and_its_gauges_go(operated: Operated) -> None:
    dead, alive = front_with("front-1", 5), front_with("front-2", 2)
    for front, pid in ((dead, 111), (alive, 222)):
        front.gauge(CACHED, 10)
        operated.hear_from(front, pid)
    assert operated.statistics()[CACHED] == 20
    operated.clock.set_ahead(SOURCE_SILENCE_S)
    operated.hear_from(alive, 222)
    found = operated.statistics()
    assert found[CACHED] == 10
    assert found[HITS] == 7
    assert "front-1" not in operated.processes()
    assert operated.processes()["front-2"] == 222


def test_partitions_are_asked_for_their_size(operated: Operated) -> None:
    until(lambda: operated.statistics().get(ENTRIES) == 0, "the partitions are heard")
    assert operated.statistics()["ratelimit.counters.evicted"] == 0


def test_silent_processes_hold_up_nothing(operated: Operated) -> None:
    operated.hear_from(front_with("front-1", 3), 111)
    pids = [pid_of(operated.partitions[0]), pid_of(operated.watcher)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    assert operated.statistics()[HITS] == 3
    operated.hear_from(front_with("front-1", 1), 111)
    assert operated.statistics()[HITS] == 4
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_a_report_for_which_there_is_no_room_goes_later(operated: Operated) -> None:
    front = front_with("front-1", 5)
    send = partial(send_statistics, operated.operations, 111, operated.operations)
    operations = operated.processes()["operations"]
    os.kill(operations, signal.SIGSTOP)
    nothing = Tallies("front-1").drain()
    calls = 0
    while send(nothing) is not None:
        calls += 1
        assert calls <= PENDING_CALLS_MAX, "its calls have a bound"
    reporter = StatisticsReporter(front, send)
    reporter.report()
    os.kill(operations, signal.SIGCONT)

    def counted() -> bool:
        reporter.report()
        return operated.statistics().get(HITS) == 5

    until(counted, "what could not be sent is counted")


def test_it_listens_again_after_it_was_killed(operated: Operated) -> None:
    operated.hear_from(front_with("front-1", 3), 111)
    killed = operated.processes()["operations"]
    os.kill(killed, signal.SIGKILL)

    def heard_again() -> dict[str, str] | None:
        # A front goes on sending; what it sends into the gap is lost.
        operated.operations.absorb.remote(front_with("front-1", 1).drain(), 111, None)
        try:
            ports: dict[str, str] = ray.get(operated.operations.begin.remote(), timeout=60)
        except ray.exceptions.RayError:
            return None
        return ports

    ports = until(heard_again, "it listens again")
    assert ports is not None
    anew = replace(operated, debug=ports["debug"], metrics=ports["metrics"])
    assert anew.statistics()[HITS] >= 1
    assert anew.processes()["operations"] != killed


def test_a_taken_port_is_one_clear_error(
    request: pytest.FixtureRequest, operated: Operated, end_after: Callable[[Any], Any]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = {**SETTINGS, "DEBUG_PORT": str(port)}
        parts = (settings, operated.partitions, operated.watcher, operated.clock)
        other = end_after(started(f"{request.node.name}-2", *parts))
        with pytest.raises(OSError, match="cannot listen for the debug port on 127") as failure:
            ray.get(other.begin.remote(), timeout=60)
    assert str(failure.value.cause) == (  # type: ignore[attr-defined]
        f"[Errno 98] cannot listen for the debug port on 127.0.0.1:{port}: Address already in use; "
        "free the address or set another"
    )


def test_what_is_counted_is_sent_and_nothing_of_it_again_by_a_successor(
    request: pytest.FixtureRequest, operated: Operated, end_after: Callable[[Any], Any]
) -> None:
    store = PartitionedCounters(operated.partitions, 60, SystemClock())
    for _ in range(5):
        store.hit({0: [Hits(2_000_000_000, [b"counter"], [1])]}, 1_000_000_000)
    with statsd_server("tcp") as server:
        settings = {
            "DEBUG_HOST": "127.0.0.1",
            "DEBUG_PORT": "0",
            "STATS_FLUSH_INTERVAL": "50ms",
            "USE_STATSD": "true",
            "STATSD_HOST": server.host,
            "STATSD_PORT": str(server.port),
        }
        parts = (settings, operated.partitions, operated.watcher, operated.clock)
        sending = end_after(started(f"{request.node.name}-2", *parts))
        ray.get(sending.absorb.remote(front_with("front-1", 3).drain(), 111, None), timeout=60)
        server.wait_for(HITS, 3)
        server.wait_for(CALLS, 5)
        killed = pid_of(sending)
        os.kill(killed, signal.SIGKILL)

        def has_a_successor() -> bool:
            try:
                ray.get(sending.begin.remote(), timeout=60)
                processes = ray.get(sending.processes.remote(), timeout=60)
            except ray.exceptions.RayError:
                return False
            return processes["operations"] != killed and "partition-0" in processes

        until(has_a_successor, "another one has heard of the partitions")
        ray.get(sending.absorb.remote(front_with("front-1", 4).drain(), 111, None), timeout=60)
        server.wait_for(HITS, 7)
        ray.get(sending.end.remote(), timeout=60)
        assert server.counters()[CALLS] == 5
        assert not server.malformed
