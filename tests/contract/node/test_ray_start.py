"""The folders that Ray leaves behind, on a real disk; and what Tollgate relies on inside of Ray
where it leaves processes out of a start, and starts one of them itself."""

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Event

import pytest
import ray._private.worker
from ray._private.node import Node
from ray._private.ray_constants import PROCESS_TYPE_DASHBOARD
from ray._private.services import ProcessInfo

from tollgate.serve.node import ray_start
from tollgate.serve.node.environment import node_environment
from tollgate.serve.node.ray_start import (
    LEFT_OUT,
    keep_dashboard,
    only_what_serves,
    remove_old_sessions,
)
from tollgate.serve.settings import Settings

WITHIN_S = 30
DIFFERS = "Ray differs inside: look at serve/node/ray_start.py"


def test_the_last_ones_stay_and_there_is_room_for_one_more(tmp_path: Path) -> None:
    names = [f"session_2026-11-{day:02}_04-00-00_000001_{9_999 - day}" for day in range(1, 8)]
    for name in names:
        (tmp_path / name / "logs").mkdir(parents=True)
        (tmp_path / name / "logs" / "raylet.out").write_text("…")
    (tmp_path / "session_latest").symlink_to(tmp_path / names[-1])
    (tmp_path / "prom_metrics_service_discovery.json").write_text("[]")
    remove_old_sessions(tmp_path, sessions_max=3)
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "prom_metrics_service_discovery.json",
        *names[-2:],
        "session_latest",
    ]


def test_a_first_start_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_old_sessions(tmp_path / "ray")
    assert not (tmp_path / "ray").exists()


class NodeWithDashboard:
    """As much of Ray's node as keeps a dashboard, which is a process that waits. `started`: each
    one, as soon as it runs."""

    def __init__(self) -> None:
        self.all_processes: dict[str, list[ProcessInfo]] = {}
        self.started: Queue[subprocess.Popen[bytes]] = Queue()

    def start_api_server(self, *, include_dashboard: bool, raise_on_failure: bool) -> None:
        assert (include_dashboard, raise_on_failure) == (True, False)
        assert PROCESS_TYPE_DASHBOARD not in self.all_processes, "as Ray asserts"
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        fields = dict.fromkeys(ProcessInfo._fields) | {"process": process}
        self.all_processes[PROCESS_TYPE_DASHBOARD] = [ProcessInfo(**fields)]
        self.started.put(process)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeWithDashboard]:
    """The node of this process while its dashboard is kept."""
    node, is_stopping = NodeWithDashboard(), Event()
    threads_before = set(threading.enumerate())
    monkeypatch.setattr(ray._private.worker, "_global_node", node)
    monkeypatch.setattr(ray_start, "LOOK_EVERY_S", 0.01)
    keep_dashboard(is_stopping)
    yield node
    is_stopping.set()
    for thread in set(threading.enumerate()) - threads_before:
        thread.join(WITHIN_S)
    for each in node.all_processes.get(PROCESS_TYPE_DASHBOARD, ()):
        each.process.communicate(timeout=WITHIN_S)


def test_a_dashboard_that_ends_is_started_again(node: NodeWithDashboard) -> None:
    first = node.started.get(timeout=WITHIN_S)
    first.communicate(timeout=WITHIN_S)
    second = node.started.get(timeout=WITHIN_S)
    assert second.poll() is None


@only_what_serves()
def start_that_fails() -> None:
    left = [name for name in LEFT_OUT if getattr(Node, name)(object()) is None]
    assert left == list(LEFT_OUT)
    raise RuntimeError("left out")


def test_a_block_starts_what_serves_alone() -> None:
    before = {name: getattr(Node, name) for name in LEFT_OUT}
    with pytest.raises(RuntimeError, match="left out"):
        start_that_fails()
    assert {name: getattr(Node, name) for name in LEFT_OUT} == before


def test_ray_starts_what_is_left_out_by_these_methods() -> None:
    starts = inspect.getsource(Node.start_head_processes) + inspect.getsource(
        Node.start_ray_processes
    )
    for name in LEFT_OUT:
        assert f"self.{name}(" in starts, DIFFERS


def test_ray_keeps_a_dashboard_where_it_is_looked_for() -> None:
    start = inspect.getsource(Node.start_api_server)
    assert "self.all_processes[ray_constants.PROCESS_TYPE_DASHBOARD] = [" in start, DIFFERS
    arguments = inspect.signature(Node.start_api_server).parameters.keys()
    assert arguments == {"self", "include_dashboard", "raise_on_failure"}, DIFFERS
    assert "process" in ProcessInfo._fields, DIFFERS
    assert hasattr(ray._private.worker, "_global_node"), DIFFERS


def test_a_start_on_a_busy_machine_has_time() -> None:
    """Serve gives a proxy five seconds by itself, and a start then ends in a traceback."""
    script = (
        "from ray.serve._private import constants as serve\n"
        "print(serve.PROXY_READY_CHECK_TIMEOUT_S)"
    )
    environ = os.environ | node_environment(Settings())
    told = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert float(told.stdout) >= 30
