"""Runs of the ledger, each with its own mixture of what can go wrong: 100, thorough ones 2,000."""

import pytest

from tests.simulation.ledger.witness import judge
from tests.simulation.ledger.world import run
from tollgate.actors.ledger.law.outcomes import Done, Indefinite

SEEDS = 2_000
SEEDS_PER_TEST = 100
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
def test_nothing_is_lost_doubled_or_told_wrongly(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        judge(seed)


def test_a_seed_is_a_run() -> None:
    told = [[(deed.order, deed.answer) for deed in run(7).deeds] for _ in range(2)]
    assert told[0] == told[1]


def test_the_runs_are_worth_watching() -> None:
    """Things go well and wrong in them: orders are done, replayed and lost, shards end."""
    runs = [run(seed) for seed in range(50)]
    answers = [deed.answer for each in runs for deed in each.deeds]
    assert sum(isinstance(answer, Done) for answer in answers) > 500
    assert sum(isinstance(answer, Done) and answer.is_replay for answer in answers) > 50
    assert sum(isinstance(answer, Indefinite) for answer in answers) > 50
    assert sum(len(each.ends) for each in runs) > 50
    assert any(len(each.ends) == 0 for each in runs)
