"""Runs of lending, each with its own mixture of what can go wrong: 50, thorough ones 10,000."""

from collections import Counter

import pytest

from tests.simulation.ratelimit.processes import Line
from tests.simulation.ratelimit.world import judge

SEEDS = 10_000
SEEDS_PER_TEST = 50
# The test that every run makes; the others repeat it with other seeds.
TESTS_PER_RUN = 1
FIRSTS = range(0, SEEDS, SEEDS_PER_TEST)


@pytest.mark.parametrize(
    "first",
    [
        *FIRSTS[:TESTS_PER_RUN],
        *(pytest.param(first, marks=pytest.mark.repetition) for first in FIRSTS[TESTS_PER_RUN:]),
    ],
)
def test_the_laws_hold_and_the_runs_are_worth_watching(first: int) -> None:
    events: Counter[str] = Counter()
    for seed in range(first, first + SEEDS_PER_TEST):
        events += judge(seed).events
    for event in ("admitted", "refused", "failed", "fronts lost", "crashes", "freezes"):
        assert events[event] > 20, f"there is hardly any {event} in these runs: {events}"


def test_a_seed_is_a_run() -> None:
    assert judge(7).hits == judge(7).hits


def test_a_report_that_is_sent_again_after_it_was_taken_is_as_old_as_before() -> None:
    line = Line(0.0)
    line.send_report(1, 2.5)
    line.take_reports(1)
    line.send_report(1, 2.7)
    line.take_reports(1)
    assert line.reported_s == 2.5
    line.send_report(2, 2.9)
    line.take_reports(2)
    assert line.reported_s == 2.9
