"""The simulation is as good as the bugs that it finds."""

import pytest

from tests.simulation.ratelimit.planted_bugs import BUGS, Plant
from tests.simulation.ratelimit.planted_losses import LOSSES
from tests.simulation.ratelimit.world import judge

SEEDS_MAX = 600


@pytest.mark.parametrize(
    ("plant", "seed"), [*BUGS, *LOSSES], ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_bug_is_found(plant: Plant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`seed`: the first that found it, to begin with; any other will do."""
    plant(monkeypatch)
    assert any(_finds_something(each) for each in (seed, *range(SEEDS_MAX)))


def _finds_something(seed: int) -> bool:
    try:
        judge(seed)
    except AssertionError:
        return True
    return False
