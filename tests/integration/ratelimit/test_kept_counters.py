"""Counters of real partitions on a real disk: with what a process has written the next one goes on.

Nobody who has borrowed is left in these tests, so what is known is what the journals say.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import RayError

from tests.integration.conftest import COUNTERS_MAX, NAMESPACE, kill, pid_of
from tests.support.ratelimit.journals import counts_of
from tests.support.ratelimit.lent_fronts import LentFront
from tests.support.waiting import until
from tollgate.actors.kernel.actor import named_actor
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.actor import PartitionedCounters, start_partitions
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.actor import start_lent_partitions
from tollgate.actors.ratelimit.snapshots.journal_folder import JournalFolder, JournalName
from tollgate.actors.ratelimit.snapshots.keeper import SnapshotKeeper
from tollgate.actors.ratelimit.snapshots.restoration import Restoration

DEADLINE_S = 60.0
ANSWER_WITHIN_S = 180.0
END_S = (int(SystemClock().now_s()) // 86_400 + 3) * 86_400
NAME = JournalName(0, 1)
QUESTION = (0, b"k", 1_000)
QUOTA_NEVER_ASKED = 1_000_000
# The partition counts every hit itself: a front that had some of them at home would take them along
# when its term ran out, as it does on a machine that is slow for a while.
TERMS = Terms(handed_over_max=-1, loan_min=QUOTA_NEVER_ASKED)


class Cast:
    """The actors of a test, by names of its own. `folder`: of the journals."""

    def __init__(self, name: str, folder: Path, end_after: Callable[[Any], Any]) -> None:
        self._name = name
        self._folder = folder
        self._end_after = end_after

    def partition(self, run: str, interval_s: float) -> Any:
        """A partition that keeps a journal. `interval_s`: between writes."""
        names, clock = [f"{self._name}-{run}"], SystemClock()
        keepers = [self._make_keeper(interval_s)]
        (started,) = start_lent_partitions(names, NAMESPACE, TERMS, clock, keepers)
        return self._end_after(started)

    def direct_partition(self, run: str, interval_s: float) -> Any:
        """One that is asked for every hit."""
        names, clock = [f"{self._name}-{run}"], SystemClock()
        keepers = [self._make_keeper(interval_s)]
        (started,) = start_partitions(names, NAMESPACE, COUNTERS_MAX, clock, keepers)
        return self._end_after(started)

    def _make_keeper(self, interval_s: float) -> Callable[[], SnapshotKeeper]:
        folder = JournalFolder(self._folder)
        return partial(SnapshotKeeper, folder, NAME, interval_s, SystemClock())

    def front(self, run: str, partition: Any) -> Any:
        """A front that borrows from it."""
        name = f"{self._name}-front-{run}"
        actor = named_actor(LentFront, name, NAMESPACE, max_task_retries=0)
        started = self._end_after(actor.remote(name, [partition], DEADLINE_S, TERMS, END_S))
        pid_of(started)
        return started


@pytest.fixture
def cast(request: pytest.FixtureRequest, end_after: Callable[[Any], Any], tmp_path: Path) -> Cast:
    return Cast(request.node.name, tmp_path, end_after)


def has_another_process(actor: Any, pid: int) -> bool:
    with suppress(RayError):
        return pid_of(actor) != pid
    return False


def ask(front: Any, times: int = 1) -> list[int | str]:
    answers: list[int | str] = ray.get(front.ask.remote(QUESTION, times), timeout=ANSWER_WITHIN_S)
    return answers


def on_disk(folder: Path) -> int:
    """The count that a process would find that starts now."""
    counters = Restoration(JournalFolder(folder), NAME).counters()
    return counts_of(counters).get((END_S, QUESTION[1]), 0)


def test_a_killed_partition_goes_on_where_its_journal_ends(cast: Cast, tmp_path: Path) -> None:
    partition = cast.partition("first", 0.05)
    front = cast.front("first", partition)
    assert ask(front, 5) == [1, 2, 3, 4, 5]
    until(lambda: on_disk(tmp_path) == 5, "the hits are on disk")
    ray.kill(front)
    killed = kill(partition)
    until(lambda: has_another_process(partition, killed), "it is back", ANSWER_WITHIN_S)
    other = cast.front("second", partition)
    # (until it has asked around for long enough it counts nothing)
    until(lambda: ask(other) == [6], "it counts on", ANSWER_WITHIN_S)
    until(lambda: on_disk(tmp_path) == 6, "that is on disk, too")


def test_a_partition_that_finishes_has_written_everything(cast: Cast, tmp_path: Path) -> None:
    partition = cast.partition("first", 3_600)
    front = cast.front("first", partition)
    assert ask(front, 7)[-1] == 7
    ray.get(front.close.remote(), timeout=ANSWER_WITHIN_S)
    ray.get(partition.finish.remote(), timeout=ANSWER_WITHIN_S)
    assert on_disk(tmp_path) == 7
    # Of the other one nothing is known but the journal.
    successor = cast.partition("second", 3_600)
    assert ask(cast.front("second", successor)) == [8]
    said = ray.get(successor.describe.remote(), timeout=ANSWER_WITHIN_S)
    assert said["snapshot_failures"] == 0


def test_one_that_is_asked_for_every_hit_goes_on_as_well(cast: Cast, tmp_path: Path) -> None:
    partition = cast.direct_partition("first", 0.05)
    store = PartitionedCounters([partition], DEADLINE_S, SystemClock())

    def hit() -> object:
        _, key, limit = QUESTION
        hits = [LimitedHits(END_S, [key], [1], [limit])]
        return store.hit({0: hits}, int(SystemClock().now_s()))[0]

    assert [hit() for _ in range(5)] == [[[count]] for count in range(1, 6)]
    until(lambda: on_disk(tmp_path) == 5, "the hits are on disk")
    killed = kill(partition)
    until(lambda: has_another_process(partition, killed), "it is back", ANSWER_WITHIN_S)
    assert hit() == [[6]]
    assert ray.get(partition.finish.remote(), timeout=ANSWER_WITHIN_S)
    assert on_disk(tmp_path) == 6
