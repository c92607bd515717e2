"""Counter partitions as real actors: routing, loss, silence, return."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import ray

from tests.integration.conftest import StartPartitions, kill, pid_of
from tests.support.ratelimit.engine import Engine, entries
from tests.support.waiting import until
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ratelimit.counting.actor import PENDING_CALLS_MAX, PartitionedCounters
from tollgate.actors.ratelimit.counting.counters import LimitedHits, LocalCounters, Unreachable
from tollgate.actors.ratelimit.decision.plan import Refusal, RefusalReason
from tollgate.actors.ratelimit.decision.policy import FailureMode, Policy
from tollgate.actors.ratelimit.decision.response import OK, OVER_LIMIT, RateLimitDecision
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest

NOW_S = 1_000_000
END_S = 1_003_600
# Longer than a partition needs on a busy machine; and the deadline, and what is needed to say so.
DEADLINE_S = 3.0
ENDS_WITHIN_S = 30.0
RULES = "domain: d\ndescriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 10}}]"
NOT_ANSWERING = "counter partition 0 is not answering"
TOO_SLOW = "counter partition 0 did not answer within 3000 ms"


class Counted:
    """An actor handle that counts the calls to it."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.calls: list[str] = []

    def __getattr__(self, method: str) -> Any:
        self.calls.append(method)
        return getattr(self._handle, method)


def store_of(handles: list[Any]) -> PartitionedCounters:
    return PartitionedCounters(handles, DEADLINE_S, SystemClock())


def hit_each(store: PartitionedCounters, *partitions: int) -> Mapping[int, Any]:
    """One hit on a counter of each partition, in one batch; the counts, or why there is none."""
    started_s = time.monotonic()
    answers = store.hit(
        {p: [LimitedHits(END_S, [b"counter"], [1], [10])] for p in partitions}, NOW_S
    )
    assert time.monotonic() - started_s < ENDS_WITHIN_S
    return {
        p: str(answer) if isinstance(answer, Unreachable) else answer[0][0]
        for p, answer in answers.items()
    }


def is_up(store: PartitionedCounters) -> bool:
    store.probe()
    return not store.down


def outcomes_of(answers: Sequence[RateLimitDecision | Refusal]) -> list[tuple[int, int]]:
    """The overall code of each decision, and what remains of its only limit."""
    return [
        (answer.overall, answer.statuses[0].remaining)
        for answer in answers
        if isinstance(answer, RateLimitDecision)
    ]


def question(value: str) -> RateLimitRequest:
    return RateLimitRequest("d", (RateLimitDescriptor(entries(f"k={value}")),), 0)


def test_a_name_is_one_partition(partitions: StartPartitions) -> None:
    first = partitions(2)
    again = partitions(2)[2:]
    assert [pid_of(handle) for handle in first] == [pid_of(handle) for handle in again]
    assert len({pid_of(handle) for handle in first}) == 2


def test_actors_count_as_the_engine_does_alone(partitions: StartPartitions) -> None:
    handles = partitions(3)
    alone = LocalCounters(3)
    counting, reference = Engine(RULES, store=store_of(handles)), Engine(RULES, store=alone)
    batch = [question(f"v{number % 40}") for number in range(500)]
    for questions in (batch[:50], batch):
        counted = outcomes_of(counting.decide(*questions))
        assert counted == outcomes_of(reference.decide(*questions))
        assert len(counted) == len(questions)
    sizes = [ray.get(handle.describe.remote())["counters"] for handle in handles]
    assert sizes == [len(table) for table in alone.tables]
    assert all(sizes)
    assert sum(sizes) == 40


def test_a_batch_is_one_call_to_each_partition(partitions: StartPartitions) -> None:
    actors = partitions(3)
    handles = [Counted(handle) for handle in actors]
    engine = Engine(RULES, store=store_of(handles))
    decisions = engine.decide(*(question(f"v{number}") for number in range(200)))
    assert len(decisions) == 200
    assert [handle.calls for handle in handles] == [["hit"]] * 3
    assert [ray.get(actor.describe.remote())["calls"] for actor in actors] == [1] * 3


