"""Actors whose processes are stopped, and do not end: they are noticed and replaced."""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import pytest
import ray
from ray.exceptions import RayError

from tests.integration.conftest import NAMESPACE
from tests.integration.ratelimit.conftest import Operated
from tests.support.manual_clock import ManualClock
from tests.support.waiting import until
from tollgate.actors.kernel.actor import ActorSeat, named_actor
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.operations.attendance import AttendanceBounds
from tollgate.actors.operations.attendant import ENDED, Attendant
from tollgate.actors.ratelimit.counting.actor import PartitionedCounters
from tollgate.actors.ratelimit.counting.counters import Hits, Unreachable
from tollgate.actors.ratelimit.statistics.tallies import Tallies

BOUNDS = AttendanceBounds(look_every_s=1.0, looks_max=5, start_within_s=60.0, late_by_s=10.0)
# For a busy machine: Ray takes 5 s to end a process that is stopped, and a start takes its time.
REPLACED_WITHIN_S = 240.0
ANSWERS_WITHIN_S = 20.0
NOW_S, END_S = 1_000_000, 1_003_600
GATE = "closed"


class SeenSeat(ActorSeat):
    """Counts the pings: with the second one, the first has been answered."""

    pings = 0
    last: "Future[Any] | None" = None

    def ping(self) -> "Future[Any]":
        self.pings += 1
        self.last = super().ping()
        return self.last

    def is_heard(self) -> bool:
        """Whether the last ping was answered."""
        return self.last is not None and self.last.done() and self.last.exception() is None


@pytest.fixture
def bounds() -> AttendanceBounds:
    return BOUNDS


def stop(handle: Any) -> int:
    """Stop an actor's process; its pid."""
    # (it may just have been replaced: on a busy machine a healthy one can seem to hang)
    pid = until(lambda: answering(handle), "it answers", REPLACED_WITHIN_S)
    os.kill(pid, signal.SIGSTOP)
    return pid


def answering(handle: Any) -> int:
    """The process of an actor that answers; 0 while none does."""
    try:
        return int(ray.get(handle.describe.remote(), timeout=ANSWERS_WITHIN_S)["pid"])
    except RayError:
        return 0


def has_rules(watcher: Any) -> bool:
    try:
        dump: str = ray.get(watcher.dump.remote(), timeout=ANSWERS_WITHIN_S)
    except RayError:
        return False
    return dump.startswith("shop.k: ")


def until_replaced(handle: Any, stopped: int) -> None:
    """Returns once another process answers, and the one that was stopped has ended."""
    others = {0, stopped}
    until(lambda: answering(handle) not in others, "it is replaced", REPLACED_WITHIN_S)
    until(lambda: not psutil.pid_exists(stopped), "it has ended, though it was stopped")


def test_a_partition_and_the_watcher_that_hang_are_replaced_by_the_operations(
    operated: Operated,
) -> None:
    partition, watcher = operated.partitions[1], operated.watcher
    known = {"partition-0", "partition-1", "watcher"}
    until(lambda: operated.processes().keys() >= known, "all of them have been seen")
    stopped = stop(partition), stop(watcher)
    until_replaced(partition, stopped[0])
    until_replaced(watcher, stopped[1])
    store = PartitionedCounters(operated.partitions, ANSWERS_WITHIN_S, SystemClock())
    hit = {1: [Hits(END_S, [b"counter"], [1])]}
    until(lambda: not isinstance(store.hit(hit, NOW_S)[1], Unreachable), "it counts again")
    until(lambda: has_rules(watcher), "the watcher has its rules", REPLACED_WITHIN_S)
    until(lambda: operated.statistics().get(ENDED, 0) >= 2, "those that were ended are counted")


