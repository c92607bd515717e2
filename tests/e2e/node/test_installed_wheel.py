"""Tollgate from its wheel alone, with its default settings, in a folder that is no checkout."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.installed_wheel import built_wheel, copied_checkout, installed
from tests.support.processes.tollgate import TollgateProcess


@pytest.fixture
def tollgate(tmp_path: Path) -> Iterator[TollgateProcess]:
    """One that does not run yet."""
    wheel = built_wheel(copied_checkout(tmp_path / "source"), tmp_path / "dist")
    executable = installed(wheel, tmp_path / "environment") / "tollgate"
    # (by default there is a dashboard; other tests do without)
    settings = {"PATH": os.defpath, "RAY_DASHBOARD_ENABLED": "true"}
    with tempfile.TemporaryDirectory(prefix="tollgate-") as folder:
        tollgate = TollgateProcess(Path(folder), settings, executable)
        yield tollgate
        tollgate.end()


def test_it_starts_serves_and_stops(tollgate: TollgateProcess) -> None:
    tollgate.up()
    status = tollgate.command("status")
    assert status.returncode == 0, status.stdout + tollgate.output()
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