def test_a_killed_partition_comes_back_and_harms_no_other(partitions: StartPartitions) -> None:
    handles = partitions(2)
    store = store_of(handles)
    assert hit_each(store, 0, 1) == {0: 1, 1: 1}
    killed = kill(handles[0])
    seen = [hit_each(store, 0, 1)]
    while isinstance(seen[-1][0], str):
        assert store.down == {0}
        until(lambda: is_up(store), "the partition is back")
        seen.append(hit_each(store, 0, 1))
        assert len(seen) < 100, seen
    assert {answers[0] for answers in seen[:-1]} <= {NOT_ANSWERING, TOO_SLOW}
    assert len(seen) > 1
    # What it had counted is gone; a hit without an answer may have been counted by its successor.
    assert 1 <= seen[-1][0] <= len(seen)
    assert [answers[1] for answers in seen] == list(range(2, len(seen) + 2))
    assert pid_of(handles[0]) != killed
    assert store.down == frozenset()


def test_nobody_waits_twice_for_a_silent_partition(partitions: StartPartitions) -> None:
    handles = [Counted(handle) for handle in partitions(2)]
    store = store_of(handles)
    assert hit_each(store, 0, 1) == {0: 1, 1: 1}
    pid = pid_of(handles[0])
    os.kill(pid, signal.SIGSTOP)
    assert hit_each(store, 0, 1) == {0: TOO_SLOW, 1: 2}
    store.probe()
    # Two questions are out: whether it is back, and whether counts fell there meanwhile.
    assert handles[0].calls[-2:] == ["describe"] * 2
    handles[0].calls.clear()
    for count in range(3, 20):
        assert hit_each(store, 0, 1) == {0: NOT_ANSWERING, 1: count}
        store.probe()
    # Whoever came after the first one was told at once, and no question is put twice.
    assert handles[0].calls == []
    os.kill(pid, signal.SIGCONT)
    until(lambda: is_up(store), "the partition is back")
    # The hit that nobody waited for was counted in the end; those after it were never sent.
    assert hit_each(store, 0, 1) == {0: 3, 1: 20}


def test_two_fronts_share_the_counters(partitions: StartPartitions) -> None:
    handles = partitions(1)
    first, second = store_of(handles), store_of(handles)
    assert [hit_each(store, 0)[0] for store in (first, second, first)] == [1, 2, 3]


@pytest.mark.parametrize("mode", FailureMode)
def test_the_failure_mode_decides_what_cannot_be_counted(
    partitions: StartPartitions, mode: FailureMode
) -> None:
    (handle,) = partitions(1)
    store = store_of([handle])
    engine = Engine(RULES, policy=Policy(failure_mode=mode), store=store)
    assert engine.ask(question("v")).statuses[0].remaining == 9
    pid = pid_of(handle)
    os.kill(pid, signal.SIGSTOP)
    answers = engine.decide(question("v")) + engine.decide(question("v"))
    errors = engine.tallies.drain().counts
    assert errors["ratelimit.service.call.should_rate_limit.redis_error"] == 2
    match mode:
        case FailureMode.ERROR:
            assert answers == [
                Refusal(RefusalReason.BACKEND, TOO_SLOW),
                Refusal(RefusalReason.BACKEND, NOT_ANSWERING),
            ]
        case FailureMode.ALLOW:
            assert outcomes_of(answers) == [(OK, 9), (OK, 9)]
        case FailureMode.DENY:
            assert outcomes_of(answers) == [(OVER_LIMIT, 0), (OVER_LIMIT, 0)]
    os.kill(pid, signal.SIGCONT)
    until(lambda: is_up(store), "the partition is back")
    assert engine.ask(question("v")).statuses[0].remaining == 7


def test_a_partition_with_a_full_queue_is_unreachable_and_nothing_raises(
    partitions: StartPartitions,
) -> None:
    handles = partitions(2)
    store = store_of(handles)
    pid = pid_of(handles[0])
    os.kill(pid, signal.SIGSTOP)
    waiting = [handles[0].describe.remote() for _ in range(PENDING_CALLS_MAX)]
    assert hit_each(store, 0, 1) == {0: NOT_ANSWERING, 1: 1}
    assert store.down == {0}
    assert hit_each(store, 0, 1) == {0: NOT_ANSWERING, 1: 2}
    os.kill(pid, signal.SIGCONT)
    ray.get(waiting, timeout=60)
    until(lambda: is_up(store), "the partition is back")
    assert hit_each(store, 0, 1) == {0: 1, 1: 3}
