"""A Tollgate of its own for a benchmark: started by its command, on free ports, with own rules."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from serve.ports import free_port

RULES = """\
domain: bench
descriptors:
  - key: hot
    rate_limit: {unit: hour, requests_per_unit: 4000000000}
  - key: key
    rate_limit: {unit: hour, requests_per_unit: 100}
  - key: closed
    rate_limit: {unit: hour, requests_per_unit: 1}
"""
PROCESS_LINE = re.compile(r"^\s+(\S+) \(pid (\d+)\)$", re.MULTILINE)
PORT_SETTINGS = (
    "PORT",
    "GRPC_PORT",
    "DEBUG_PORT",
    "RAY_DASHBOARD_PORT",
    "HAPROXY_METRICS_PORT",
    "HAPROXY_STATS_PORT",
    "SERVE_FALLBACK_HTTP_PORT",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds used so far and memory held now, of some processes."""

    cpu_s: float
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class TollgateNode:
    """A running Tollgate. Ports by their setting's name."""

    ports: Mapping[str, int]

    @property
    def grpc(self) -> tuple[str, int]:
        return ("127.0.0.1", self.ports["GRPC_PORT"])

    def counter(self, name: str) -> int:
        """A statistic's total, 0 when it was never counted."""
        found = re.search(rf"^{re.escape(name)}: (\d+)$", self._debug("/stats"), re.MULTILINE)
        return int(found[1]) if found else 0

    def usage(self) -> dict[str, Usage]:
        """Of the fronts and the partitions, by name."""
        used = {}
        for name, pid in PROCESS_LINE.findall(self._debug("/debug/pprof/")):
            if name.startswith(("front", "partition")):
                process = psutil.Process(int(pid))
                times = process.cpu_times()
                used[name] = Usage(times.user + times.system, process.memory_info().rss)
        return used

    def _debug(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.ports['DEBUG_PORT']}{path}"
        with urllib.request.urlopen(url, timeout=10) as page:
            return str(page.read().decode())


@contextmanager
def tollgate_node(rules: str = RULES, **settings: str) -> Iterator[TollgateNode]:
    """Start one with these settings; stop it at the end."""
    with TemporaryDirectory(prefix="tollgate-bench-") as folder:
        config = Path(folder) / "rules" / "config"
        config.mkdir(parents=True)
        (config / "bench.yaml").write_text(rules)
        ports = {name: free_port() for name in PORT_SETTINGS}
        lowest = 20_000 + ports["PORT"] % 9_000
        environment = {
            **os.environ,
            "TOLLGATE_DATA": str(Path(folder) / "data"),
            "RUNTIME_ROOT": str(config.parent),
            "RUNTIME_WATCH_ROOT": "false",
            "SERVE_REPLICA_PORT_MIN": str(lowest),
            "SERVE_REPLICA_PORT_MAX": str(lowest + 20),
            **{name: str(port) for name, port in ports.items()},
            **settings,
        }
        command = [sys.executable, "-m", "serve.cli"]
        subprocess.run([*command, "up", "--detach"], env=environment, check=True)
        try:
            yield TollgateNode(ports)
        finally:
            subprocess.run([*command, "down"], env=environment, check=True)


def json_body(*descriptors: dict[str, str]) -> bytes:
    """A JSON request of the benchmark's domain."""
    return json.dumps(
        {
            "domain": "bench",
            "descriptors": [
                {"entries": [{"key": key, "value": value} for key, value in entries.items()]}
                for entries in descriptors
            ],
        }
    ).encode()
