"""An operations actor with what it looks after."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import ray

from tests.integration.conftest import NAMESPACE, StartPartitions
from tests.integration.steered_clock import SteeredClock
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.operations.actor import start_operations
from tollgate.actors.operations.attendance import USUAL_BOUNDS, AttendanceBounds
from tollgate.actors.ratelimit.rules.builder import load_rules
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.watching.actor import start_watcher
from tollgate.actors.ratelimit.watching.watcher import Watcher
from tollgate.serve.ratelimit.rule_sources.files import FileArchive, RuleDirectory
from tollgate.serve.ratelimit.wiring import open_ports, statistics_pump
from tollgate.serve.settings import Settings

SETTINGS = {
    "DEBUG_HOST": "127.0.0.1",
    "DEBUG_PORT": "0",
    "USE_PULLMETRICS": "true",
    "PULLMETRICS_ADDR": "127.0.0.1:0",
}
SERIES_MAX = 100


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
    name: str,
    environ: dict[str, str],
    partitions: list[Any],
    watcher: Any,
    clock: Clock,
    bounds: AttendanceBounds = USUAL_BOUNDS,
) -> Any:
    """An operations actor with the ports of these settings."""
    ports = partial(open_ports, Settings.from_environment(environ))
    pump = partial(statistics_pump, Settings.from_environment(environ))
    parts = (ports, partitions, watcher, clock, SERIES_MAX, bounds, pump)
    return start_operations(name, NAMESPACE, *parts)


@pytest.fixture
def bounds() -> AttendanceBounds:
    """A test that waits for an actor to be replaced has shorter ones."""
    return USUAL_BOUNDS


@pytest.fixture
def operated(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    partitions: StartPartitions,
    end_after: Callable[[Any], Any],
    bounds: AttendanceBounds,
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
    parts = (SETTINGS, handles, watcher, clock, bounds)
    operations = end_after(started(request.node.name, *parts))
    ports = ray.get(operations.begin.remote(), timeout=60)
    return Operated(operations, handles, watcher, clock, ports["debug"], ports["metrics"])
