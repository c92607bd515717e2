"""Processes of a node that are killed under load: what callers hear, and that all of it is back by
itself, with nothing orphaned. `scripts/bench recovery` measures how long that takes."""

from collections.abc import Callable

import pytest

from tests.e2e.conftest import StartTollgate
from tests.support.processes.killing import kill
from tests.support.processes.service_load import ServiceLoad
from tests.support.waiting import until

# On a quiet machine a second.
HEARD_WITHIN_S = 10.0
AGAIN = pytest.mark.repetition


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(
            ("haproxy", "raylet", "ray::LedgerShard", "ray::ServeReplica:payments:Payments"),
            id="one of each kind",
        ),
        pytest.param(
            ("ray::HAProxyManager", "ray::ProxyActor", "ray::ServeController"),
            id="Serve",
            marks=AGAIN,
        ),
        pytest.param(("gcs_server", "tollgate-origin"), id="Ray", marks=AGAIN),
        pytest.param(
            ("tollgate.serve.node.process", "ray::DashboardAgent", "dashboard.py"),
            id="the node, an agent, the dashboard",
            marks=AGAIN,
        ),
        pytest.param(
            ("ray::LentCounterPartition", "ray::ConfigWatcher", "ray::Operations"),
            id="the rate limit",
            marks=AGAIN,
        ),
        pytest.param(
            ("ray::ServeReplica:ratelimit:RateLimit", "ray::ServeReplica:catalog-auth:CatalogAuth"),
            id="replicas",
            marks=AGAIN,
        ),
    ],
)
def test_what_is_killed_is_back_by_itself(
    start_tollgate: StartTollgate, victims: tuple[str, ...], repetitions: Callable[[int], int]
) -> None:
    has_dashboard = "dashboard.py" in victims
    settings = {"DRAIN_GRACE": "1s", "RAY_DASHBOARD_ENABLED": f"{has_dashboard}".lower()}
    with start_tollgate(settings) as tollgate:
        supervisor = tollgate.pid
        load = ServiceLoad(tollgate)
        with load.flowing():
            seen = [kill(tollgate, load, victim) for victim in victims * repetitions(2)]
        left_hanging = [
            (each.victim, service, heard)
            for each in seen
            for service, recovery in each.services.items()
            for heard in recovery.indefinite
        ]
        assert left_hanging == []
        assert max(each.longest_s for each in seen) < HEARD_WITHIN_S
        assert load.taken() == load.captured > 0, "what was told was taken, and nothing twice"
        assert tollgate.pid == supervisor
        tollgate.down()
        until(lambda: tollgate.living() == [], "nothing is left")
        assert tollgate.taken_ports() == []
