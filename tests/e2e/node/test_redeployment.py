"""Nobody hears of a new version, however they call; see `conftest.py`."""

from collections import Counter

from tests.e2e.node.conftest import Redeployment


def test_nobody_hears_of_it(redeployment: Redeployment) -> None:
    wrong = Counter(
        (service, call.said)
        for service, calls in redeployment.heard.items()
        for call in calls
        if not call.is_right
    )
    assert wrong == Counter()
    load = redeployment.load
    assert load.taken() == load.captured > 0


def test_every_replica_is_another_one(redeployment: Redeployment) -> None:
    assert Counter(redeployment.before.values()) == Counter(
        {name: 2 if name.endswith("RateLimit") else 1 for name in redeployment.after.values()}
    )
    assert len(redeployment.after) == 3
