"""Lending between real processes that are killed and stopped while everybody asks for more.

No more is admitted than the limits allow, and all of it, for all is asked for until it is refused.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
import ray
from ray.exceptions import RayError

from tests.integration.conftest import NAMESPACE, kill, pid_of
from tests.support.ratelimit.pressing_fronts import Admissions, PressingFront, Quota, admissions
from tests.support.waiting import until
from tollgate.actors.kernel.actor import named_actor
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.actor import start_lent_partitions

SECOND_S, MINUTE_S, DAY_S = 1, 60, 86_400
# Limits, and by how many hits each is used up. Those of a day are asked for until they are refused.
STEPS = {1: 1, 10: 1, 1_000: 10, 1_000_000: 5_000}
FEW = [(DAY_S, limit) for limit in STEPS] + [(MINUTE_S, 1_000), (SECOND_S, 10)]
ALL = [(unit_s, limit) for unit_s in (DAY_S, MINUTE_S, SECOND_S) for limit in STEPS]
QUOTAS = pytest.mark.parametrize(
    "asked_for", [FEW, pytest.param(ALL, marks=pytest.mark.repetition)], ids=["few", "all"]
)
# A busy machine is not what this is about; see `test_lent_counting`.
DEADLINE_S = 120.0
ANSWER_WITHIN_S = 180.0
# Longer than an ask may wait, twice.
USED_UP_WITHIN_S = 300.0
# Longer than a busy machine keeps a front from saying that it is there.
TERM_S = 15.0
LONG_TERM_S = 600.0
STOPPED_FOR_S = 0.2
UNDER_WAY = 100
"""Answers after which the load is well under way, and far from its end."""


@dataclass(frozen=True)
class Pressure:
    """Two partitions, and two fronts that ask for more than there is."""

    partitions: list[Any]
    fronts: list[Any]
    quotas: list[Quota]
    records: list[Path]

    def is_under_way(self, front: int, answers: int) -> bool:
        """Whether a front has had so many answers of each partition."""
        answered = ray.get(self.fronts[front].answered.remote(), timeout=ANSWER_WITHIN_S)
        return min(answered) >= answers

    def is_used_up(self, front: int) -> bool:
        """Whether a front was refused whatever has a single window."""
        refused = ray.get(self.fronts[front].refused.remote(), timeout=ANSWER_WITHIN_S)
        return refused == {n for n, quota in enumerate(self.quotas) if quota.end_s}

    def admitted(self) -> Admissions:
        return sum(map(admissions, self.records), Counter())

    def check(self, could_be_lost: Admissions | None = None) -> None:
        """Hold what was admitted to the limits. `could_be_lost`: what was known to a front alone
        that has died may have been admitted once more, and what it was just being told is known to
        nobody."""
        lost = could_be_lost or Counter()
        admitted = self.admitted()
        for (number, end_s), hits in admitted.items():
            limit = self.quotas[number].limit
            assert hits <= limit + lost[number, end_s], (self.quotas[number], end_s)
        for number, quota in enumerate(self.quotas):
            if quota.end_s:
                least = quota.limit - (quota.by if could_be_lost else 0)
                assert admitted[number, quota.end_s] >= least, quota


@pytest.fixture
def press(
    request: pytest.FixtureRequest, tmp_path: Path, end_after: Callable[[Any], Any]
) -> Iterator[Callable[..., Pressure]]:
    """Starts two partitions, and two fronts that ask."""
    pids: list[int] = []

    def start(asked_for: Sequence[tuple[int, int]], term_s: float = TERM_S) -> Pressure:
        # (a name for each test, without what is in brackets: files are named by it)
        name, clock, terms = tmp_path.name, SystemClock(), Terms(term_s=term_s)
        # Some days ahead, so that no window ends meanwhile.
        day_end_s = (int(clock.now_s()) // DAY_S + 3) * DAY_S
        quotas = [
            Quota(partition, unit_s, limit, STEPS[limit], day_end_s if unit_s == DAY_S else None)
            for partition in range(2)
            for unit_s, limit in asked_for
        ]
        names = [f"{name}-partition-{number}" for number in range(2)]
        partitions = start_lent_partitions(names, NAMESPACE, terms, clock)
        records = [tmp_path / f"front-{number}" for number in range(2)]
        fronts = []
        for number, record in enumerate(records):
            front = f"{name}-front-{number}"
            actor = named_actor(PressingFront, front, NAMESPACE, max_task_retries=0)
            fronts.append(actor.remote(front, partitions, quotas, terms, DEADLINE_S, str(record)))
        found = Pressure(
            [end_after(each) for each in partitions],
            [end_after(each) for each in fronts],
            quotas,
            records,
        )
        pids.extend(pid_of(each) for each in (*found.partitions, *found.fronts))
        ray.get([front.press.remote() for front in fronts], timeout=ANSWER_WITHIN_S)
        for number in range(2):
            until(
                lambda number=number: found.is_under_way(number, UNDER_WAY),
                "all are asking",
                USED_UP_WITHIN_S,
            )
        return found

    yield start
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)  # (one that is stopped could not be ended)


def has_another_process(actor: Any, pid: int) -> bool:
    with suppress(RayError):
        return pid_of(actor) != pid
    return False


@QUOTAS
def test_whoever_is_stopped_for_a_moment_changes_nothing(
    press: Callable[..., Pressure], asked_for: list[tuple[int, int]]
) -> None:
    pressure = press(asked_for, LONG_TERM_S)
    for actor in (*pressure.partitions, *pressure.fronts):
        process = psutil.Process(pid_of(actor))
        process.suspend()
        Event().wait(STOPPED_FOR_S)  # (the others ask meanwhile, and may wait for this one)
        process.resume()
    for front in range(2):
        until(lambda front=front: pressure.is_used_up(front), "all is refused", USED_UP_WITHIN_S)
    pressure.check()


@QUOTAS
def test_a_partition_that_is_killed_under_load_loses_no_hit(
    press: Callable[..., Pressure], asked_for: list[tuple[int, int]]
) -> None:
    pressure = press(asked_for)
    killed = kill(pressure.partitions[0])
    until(
        lambda: has_another_process(pressure.partitions[0], killed),
        "the partition is back",
        USED_UP_WITHIN_S,
    )
    for front in range(2):
        until(lambda front=front: pressure.is_used_up(front), "all is refused", USED_UP_WITHIN_S)
    pressure.check()


@QUOTAS
def test_a_front_that_is_killed_under_load_takes_no_quota_along(
    press: Callable[..., Pressure], asked_for: list[tuple[int, int]]
) -> None:
    pressure = press(asked_for)
    killed, record = pressure.fronts[0], pressure.records[0]
    reported = admissions(record)
    ray.get(killed.mark.remote(), timeout=ANSWER_WITHIN_S)
    until(
        lambda: ray.get(killed.is_reported.remote(), timeout=ANSWER_WITHIN_S),
        "the partitions know all that was written down until the mark",
        USED_UP_WITHIN_S,
    )
    kill(killed)
    until(lambda: pressure.is_used_up(1), "all is refused", USED_UP_WITHIN_S)
    # (the one that is there in its place does not ask)
    pressure.check(could_be_lost=admissions(record) - reported)
