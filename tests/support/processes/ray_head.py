"""A Ray of the tests' own, in a process of its own.

    python -m tests.support.processes.ray_head FOLDER

Ray starts its processes by forking the one that asks. A test run that has imported and started a
thousand things is a poor one to fork, so a small process does it, prints the address of its Ray
and ends with its standard input. Its workers are forks of an origin, as those of a node are: a test
does not wait seconds for the imports of each actor.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import ray

from tollgate.serve.node.workers.origin import inherited_environment, start_origin

# What the actors of the tests import.
SHARED = [
    "tests.support.ledger.actors",
    "tollgate.actors.operations.actor",
    "tollgate.actors.ratelimit.counting.actor",
    "tollgate.actors.ratelimit.lent_counting.actor",
    "tollgate.actors.ratelimit.watching.actor",
    "tollgate.serve.ratelimit.rule_sources.files",
    "tollgate.serve.ratelimit.wiring",
]
OBJECT_STORE_BYTES = 80 * 1024 * 1024
ENVIRONMENT = {
    # Said outright: the default of a new local cluster writes a token into the home folder.
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray runs workers at the lowest priority; these are waited for.
    "RAY_worker_niceness": "0",
    # A node whose processes are gone is soon known to be; one that is slow is waited for.
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "30000",
}


@contextmanager
def ray_head(folder: Path) -> Iterator[str]:
    """Ray while the block runs, without Serve and dashboard: its address."""
    with keeper(__name__, folder / "head.log", str(folder)) as (_, address):
        yield address


@contextmanager
def keeper(module: str, log_file: Path, *arguments: str) -> Iterator[tuple[int, str]]:
    """A process that runs this module and keeps a node of Ray until its input ends: its pid, and
    what it said when the node was there."""
    command = [sys.executable, "-m", module, *arguments]
    with (
        log_file.open("wb") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **ENVIRONMENT, **inherited_environment(os.getpid())},
        ) as process,
    ):
        assert process.stdin is not None, "its input is a pipe"
        assert process.stdout is not None, "and so is its output"
        try:
            said = process.stdout.readline().decode().strip()
            assert said, f"Ray did not start: {log_file.read_text()}"
            yield process.pid, said
        finally:
            process.stdin.close()


def main(folder: str) -> None:
    for module in SHARED:
        import_module(module)
    sys.executable = str(start_origin(Path(folder)))
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES,
        log_to_driver=False,
        _temp_dir=folder,
    )
    sys.stdout.write(f"{ray.get_runtime_context().gcs_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
