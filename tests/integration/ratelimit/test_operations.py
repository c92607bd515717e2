"""The operations actor: totals of several processes, and ports of its own."""

import os
import re
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import ray

from tests.integration.conftest import NAMESPACE, StartPartitions, pid_of
from tests.integration.steered_clock import SteeredClock
from tests.support.waiting import until
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.operations.actor import (
    PENDING_CALLS_MAX,
    send_statistics,
    start_operations,
)
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.statistics.tallies import StatisticsReporter, Tallies
from tollgate.actors.ratelimit.statistics.totals import SOURCE_SILENCE_S
from tollgate.actors.ratelimit.watching.actor import start_watcher
from tollgate.actors.ratelimit.watching.watcher import Watcher
from tollgate.serve.ratelimit.rule_sources.files import FileArchive, RuleDirectory
from tollgate.serve.ratelimit.wiring import open_ports
from tollgate.serve.settings import Settings

SETTINGS = {
    "DEBUG_HOST": "127.0.0.1",
    "DEBUG_PORT": "0",
    "USE_PULLMETRICS": "true",
    "PULLMETRICS_ADDR": "127.0.0.1:0",
}
SERIES_MAX = 100
HITS = "ratelimit.service.rate_limit.shop.k.total_hits"
LOADED = "ratelimit.service.config_load_success"
ENTRIES = "ratelimit.counters.entries"
CACHED = "ratelimit.localcache.entryCount"


@dataclass(frozen=True, slots=True)
class Operated:
    """An operations actor with what it looks after."""

    operations: Any
    partitions: list[Any]
    watcher: Any
    clock: SteeredClock
    debug: str
    metrics: str

    def statistics(self) -> dict[str, float]:
        """What `/stats` shows, by name."""
        lines = httpx.get(f"http://{self.debug}/stats", timeout=20).text.splitlines()
        return {name: float(value) for name, _, value in (line.partition(": ") for line in lines)}

    def processes(self) -> dict[str, int]:
        """The processes that the debug port knows."""
        listing = httpx.get(f"http://{self.debug}/debug/pprof/", timeout=20).text
        return {n: int(pid) for n, pid in re.findall(r"^  (\S+) \(pid (\d+)\)$", listing, re.M)}

    def hear_from(self, front: Tallies, pid: int) -> None:
        """What a front does four times a second."""
        ray.get(self.operations.absorb.remote(front.drain(), pid, self.operations), timeout=60)


def started(
    name: str, environ: dict[str, str], partitions: list[Any], watcher: Any, clock: Clock
) -> Any:
    """An operations actor with the ports of these settings."""
    ports = partial(open_ports, Settings.from_environment(environ))
    return start_operations(name, NAMESPACE, ports, partitions, watcher, clock, SERIES_MAX)


@pytest.fixture
def operated(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    partitions: StartPartitions,
    end_after: Callable[[Any], Any],
) -> Operated:
    rules = tmp_path / "config"
    rules.mkdir()
    rule = "{key: k, rate_limit: {unit: hour, requests_per_unit: 3}}"
    (rules / "shop.yaml").write_text(f"domain: shop\ndescriptors: [{rule}]\n")
    source = RuleDirectory(tmp_path, "", "config", watches_root=False, ignores_dot_files=True)
    load = partial(load_rules, merge_domains=False)
    make = partial(Watcher, "run", source, FileArchive(tmp_path / "archive.json"), load)
    watcher = end_after(start_watcher(f"{request.node.name}-watcher", NAMESPACE, make, 0.05))
    handles = partitions(2)
    clock = SteeredClock(tmp_path / "ahead")
    operations = end_after(started(request.node.name, SETTINGS, handles, watcher, clock))
    ports = ray.get(operations.begin.remote(), timeout=60)
    return Operated(operations, handles, watcher, clock, ports["debug"], ports["metrics"])


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
