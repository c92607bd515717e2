"""What surrounds a start of Ray: folders of earlier ones, and processes that no caller waits for.

Ray makes a folder `session_<time>_<pid>` for each start and never removes one.

Ray starts a monitor for clusters that grow, a monitor that sends workers' output to a driver, and
waits for a dashboard of a dozen processes: four seconds, and processor time that workers need at
the same moment. Here nothing grows and nobody reads that output. The dashboard is started when the
doors are open, and again when it has ended, for which Ray itself has nobody.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import ray._private.worker
from ray._private.node import Node
from ray._private.ray_constants import PROCESS_TYPE_DASHBOARD

# With the one that is about to begin.
SESSIONS_MAX = 5
LEFT_OUT = ("start_monitor", "start_log_monitor", "start_api_server")
# A start that fails is no reason to try all the time.
LOOK_EVERY_S = 5.0


def remove_old_sessions(folder: Path, sessions_max: int = SESSIONS_MAX) -> None:
    """Makes room for one session more: what was begun first goes first. Call it while no Ray runs
    in the folder. What cannot be removed stays."""
    sessions = sorted(each for each in folder.glob("session_*") if not each.is_symlink())
    for session in sessions[: max(0, len(sessions) + 1 - sessions_max)]:
        shutil.rmtree(session, ignore_errors=True)


@contextmanager
def only_what_serves() -> Iterator[None]:
    """Has Ray start none of these processes while the block runs."""
    kept = {name: getattr(Node, name) for name in LEFT_OUT}
    for name in LEFT_OUT:
        setattr(Node, name, _leave_out)
    try:
        yield
    finally:
        for name, start in kept.items():
            setattr(Node, name, start)


def _leave_out(*_: object, **__: object) -> None:
    """Starts nothing."""


def keep_dashboard(is_stopping: Event) -> None:
    """Starts the dashboard of a Ray that was started with `only_what_serves`, and again whenever it
    has ended, until the event is set."""
    Thread(target=_keep, args=(is_stopping,), name="dashboard", daemon=True).start()


def _keep(is_stopping: Event) -> None:
    # One thread for all starts: the kernel ends the dashboard with the thread that started it.
    while True:
        node = ray._private.worker._global_node
        if node is not None and not _has_dashboard(node):
            _start(node)
        if is_stopping.wait(LOOK_EVERY_S):
            return


def _has_dashboard(node: Node) -> bool:
    known = node.all_processes.get(PROCESS_TYPE_DASHBOARD, ())
    return any(each.process.poll() is None for each in known)


def _start(node: Node) -> None:
    node.all_processes.pop(PROCESS_TYPE_DASHBOARD, None)
    # A dashboard that does not start is no reason to stop serving: Ray logs why.
    node.start_api_server(include_dashboard=True, raise_on_failure=False)
