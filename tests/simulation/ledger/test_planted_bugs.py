"""The simulation is as good as the bugs that it finds."""

import pytest

from tests.simulation.ledger.planted_bugs import BUGS, Plant
from tests.simulation.ledger.witness import judge

SEEDS_MAX = 1_000


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert any(_finds_something(seed) for seed in range(SEEDS_MAX))


def _finds_something(seed: int) -> bool:
    try:
        judge(seed)
    except AssertionError:
        return True
    return False
