"""Another node of the tests' Ray, in a process of its own, on this machine.

    python -m tests.support.processes.ray_node FOLDER ADDRESS

It shares no process with the node at ADDRESS: so it can be killed as if its machine were gone.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import psutil
from ray._private.node import Node
from ray._private.parameter import RayParams

from tests.support.processes.ray_head import OBJECT_STORE_BYTES, SHARED, keeper
from tollgate.serve.node.workers.origin import start_origin


@dataclass(frozen=True, slots=True)
class RayNode:
    """The node, by the process that keeps it."""

    keeper: psutil.Process

    def runs(self, pid: int) -> bool:
        """Whether a process is one of this node's."""
        return pid in {each.pid for each in self.processes()}

    def processes(self) -> list[psutil.Process]:
        return [self.keeper, *self.keeper.children(recursive=True)]

    def kill(self) -> None:
        """End all its processes, as a machine that loses its power."""
        processes = self.processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()  # (nobody sees the others go, and says so)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()


@contextmanager
def ray_node(folder: Path, address: str) -> Iterator[RayNode]:
    """A node while the block runs, unless it is killed before."""
    with keeper(__name__, folder / "node.log", str(folder), address) as (pid, _):
        yield RayNode(psutil.Process(pid))


def main(folder: str, address: str) -> None:
    for module in SHARED:
        import_module(module)
    sys.executable = str(start_origin(Path(folder)))
    parameters = RayParams(  # type: ignore[no-untyped-call]
        gcs_address=address,
        redis_address=address,
        num_cpus=1,
        object_store_memory=OBJECT_STORE_BYTES,
        min_worker_port=0,
        max_worker_port=0,
        node_manager_port=0,
        dashboard_agent_listen_port=None,
        include_log_monitor=False,
    )
    node = Node(parameters, head=False, shutdown_at_exit=True, spawn_reaper=True)
    sys.stdout.write("there\n")
    sys.stdout.flush()
    sys.stdin.read()
    node.kill_all_processes(check_alive=False, allow_graceful=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
