"""Tollgate as an operator runs it: the real command, with ports and a data folder of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from tollgate.serve.node.socket_folder import remove_socket_folder

COMMAND = Path(sys.executable).parent / "tollgate"
COMMAND_WITHIN_S = 330.0  # longer than `tollgate up` waits by itself
# Below what the system hands out by itself, above what Ray takes for its workers.
PORTS = range(20_000, 32_000)
# For more Tollgates than one run starts.
BLOCK_PORTS = 750
PORT_SETTINGS = (
    "PORT",
    "JSON_PORT",
    "GRPC_PORT",
    "DEBUG_PORT",
    "RAY_DASHBOARD_PORT",
    "HAPROXY_METRICS_PORT",
    "HAPROXY_STATS_PORT",
    "SERVE_FALLBACK_HTTP_PORT",
    "PAYMENTS_OPERATOR_PORT",
    "PULLMETRICS_PORT",
)
# Serve gives the port of a replica that died to another one after minutes only, and a test may kill
# many.
REPLICA_PORTS = 32
# What a command needs of this process's environment; nothing else of it may change a setting.
INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
LOG_CHARS_SHOWN = 8_000


def free_ports(count: int) -> int:
    """The first of `count` ports in a row on which nobody listens, and which nobody was told of
    lately: who has ports may be about to listen there."""
    block = _own_block()
    begin = _told.get("next", block.start)
    starts = range(block.start, block.stop - count + 1)
    for start in sorted(starts, key=lambda start: (start < begin, start)):
        if all(map(_is_free, range(start, start + count))):
            _told["next"] = start + count
            return start
    raise AssertionError(f"no {count} free ports in a row between {block[0]} and {block[-1]}")


# The port behind those that were told last, and what holds this process's block.
_told: dict[str, int] = {}
_claims: list[socket.socket] = []


@cache
def _own_block() -> range:
    """The ports of this process: no other run beside it is told of them. A name in the kernel
    stands for a block, and is free again when the process has ended."""
    count = len(PORTS) // BLOCK_PORTS
    for number in (*range(os.getpid() % count, count), *range(os.getpid() % count)):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0tollgate-test-ports-{number}")
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return PORTS[number * BLOCK_PORTS : (number + 1) * BLOCK_PORTS]
    raise AssertionError(f"{count} runs beside this one have all the ports")


def _is_free(port: int) -> bool:
    try:
        with socket.create_server(("", port)):
            return True
    except OSError:
        return False


class TollgateProcess:
    """One Tollgate on this machine. `folder` holds its data and output; `settings` are variables
    on top of free ports; `executable` is its command."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str], executable: Path = COMMAND
    ) -> None:
        self._executable = executable
        first = free_ports(len(PORT_SETTINGS) + REPLICA_PORTS)
        self.ports = {name: first + i for i, name in enumerate(PORT_SETTINGS)}
        replica_port = first + len(PORT_SETTINGS)
        self.data = folder / "data"
        self.environment = {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            **{name: str(port) for name, port in self.ports.items() if name != "PULLMETRICS_PORT"},
            "PULLMETRICS_ADDR": f"127.0.0.1:{self.ports['PULLMETRICS_PORT']}",
            "SERVE_REPLICA_PORT_MIN": str(replica_port),
            "SERVE_REPLICA_PORT_MAX": str(replica_port + REPLICA_PORTS - 1),
            "TOLLGATE_DATA": str(self.data),
            # A busy machine is not what tests are about.
            "COUNTER_DEADLINE": "10s",
            # A third of a start's work, which no test waits for but one.
            "RAY_DASHBOARD_ENABLED": "false",
            **settings,
        }
        self._processes: list[psutil.Process] = []

    @property
    def grpc_address(self) -> str:
        return f"127.0.0.1:{self.ports['GRPC_PORT']}"

    def url(self, setting: str, path: str = "") -> str:
        """The address of one of its HTTP ports, by the name of the setting."""
        return f"http://127.0.0.1:{self.ports[setting]}{path}"

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `tollgate <words>` in its environment, to the end."""
        return subprocess.run(
            [self._executable, *words],
            cwd=self.data.parent,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )

    def up(self) -> None:
        """Start it; returns when it serves."""
        done = self.command("up", "--detach")
        assert done.returncode == 0, f"tollgate up failed:\n{done.stdout}{done.stderr}"
        self.remember_processes()

    def down(self) -> subprocess.CompletedProcess[str]:
        """Stop it as an operator does."""
        self.remember_processes()
        return self.command("down")

    def ask_to_stop(self) -> None:
        """Send the node SIGTERM and return at once."""
        self.remember_processes()
        os.kill(self.pid, signal.SIGTERM)

    @property
    def pid(self) -> int:
        """The node's process, from what it wrote down about itself."""
        return int(self.record["pid"])

    @property
    def record(self) -> dict[str, Any]:
        """What it wrote down about itself; empty when it does not run."""
        try:
            record: dict[str, Any] = json.loads((self.data / "run.json").read_text())
        except FileNotFoundError:
            return {}
        return record

    def remember_processes(self) -> None:
        """Note every process that belongs to it at this moment."""
        with suppress(psutil.NoSuchProcess, KeyError):
            node = psutil.Process(self.pid)
            known = {process.pid for process in self._processes}
            alive = [node, *node.children(recursive=True)]
            self._processes += [process for process in alive if process.pid not in known]

    def taken_ports(self) -> list[str]:
        """The settings of its ports on which somebody listens."""
        return [setting for setting, port in self.ports.items() if not _is_free(port)]

    def living(self) -> list[str]:
        """The processes of it that are alive."""
        names = []
        for process in self._processes:
            with suppress(psutil.NoSuchProcess):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    names.append(f"{process.name()} ({process.pid})")
        return names

    def end(self) -> None:
        """Stop it whatever state it is in; nothing of it is left."""
        try:
            if self.record:
                self.down()
        finally:
            for process in self._processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()  # (psutil sees to it that the pid is still the same process's)
            psutil.wait_procs(self._processes, timeout=10)
            remove_socket_folder(str(self.data))

    def output(self) -> str:
        """The end of what the node and its processes have written."""
        logs = [self.data / "node.log", *sorted(self.data.glob("ray/session_latest/logs/w*.err"))]
        return "".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-LOG_CHARS_SHOWN:]}\n"
            for log in logs
            if log.exists() and log.stat().st_size
        )
