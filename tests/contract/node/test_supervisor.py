"""The supervisor with real processes, in place of a node one that is as light as it can be."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.waiting import until
from tollgate.serve.node.run_record import read_record
from tollgate.serve.node.supervisor import EXIT_LOST, LOSSES_MAX

SUPERVISOR = """\
import sys
from tollgate.actors.kernel.clock import SystemClock
from tollgate.serve.node.supervisor import Supervisor, service_notifier
from tollgate.serve.settings import Settings
data, address, *command = sys.argv[1:]
settings = Settings.from_environment({"TOLLGATE_DATA": data})
supervisor = Supervisor(
    settings, SystemClock(), service_notifier(address), [sys.executable, *command], pause_s=0.01
)
sys.exit(supervisor.run())
"""
# Notes its own process and its children's, one a line, and is ready.
NODE = """\
import os, signal, subprocess, sys
from pathlib import Path
from tollgate.serve.node.run_record import RunRecord, write_record
folder = Path(sys.argv[1])
vital = subprocess.Popen([folder / "gcs_server", "1000"])
orphan = subprocess.check_output(["sh", "-c", "sleep 1000 >/dev/null & echo $!"], text=True).strip()
with (folder / "starts").open("a") as starts:
    print(os.getpid(), vital.pid, orphan, file=starts, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
write_record(str(folder / "data"), RunRecord(os.getppid(), 0, {}, is_ready=True))
signal.pause()
"""


def starts(folder: Path) -> list[list[int]]:
    """The processes of each start: the node, what is vital to it, an orphan."""
    try:
        lines = (folder / "starts").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [[int(pid) for pid in line.split()] for line in lines if line.endswith("\n")]


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid)


@contextmanager
def supervised(
    folder: Path, *command: str, address: str = ""
) -> Iterator["subprocess.Popen[bytes]"]:
    (folder / "data").mkdir()
    # (a process is called as the file that it runs)
    shutil.copy(shutil.which("sleep") or "sleep", folder / "gcs_server")
    words = [sys.executable, "-c", SUPERVISOR, str(folder / "data"), address, *command]
    with subprocess.Popen(words, cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()
            for pid in {pid for pids in starts(folder) for pid in pids}:
                if not is_gone(pid):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with supervised(tmp_path, "-c", NODE, str(tmp_path)) as process:
        until(lambda: is_ready(tmp_path), "the node is ready")
        yield process


def is_ready(folder: Path) -> bool:
    record = read_record(str(folder / "data"))
    return record is not None and record.is_ready


@pytest.mark.parametrize("number", [0, 1], ids=["the node", "a vital process"])
def test_what_is_lost_is_started_again(
    supervisor: "subprocess.Popen[bytes]", tmp_path: Path, number: int
) -> None:
    (first,) = starts(tmp_path)
    until(lambda: is_gone(first[2]), "an orphan is ended at once")
    os.kill(first[number], signal.SIGKILL)
    until(lambda: len(starts(tmp_path)) > 1, "another has started")
    assert [pid for pid in first if not is_gone(pid)] == []
    assert supervisor.poll() is None


def test_a_stop_ends_everything_in_order(
    supervisor: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    supervisor.terminate()
    assert supervisor.wait(20) == 0
    (only,) = starts(tmp_path)
    assert [pid for pid in only if not is_gone(pid)] == []
    assert read_record(str(tmp_path / "data")) is None


def test_a_node_that_never_ran_is_not_started_again(tmp_path: Path) -> None:
    with supervised(tmp_path, "-c", f"{COUNT}; sys.exit(3)", str(tmp_path)) as process:
        assert process.wait(20) == 3
    assert len(starts(tmp_path)) == 1


COUNT = "import os, sys; print(os.getpid(), file=open(sys.argv[1] + '/starts', 'a'))"


def test_it_gives_up_on_a_node_that_is_lost_again_and_again(tmp_path: Path) -> None:
    # An end that was not announced is a loss, whatever its status says: it is 0 every other time.
    status = "len((folder / 'starts').read_text().splitlines()) % 2"
    dying = NODE.replace("signal.pause()", f"signal.sigtimedwait([], 0.4); sys.exit({status})")
    with supervised(tmp_path, "-c", dying, str(tmp_path)) as process:
        assert process.wait(60) == EXIT_LOST
    assert len(starts(tmp_path)) == LOSSES_MAX
    assert all(is_gone(pid) for pids in starts(tmp_path) for pid in pids)


def test_a_node_that_stops_by_itself_ends_it_all(tmp_path: Path) -> None:
    # Ray's processes end before the node does: that is no loss.
    stopping = "write_record(str(folder / 'data'), RunRecord(os.getppid(), 0, is_stopping=True)); "
    stopping += "vital.kill(); signal.sigtimedwait([], 1.5)"
    with supervised(
        tmp_path, "-c", NODE.replace("signal.pause()", stopping), str(tmp_path)
    ) as process:
        assert process.wait(20) == 0
    assert len(starts(tmp_path)) == 1


@pytest.mark.parametrize("is_abstract", [False, True])
def test_a_service_manager_is_told(tmp_path: Path, is_abstract: bool) -> None:
    name = f"tollgate-{tmp_path}" if is_abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if is_abstract else name)
        manager.settimeout(20)
        address = f"@{name}" if is_abstract else name
        with supervised(tmp_path, "-c", NODE, str(tmp_path), address=address) as process:
            assert manager.recv(100) == b"READY=1"
            process.terminate()
            assert manager.recv(100) == b"STOPPING=1"
            process.wait(20)
