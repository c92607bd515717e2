"""Ray's processes that no caller waits for: two are left out, and the dashboard comes last.

Ray starts a monitor for clusters that grow, a monitor that sends workers' output to a driver, and
waits for a dashboard of a dozen processes: four seconds, and processor time that workers need at
the same moment. Here nothing grows and nobody reads that output. The dashboard is started when the
doors are open, and again when it has ended, for which Ray itself has nobody.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import ray._private.worker
from ray._private.node import Node
from ray._private.ray_constants import PROCESS_TYPE_DASHBOARD

LOG = logging.getLogger("tollgate.node")
LEFT_OUT = ("start_monitor", "start_log_monitor", "start_api_server")
# A start that fails is no reason to try all the time.
LOOK_EVERY_S = 5.0


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
    try:
        node.start_api_server(include_dashboard=True, raise_on_failure=True)
    except Exception as error:
        # Ray's reasons are of many kinds, and none of them is one to stop serving.
        LOG.warning("the Ray dashboard did not start: %s", error)
