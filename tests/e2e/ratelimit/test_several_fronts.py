"""Two fronts of one machine: together they decide, count and follow rules as one does, and when one
is killed, callers of the other notice nothing. One node for all of it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.callers import CALL_TIMEOUT_S, own_connection, question
from tests.e2e.conftest import StartTollgate
from tests.support.processes.killing import processes
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.service_stub import Code, RateLimitServiceStub
from tests.support.waiting import until

FRONT = "ray::ServeReplica:ratelimit:RateLimit"
LIMITS = (1, 10, 1_000)
CONNECTIONS = 20
# Longer than the counters may be waited for.
ANSWER_WITHIN_S = 90.0
REPLACED_WITHIN_S = 240.0
# So many connections in a row do not all go to one of two.
DRAWS_MAX = 100


def rule_text(version: int) -> str:
    rules = "".join(
        f"  - {{key: limit{limit}, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}\n"
        for limit in LIMITS
    )
    return (
        f"domain: several\ndescriptors:\n{rules}"
        f"  - {{key: version, rate_limit: {{unit: year, requests_per_unit: {version}}}}}\n"
        "  - {key: counted, value: summed, rate_limit: {unit: year, requests_per_unit: 1000000}}\n"
        "  - {key: counted, rate_limit: {unit: year, requests_per_unit: 1000000}}\n"
    )


@pytest.fixture(scope="module")
def rule_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several") / "config"
    folder.mkdir()
    (folder / "several.yaml").write_text(rule_text(1_000_000))
    return folder / "several.yaml"


@pytest.fixture(scope="module")
def pair(start_tollgate: StartTollgate, rule_file: Path) -> Iterator[TollgateProcess]:
    """A Tollgate of two fronts."""
    settings = {
        "GRPC_FRONTS": "2",
        "COUNTING": "lent",
        "RUNTIME_ROOT": str(rule_file.parents[1]),
        "RUNTIME_WATCH_ROOT": "false",
        "COUNTER_DEADLINE": "60s",
        # No front is silent for so long, however busy the machine is: the limits are kept exactly.
        "COUNTER_TERM": "20s",
        "DRAIN_GRACE": "1s",
        "PAYMENTS_ENABLED": "false",
        "CATALOG_ENABLED": "false",
    }
    with start_tollgate(settings) as tollgate:
        yield tollgate


def fronts(tollgate: TollgateProcess) -> dict[int, psutil.Process]:
    return {process.pid: process for name, process in processes(tollgate) if name == FRONT}


def connections(tollgate: TollgateProcess, front: psutil.Process) -> int:
    """The connections that a front has at the gRPC port."""
    return sum(
        each.laddr.port == tollgate.ports["GRPC_PORT"] and each.status == psutil.CONN_ESTABLISHED
        for each in front.net_connections("tcp")
    )


def listening(tollgate: TollgateProcess) -> set[int]:
    """The fronts that take connections."""
    return {
        pid
        for pid, front in fronts(tollgate).items()
        if any(
            each.laddr.port == tollgate.ports["GRPC_PORT"] and each.status == psutil.CONN_LISTEN
            for each in front.net_connections("tcp")
        )
    }


def ask(channel: grpc.Channel, descriptor: str) -> Any:
    request = question("several", descriptor)
    stub = RateLimitServiceStub(channel)
    return stub.ShouldRateLimit(request, timeout=ANSWER_WITHIN_S)


@contextmanager
def callers_of_each(tollgate: TollgateProcess) -> Iterator[dict[int, grpc.Channel]]:
    """A channel to each front, by the front's pid."""
    found: dict[int, grpc.Channel] = {}
    with ExitStack() as channels:
        known = fronts(tollgate)
        for _ in range(DRAWS_MAX):
            before = {pid: connections(tollgate, front) for pid, front in known.items()}
            channel = channels.enter_context(own_connection(tollgate.grpc_address))
            ask(channel, "counted=drawn")
            for pid, front in known.items():
                if connections(tollgate, front) > before[pid]:
                    found[pid] = channel
            if found.keys() == known.keys():
                yield found
                return
    raise AssertionError(f"{DRAWS_MAX} connections reached {len(found)} of {len(known)} fronts")


def test_both_fronts_serve_and_are_healthy(pair: TollgateProcess) -> None:
    assert len(fronts(pair)) == 2
    serving = health_pb2.HealthCheckResponse.SERVING
    with callers_of_each(pair) as channels:
        for channel in channels.values():
            request = health_pb2.HealthCheckRequest(service="ratelimit")
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=CALL_TIMEOUT_S)
            assert answer.status == serving
    with httpx.Client(timeout=CALL_TIMEOUT_S, trust_env=False) as http:
        for port in ("PORT", "JSON_PORT"):
            assert http.get(pair.url(port, "/healthcheck")).text == "OK"


