"""A new version of a running Tollgate: what `serve deploy` does, in a process of its own.

    python -m tests.support.processes.redeployment

in the environment of the node, with the settings of the new version. It returns when that serves.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import ray
from ray import serve as ray_serve

from tests.support.processes.killing import processes
from tests.support.processes.tollgate import COMMAND_WITHIN_S, TollgateProcess
from tests.support.waiting import until
from tollgate.serve.node.environment import node_environment
from tollgate.serve.settings import Settings, process_environment
from tollgate.serve.wiring import applications, new_run

ROOT = Path(__file__).resolve().parents[3]
CONTROL_STORE = "--gcs-address="


REPLICA = "ray::ServeReplica:"
GONE_WITHIN_S = 200.0


def replicas(tollgate: TollgateProcess) -> dict[int, str]:
    """The replicas that run, by their pids."""
    return {process.pid: name for name, process in processes(tollgate) if name.startswith(REPLICA)}


def redeploy(tollgate: TollgateProcess, changed: Mapping[str, str]) -> None:
    """Brings a version with these settings in; once it serves, and the old replicas have gone."""
    before = replicas(tollgate)
    environment = {**tollgate.environment, **changed}
    done = subprocess.run(
        [sys.executable, "-m", __name__, control_store(tollgate)],
        cwd=ROOT,
        env={**environment, **node_environment(Settings.from_environment(environment))},
        capture_output=True,
        text=True,
        timeout=COMMAND_WITHIN_S,
        check=False,
    )
    tollgate.remember_processes()
    assert done.returncode == 0, f"the new version does not serve:\n{done.stdout}{done.stderr}"
    until(lambda: before.keys().isdisjoint(replicas(tollgate)), "the old ones go", GONE_WITHIN_S)


def control_store(tollgate: TollgateProcess) -> str:
    """The address of Ray's control store, as its other processes are told it."""
    for process in psutil.Process(tollgate.pid).children(recursive=True):
        for word in process.cmdline():
            if word.startswith(CONTROL_STORE):
                return word.removeprefix(CONTROL_STORE)
    raise AssertionError("no process of Ray runs")


def main() -> None:
    (address,) = sys.argv[1:]
    ray.init(address=address, namespace="tollgate", log_to_driver=False)
    settings = Settings.from_environment(process_environment())
    ray_serve.run_many(applications(settings, new_run()))
    ray.shutdown()


if __name__ == "__main__":
    main()
