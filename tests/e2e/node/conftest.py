"""A new version of every service comes in while everybody calls, at every door, on connections that
stay and on new ones. The rate limit has two fronts before, and one afterwards. What came of it is
looked at in `test_redeployment`; then `test_stopping` stops this Tollgate.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.e2e.callers import CALL_TIMEOUT_S, own_connection, question
from tests.e2e.conftest import StartTollgate
from tests.support.processes.redeployment import redeploy, replicas
from tests.support.processes.service_load import Heard, ServiceLoad, status_of
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.service_stub import RateLimitServiceStub
from tests.support.waiting import until

WITHIN_S = 200.0
GRACE_S = 5.0
JSON_QUESTION = {
    "domain": "edge",
    "descriptors": [{"entries": [{"key": "path", "value": "/"}]}],
}


@dataclass(frozen=True, slots=True)
class Redeployment:
    """The replicas of before and of afterwards, by their pids, and what was heard meanwhile."""

    tollgate: TollgateProcess
    before: dict[int, str]
    after: dict[int, str]
    heard: dict[str, list[Heard]]
    load: ServiceLoad


@pytest.fixture(scope="package")
def redeployment(start_tollgate: StartTollgate) -> Iterator[Redeployment]:
    with start_tollgate({"GRPC_FRONTS": "2", "DRAIN_GRACE": f"{GRACE_S:g}s"}) as tollgate:
        before = replicas(tollgate)
        load = ServiceLoad(tollgate)
        new_callers = {
            "new connections, gRPC": lambda _: decided_anew(tollgate),
            "new connections, JSON": lambda _: answered_anew(tollgate, "JSON_PORT"),
            "new connections, HTTP": lambda _: answered_anew(tollgate, "PORT"),
        }
        with load.flowing(new_callers):
            redeploy(tollgate, {"GRPC_FRONTS": "1"})
            everybody = {service: len(calls) for service, calls in load.calls.items()}
            until(
                lambda: all(len(load.calls[each]) > seen + 5 for each, seen in everybody.items()),
                "everybody is answered by the new ones",
                WITHIN_S,
            )
            after = replicas(tollgate)
        yield Redeployment(tollgate, before, after, load.calls, load)


def decided_anew(tollgate: TollgateProcess) -> tuple[str, bool]:
    with own_connection(tollgate.grpc_address) as channel:
        stub = RateLimitServiceStub(channel)
        stub.ShouldRateLimit(question("edge", "path=/"), timeout=CALL_TIMEOUT_S)
    return "OK", True


def answered_anew(tollgate: TollgateProcess, port: str) -> tuple[str, bool]:
    with httpx.Client(timeout=CALL_TIMEOUT_S, trust_env=False) as client:
        answer = client.post(tollgate.url(port, "/json"), json=JSON_QUESTION)
    return status_of(answer), answer.status_code in (200, 429)
