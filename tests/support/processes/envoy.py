"""A real Envoy with the sample configuration, moved to free ports and otherwise as it stands."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx

from tests.support.processes.tollgate import LOG_CHARS_SHOWN, free_ports
from tests.support.waiting import until

CONFIGURATION = Path(__file__).parents[3] / "configs/envoy/envoy.yaml"
# What the sample says, and what it is called here.
LISTENER, SERVICE, ADMIN, TOLLGATE = 10_000, 10_001, 9_901, 8_081
END_WITHIN_S = 10.0
WAITING = "timeout: 0.02s"  # for a decision
UNHEALTHY_AFTER = "unhealthy_threshold: 1"

Change = Callable[[str], str]
"""Another text of the configuration, made out of the sample's."""


def as_it_is(configuration: str) -> str:
    """The configuration without a change."""
    return configuration


def patient(configuration: str) -> str:
    """The configuration of an Envoy that waits for every decision, and does not take a Tollgate
    for ill that says once, on a busy machine, too late that it is well."""
    for impatient, patience in (
        (WAITING, "timeout: 20s"),
        (UNHEALTHY_AFTER, "unhealthy_threshold: 20"),
    ):
        assert configuration.count(impatient) == 1
        configuration = configuration.replace(impatient, patience)
    return configuration


class EnvoyProcess:
    """An Envoy in front of the Tollgate that listens for gRPC on `grpc_port`. `change`: of the
    sample, once its ports are moved."""

    def __init__(
        self, binary: Path, folder: Path, grpc_port: int, change: Change = as_it_is
    ) -> None:
        self._binary = binary
        self._folder = folder
        self._change = change
        first = free_ports(3)
        self._ports = {
            LISTENER: first,
            SERVICE: first + 1,
            ADMIN: first + 2,
            TOLLGATE: grpc_port,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._ports[LISTENER]}"

    def start(self) -> None:
        """Returns when it listens and has found Tollgate healthy."""
        self._folder.mkdir(parents=True)
        configuration = self._folder / "envoy.yaml"
        configuration.write_text(self._change(self._moved(CONFIGURATION.read_text())))
        with (self._folder / "envoy.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._binary,
                    *("--config-path", configuration),
                    *("--log-level", "warning", "--concurrency", "1", "--use-dynamic-base-id"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._is_ready, "Envoy is ready")

    def statistic(self, name: str) -> int:
        """The value of one of Envoy's counters or gauges."""
        answer = httpx.get(self._admin(f"/stats?format=json&filter=^{re.escape(name)}$"))
        found = json.loads(answer.text)["stats"]
        return int(found[0]["value"]) if found else 0

    def end(self) -> None:
        """Stop it, whatever state it is in."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def output(self) -> str:
        """The end of what it has written."""
        log = self._folder / "envoy.log"
        text = log.read_text(errors="replace") if log.exists() else ""
        return f"--- envoy.log\n{text[-LOG_CHARS_SHOWN:]}\n--- its calls\n{self._calls()}\n"

    def _calls(self) -> str:
        """What became of its calls, by its own counters; why there are none."""
        try:
            return httpx.get(self._admin("/stats?usedonly&filter=upstream_|ratelimit|grpc")).text
        except httpx.HTTPError as error:
            return repr(error)

    def _moved(self, text: str) -> str:
        def other(found: re.Match[str]) -> str:
            return f"port_value: {self._ports[int(found[1])]}"

        moved, count = re.subn(r"port_value: (\d+)", other, text)
        assert count == 5, "the sample has five ports: the listener, the service twice, two more"
        return moved

    def _admin(self, path: str) -> str:
        return f"http://127.0.0.1:{self._ports[ADMIN]}{path}"

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"Envoy has ended:\n{self.output()}"
        try:
            is_live = httpx.get(self._admin("/ready")).status_code == 200
        except httpx.TransportError:
            return False
        return is_live and self.statistic("cluster.tollgate.membership_healthy") == 1