@pytest.mark.parametrize("limit", LIMITS)
def test_no_limit_is_exceeded_and_all_of_it_is_given(pair: TollgateProcess, limit: int) -> None:
    asked = max(4, 2 * limit // CONNECTIONS)

    def admitted_by(channel: grpc.Channel, calls: int) -> int:
        stub = RateLimitServiceStub(channel)
        request = question("several", f"limit{limit}=x")
        waiting = [
            stub.ShouldRateLimit.future(request, timeout=ANSWER_WITHIN_S) for _ in range(calls)
        ]
        return sum(each.result().overall_code == Code.OK for each in waiting)

    with ExitStack() as channels, ThreadPoolExecutor(CONNECTIONS) as threads:
        all_of_them = [
            channels.enter_context(own_connection(pair.grpc_address)) for _ in range(CONNECTIONS)
        ]
        admitted = sum(threads.map(admitted_by, all_of_them, [asked] * CONNECTIONS))

        def is_used_up() -> bool:
            nonlocal admitted
            admitted += sum(threads.map(admitted_by, all_of_them, [1] * CONNECTIONS))
            return admitted >= limit

        until(is_used_up, "what one front does not need is there for the other", REPLACED_WITHIN_S)
        assert admitted == limit
        assert sum(threads.map(admitted_by, all_of_them, [5] * CONNECTIONS)) == 0


def test_what_the_fronts_counted_adds_up(pair: TollgateProcess) -> None:
    http = httpx.Client(timeout=CALL_TIMEOUT_S, trust_env=False)

    def hits() -> int:
        name = "ratelimit.service.rate_limit.several.counted_summed.total_hits: "
        text = http.get(pair.url("DEBUG_PORT", "/stats")).text
        lines = [each for each in text.splitlines() if each.startswith(name)]
        return sum(int(each.removeprefix(name)) for each in lines)

    asked = 0
    body = {
        "domain": "several",
        "descriptors": [{"entries": [{"key": "counted", "value": "summed"}]}],
    }
    with callers_of_each(pair) as channels:
        for calls, channel in enumerate(channels.values(), 10):
            for _ in range(calls):
                ask(channel, "counted=summed")
                asked += 1
    with http:
        for port in ("PORT", "JSON_PORT") * 5:
            assert http.post(pair.url(port, "/json"), json=body).status_code == 200
            asked += 1
        until(
            lambda: hits() >= asked, "the fronts hand on what they have counted", REPLACED_WITHIN_S
        )
        assert hits() == asked


def test_a_change_of_rules_reaches_both_fronts(pair: TollgateProcess, rule_file: Path) -> None:
    with callers_of_each(pair) as channels:
        for version in (2_000_000, 3_000_000):
            rule_file.write_text(rule_text(version))

            def limits() -> list[int]:
                answers = [ask(channel, "version=x") for channel in channels.values()]
                return [each.statuses[0].current_limit.requests_per_unit for each in answers]

            until(
                lambda in_force=[version] * 2: limits() == in_force,
                f"rules {version} are there",
                REPLACED_WITHIN_S,
            )


def test_a_killed_front_is_noticed_by_its_own_callers_alone(pair: TollgateProcess) -> None:
    folder = pair.data / "sockets"
    with callers_of_each(pair) as channels:
        victim, survivor = channels
        kept, bereft = channels[survivor], channels[victim]
        fronts(pair)[victim].kill()

        def is_replaced() -> bool:
            ask(kept, "counted=others")  # (an error would fail the test)
            return len(listening(pair) - {victim}) == 2

        until(is_replaced, "another one takes its place", REPLACED_WITHIN_S)
        assert survivor in fronts(pair)
        with own_connection(pair.grpc_address) as new:
            ask(new, "counted=new")
        until(lambda: is_answered(bereft), "its callers come back elsewhere", REPLACED_WITHIN_S)
    with callers_of_each(pair) as channels:
        assert victim not in channels
    left = {name.name.split("-")[1] for name in folder.glob("grpc-*")}
    assert left == set(map(str, fronts(pair))), "the dead one's folder is taken away"


def is_answered(channel: grpc.Channel) -> bool:
    try:
        return bool(ask(channel, "counted=back"))
    except grpc.RpcError:
        return False
