"""Tollgate from its wheel alone, with its default settings, in a folder that is no checkout, and
with Ray's dashboard, which the other Tollgates of this tier do without."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.installed_wheel import built_wheel, copied_checkout, installed
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until

# A dozen processes, which start when the doors are open.
DASHBOARD_WITHIN_S = 200.0


@pytest.fixture
def tollgate(tmp_path: Path) -> Iterator[TollgateProcess]:
    """One that does not run yet."""
    wheel = built_wheel(copied_checkout(tmp_path / "source"), tmp_path / "dist")
    executable = installed(wheel, tmp_path / "environment") / "tollgate"
    # (in its place: tracing, and the messages of both doors and of control planes)
    modules = "tracing.otlp", "rule_sources.control_plane", "fronts.health_service"
    lines = [f"import tollgate.serve.ratelimit.{module}" for module in modules]
    subprocess.run([executable.parent / "python", "-c", "\n".join(lines)], cwd=tmp_path, check=True)
    settings = {"PATH": os.defpath, "RAY_DASHBOARD_ENABLED": "true"}
    with tempfile.TemporaryDirectory(prefix="tollgate-") as folder:
        tollgate = TollgateProcess(Path(folder), settings, executable)
        yield tollgate
        tollgate.end()


def dashboard(tollgate: TollgateProcess) -> str:
    try:
        return httpx.get(tollgate.url("RAY_DASHBOARD_PORT", "/")).text
    except httpx.TransportError:  # (it starts after the doors)
        return ""


def test_it_starts_serves_and_stops(tollgate: TollgateProcess) -> None:
    tollgate.up()
    status = tollgate.command("status", "--json")
    assert status.returncode == 0, status.stdout + tollgate.output()
    address = f"127.0.0.1:{tollgate.ports['RAY_DASHBOARD_PORT']}"
    assert json.loads(status.stdout)["addresses"]["Ray dashboard"] == address
    until(
        lambda: "<title>Ray Dashboard</title>" in dashboard(tollgate),
        "it is there",
        DASHBOARD_WITHIN_S,
    )
    question = {
        "domain": "edge",
        "descriptors": [{"entries": [{"key": "path", "value": "/limited"}]}],
    }
    codes = [httpx.post(tollgate.url("PORT", "/json"), json=question).status_code for _ in range(4)]
    assert codes == [200, 200, 200, 429]
    assert httpx.post(tollgate.url("PORT", "/payments/apps"), json={}).status_code == 201
    rules = httpx.get(tollgate.url("PORT", "/catalog-auth/"))
    assert rules.status_code == 200
    down = tollgate.command("down")
    assert (down.returncode, down.stdout) == (0, "Tollgate has stopped.\n")
    assert tollgate.taken_ports() == []