def test_operations_that_hang_are_replaced_by_the_fronts(
    operated: Operated, end_after: Callable[[Any], Any]
) -> None:
    fronts = [Tallies("front-1"), Tallies("front-2")]
    is_dismissed = Event()
    seats = [SeenSeat(operated.operations) for _ in fronts]
    threads = []
    for front, seat in zip(fronts, seats, strict=True):
        attendant = Attendant({"operations": seat}, SystemClock(), front.count, BOUNDS)
        threads.append(Thread(target=attendant.attend, args=(is_dismissed,), daemon=True))
        threads[-1].start()
    until(lambda: all(seat.pings > 1 for seat in seats), "both have heard of them")
    stopped = stop(operated.operations)
    until_replaced(operated.operations, stopped)
    is_dismissed.set()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert sum(front.drain().counts[ENDED] for front in fronts) >= 1
    until(lambda: answering(operated.operations), "it answers", REPLACED_WITHIN_S)
    ports = ray.get(operated.operations.begin.remote(), timeout=60)
    assert set(ports) == {"debug", "metrics"}


class SlowStart:
    """An actor whose start takes until somebody opens its gate."""

    def __init__(self, folder: Path) -> None:
        (folder / str(os.getpid())).touch()
        until(lambda: not (folder / GATE).exists(), "the gate opens", REPLACED_WITHIN_S)

    def describe(self) -> dict[str, int]:
        return {"pid": os.getpid()}


@pytest.mark.parametrize("retries", [0, -1])
def test_a_slow_start_is_waited_for_and_one_that_hangs_is_ended(
    request: pytest.FixtureRequest, tmp_path: Path, end_after: Callable[[Any], Any], retries: int
) -> None:
    """With `retries`, Ray keeps pings for a process that is being started; that is no hang."""
    actor = named_actor(SlowStart, request.node.name, NAMESPACE, max_task_retries=retries)
    handle = end_after(actor.remote(tmp_path))
    clock, tallies, is_dismissed = ManualClock(), Tallies("front-1"), Event()
    seat = SeenSeat(handle)
    attendant = Attendant({"seat": seat}, clock, tallies.count, BOUNDS)

    def look() -> int:
        """Look once; how many have been ended since the last time."""
        attendant.look(is_dismissed)
        clock.advance(BOUNDS.look_every_s)
        return tallies.drain().counts.get(ENDED, 0)

    # The first start and the first answer take as long as they take: no time passes meanwhile.
    first = until(lambda: answering(handle), "it is started", REPLACED_WITHIN_S)
    assert look() == 0
    until(seat.is_heard, "it answers the ping", REPLACED_WITHIN_S)
    assert (look(), seat.pings) == (0, 2)
    (tmp_path / GATE).touch()
    os.kill(first, signal.SIGKILL)
    until(
        lambda: len(started_in(tmp_path)) == 2 and seat.is_away(None),
        "it is started again",
        REPLACED_WITHIN_S,
    )
    assert [look() for _ in range(3 * BOUNDS.looks_max)] == [0] * 3 * BOUNDS.looks_max
    clock.advance(BOUNDS.late_by_s)
    for _ in range(int(BOUNDS.start_within_s)):
        if look():
            break
    else:
        raise AssertionError("a start that hangs is ended after its time")
    until(lambda: len(started_in(tmp_path)) == 3, "another process is started", REPLACED_WITHIN_S)
    (tmp_path / GATE).unlink()
    until(lambda: answering(handle) in started_in(tmp_path), "it answers", REPLACED_WITHIN_S)


def started_in(folder: Path) -> set[int]:
    return {int(each.name) for each in folder.iterdir() if each.name != GATE}


class Idle:
    """An actor that has nothing to do."""

    def describe(self) -> dict[str, int]:
        return {"pid": os.getpid()}


def test_a_process_that_ray_leaves_alone_is_ended_on_its_node(
    request: pytest.FixtureRequest,
    end_after: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray asks a process to end itself before it ends it, and when it cannot ask, it gives up."""
    handle = end_after(named_actor(Idle, request.node.name, NAMESPACE).remote())
    stopped = stop(handle)
    words = []
    monkeypatch.setattr(ray, "kill", lambda *_, no_restart: words.append(no_restart))
    ActorSeat(handle).end()
    monkeypatch.undo()
    assert words == [False]
    until_replaced(handle, stopped)
