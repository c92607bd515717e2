"""One local Ray for the whole tier, without Serve and dashboard; each test has its own actors."""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray

from tests.support.processes.ray_head import ENVIRONMENT, ray_head
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.actor import start_partitions

NAMESPACE = "integration"
COUNTERS_MAX = 1_000

StartPartitions = Callable[[int], list[Any]]


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """Ray, in children of this process."""
    folder = Path(tempfile.mkdtemp(prefix="tollgate-ray-"))
    with ray_head(folder) as address, pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False)
        try:
            yield
        finally:
            ray.shutdown()
    shutil.rmtree(folder)


@pytest.fixture
def end_after(local_ray: None) -> Iterator[Callable[[Any], Any]]:
    """Takes note of a detached actor, which ends with the test."""
    handles: list[Any] = []

    def note(handle: Any) -> Any:
        handles.append(handle)
        return handle

    yield note
    for handle in handles:
        ray.kill(handle)


@pytest.fixture
def partitions(
    request: pytest.FixtureRequest, end_after: Callable[[Any], Any]
) -> Iterator[StartPartitions]:
    """Starts as many counter partitions as are asked for."""
    started: list[Any] = []

    def start(count: int) -> list[Any]:
        names = [f"{request.node.name}-{number}" for number in range(count)]
        started.extend(start_partitions(names, NAMESPACE, COUNTERS_MAX, SystemClock()))
        return [end_after(handle) for handle in started]

    yield start
    # One that is stopped could not be ended.
    for process in _stopped_children():
        process.resume()


def _stopped_children() -> Sequence[psutil.Process]:
    stopped = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_STOPPED:
                stopped.append(process)
    return stopped


def pid_of(handle: Any) -> int:
    """The process of an actor that describes itself."""
    return int(ray.get(handle.describe.remote(), timeout=60)["pid"])


def kill(handle: Any) -> int:
    """Kill the actor's process as the kernel would; the pid that it had."""
    pid = pid_of(handle)
    os.kill(pid, signal.SIGKILL)
    return pid
