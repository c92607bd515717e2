"""A Tollgate of its own for a benchmark: started by its command, on free ports, with own rules."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.support.processes.tollgate import TollgateProcess

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
# What follows the name of an actor in the title of its process.
TITLE_ENDS = re.compile(r"[.#(]")
PROCESS_LINE = re.compile(r"^\s+(\S+) \(pid (\d+)\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds used so far and memory held now, of one process."""

    cpu_s: float
    rss_bytes: int


class TollgateNode:
    """A running Tollgate, seen from outside."""

    def __init__(self, process: TollgateProcess) -> None:
        self.process = process
        self.folder = process.data.parent

    @property
    def grpc(self) -> tuple[str, int]:
        return ("127.0.0.1", self.process.ports["GRPC_PORT"])

    @property
    def http(self) -> tuple[str, int]:
        return ("127.0.0.1", self.process.ports["PORT"])

    def url(self, path: str) -> str:
        """An address of the HTTP door."""
        return self.process.url("PORT", path)

    @property
    def json_url(self) -> str:
        """The JSON door's own port."""
        return self.process.url("JSON_PORT", "/json")

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

    def cpu_s(self) -> dict[str, float]:
        """Processor seconds used so far, by the titles of its processes."""
        used: dict[str, float] = {}
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                title = " ".join(process.cmdline()[:1]).removeprefix("ray::")
                name = TITLE_ENDS.split(Path(title).name)[0] or process.name()
                times = process.cpu_times()
                used[name] = used.get(name, 0.0) + times.user + times.system
        return used

    def _debug(self, path: str) -> str:
        with urllib.request.urlopen(self.process.url("DEBUG_PORT", path), timeout=10) as page:
            return str(page.read().decode())


@contextmanager
def tollgate_node(rules: str = RULES, **settings: str) -> Iterator[TollgateNode]:
    """Start one with these rules, in a file of their own, and settings; stop it at the end."""
    with TemporaryDirectory(prefix="tollgate-bench-") as folder:
        config = Path(folder) / "rules" / "config"
        config.mkdir(parents=True)
        (config / "bench.yaml").write_text(rules)
        places = {"RUNTIME_ROOT": str(config.parent), "RUNTIME_WATCH_ROOT": "false"}
        process = TollgateProcess(Path(folder), {**places, **settings})
        try:
            process.up()
            yield TollgateNode(process)
        finally:
            process.end()


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
