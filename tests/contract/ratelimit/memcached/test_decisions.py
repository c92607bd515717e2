"""The cases of counting and deciding (docs/ratelimit.md, 3C to 3E) over a real Memcached.

Each call waits until its hits are counted, as callers that follow each other slowly enough see it.
"""

from dataclasses import replace

import pytest

from tests.conformance.ratelimit.decision_cases import Case
from tests.conformance.ratelimit.test_decisions import LENT_CASES, Run
from tests.support.ratelimit.counting_in_memcached import SettledCounters, counting_in
from tests.support.servers.memcached import Memcached

# Two limits on one key, per second and per minute, share a counter where the reference names it.
SHARED_NAMES = {"D41"}
CASES = [
    case
    for case in LENT_CASES
    if not case.policy.stops_when_over and case.id not in SHARED_NAMES  # (B11)
]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_answers_are_those_of_the_case(case: Case, server: Memcached, name: str) -> None:
    policy = replace(case.policy, has_outside_counters=True, counter_key_prefix=f"{name}:")
    with counting_in({"MEMCACHE_HOST_PORT": server.address}) as counters:
        run = Run(replace(case, policy=policy), SettledCounters(counters))
        for step in case.steps:
            run.step(step)


def test_nearly_all_cases_are_run() -> None:
    assert len(CASES) > 100
