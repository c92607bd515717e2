"""A stop while everybody calls: gRPC clients, Envoy, JSON clients. One stop is watched, once.

    SIGTERM -> not serving (health over gRPC, /healthcheck) -> clients leave -> closed

The clients here behave as load balancers do: they follow the health, and send nothing once it has
turned. Nobody tells Envoy's clients, who go on all the time.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.callers import CALL_TIMEOUT_S, Call, grpc_traffic, http_ask, own_connection, running
from tests.e2e.conftest import StartEnvoy
from tests.e2e.node.conftest import GRACE_S, Redeployment
from tests.support.processes.envoy import EnvoyProcess
from tests.support.processes.tollgate import TollgateProcess
from tests.support.waiting import until
from tollgate.serve.node.socket_folder import LINKS

WATCHED_FOR_S = 120.0
IN_FLIGHT = 16
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
# Why Envoy did not get a decision: nobody healthy was there to ask, or the call was cut off. Or it
# was late; then Tollgate, which is told how long Envoy waits, may be the one to end the call.
NOBODY = "cluster.tollgate.upstream_cx_none_healthy"
CUT_OFF = (
    "cluster.tollgate.upstream_rq_rx_reset",
    "cluster.tollgate.upstream_rq_pending_failure_eject",
    "cluster.tollgate.upstream_cx_destroy_remote_with_active_rq",
)
ERROR = "cluster.service.ratelimit.error"
ENVOY_WAITS_S = 0.02


@dataclass(frozen=True, slots=True)
class Stop:
    """What was seen. Times are of one clock; Envoy's statistics are from after the end."""

    asked_s: float
    not_serving_s: float
    unhealthy_s: float
    ended_s: float
    grpc: list[Call]
    json: list[Call]
    envoy: list[Call]
    envoy_statistics: dict[str, int]
    tollgate: TollgateProcess


@pytest.fixture(scope="module")
def stop(redeployment: Redeployment, start_envoy: StartEnvoy) -> Iterator[Stop]:
    """A Tollgate, stopped while gRPC clients, JSON clients and Envoy call it."""
    with start_envoy(redeployment.tollgate) as envoy:
        yield watched_stop(redeployment.tollgate, envoy)


def watched_stop(tollgate: TollgateProcess, envoy: EnvoyProcess) -> Stop:
    with ExitStack() as peers:
        health = watch_health(peers.enter_context(own_connection(tollgate.grpc_address)))
        tenants = [f"plan=pro,tenant=t{number}" for number in range(IN_FLIGHT)]
        over_grpc = peers.enter_context(grpc_traffic(tollgate.grpc_address, "tenants", tenants))
        client = peers.enter_context(httpx.Client(timeout=CALL_TIMEOUT_S))
        decision = client.build_request("POST", tollgate.url("PORT", "/json"), json=JSON_QUESTION)
        page = client.build_request("GET", f"{envoy.url}/free")
        over_json = peers.enter_context(running({"json": http_ask("json", client, decision)}))
        through_envoy = peers.enter_context(running({"envoy": http_ask("envoy", client, page)}))
        for traffic in (over_grpc, over_json):
            traffic.next_call(lambda call: not call.error, "calls succeed before")
        through_envoy.next_call(lambda call: call.remaining >= 0, "Envoy gets decisions")

        asked_s = time.monotonic()
        tollgate.ask_to_stop()
        assert next(health).status == NOT_SERVING
        not_serving_s = time.monotonic()
        over_grpc.stop()
        healthcheck = tollgate.url("PORT", "/healthcheck")
        until(lambda: client.get(healthcheck).status_code == 500, "/healthcheck says so")
        unhealthy_s = time.monotonic()
        over_json.stop()
        until(lambda: not tollgate.living(), "every process has ended", GRACE_S + 60)
        ended_s = time.monotonic()
        through_envoy.next_call(lambda call: not call.error, "Envoy goes on without it")
    statistics = {name: envoy.statistic(name) for name in (ERROR, NOBODY, *CUT_OFF)}
    return Stop(
        asked_s,
        not_serving_s,
        unhealthy_s,
        ended_s,
        over_grpc.calls,
        over_json.calls,
        through_envoy.calls,
        statistics,
        tollgate,
    )


JSON_QUESTION = {
    "domain": "edge",
    "descriptors": [{"entries": [{"key": "path", "value": "/orders"}]}],
}


def watch_health(channel: grpc.Channel) -> Iterator[Any]:
    request = health_pb2.HealthCheckRequest(service="ratelimit")
    stub = health_pb2_grpc.HealthStub(channel)
    watch: Iterator[Any] = stub.Watch(request, timeout=WATCHED_FOR_S)
    assert next(watch).status == SERVING
    return watch


def test_health_turns_at_once_on_both_doors(stop: Stop) -> None:
    assert stop.not_serving_s - stop.asked_s < GRACE_S
    assert stop.unhealthy_s - stop.asked_s < GRACE_S


def test_every_grpc_call_gets_its_answer(stop: Stop) -> None:
    in_flight = [call for call in stop.grpc if call.started_s < stop.asked_s < call.ended_s]
    assert in_flight
    assert [call for call in stop.grpc if call.error] == []


def test_every_json_call_gets_its_answer(stop: Stop) -> None:
    assert [call for call in stop.json if call.error] == []
    assert {call.code for call in stop.json} <= {200, 429}
    assert max(call.ended_s for call in stop.json) > stop.asked_s


def test_no_request_fails_behind_envoy(stop: Stop) -> None:
    assert [call for call in stop.envoy if call.error] == []
    assert {call.code for call in stop.envoy} <= {200, 429}
    assert max(call.started_s for call in stop.envoy) > stop.ended_s


def test_envoy_leaves_before_the_door_closes(stop: Stop) -> None:
    seen = stop.envoy_statistics
    assert {name: seen[name] for name in CUT_OFF} == dict.fromkeys(CUT_OFF, 0)
    assert seen[NOBODY] > 0
    undecided = [call for call in stop.envoy if call.remaining < 0]
    assert seen[ERROR] == len(undecided)
    late = [call for call in undecided if call.took_s >= ENVOY_WAITS_S]
    assert seen[ERROR] - seen[NOBODY] <= len(late), "whoever was asked answered, or was late"


def test_nothing_is_left(stop: Stop) -> None:
    tollgate = stop.tollgate
    assert tollgate.output().count("\nStopped.\n") == 1
    assert tollgate.taken_ports() == []
    assert tollgate.record == {}
    assert list((tollgate.data / "sockets").iterdir()) == []
    assert [link for link in LINKS.glob("tg-*") if link.resolve() == tollgate.data] == []


def test_the_commands_know_that_it_is_down(stop: Stop) -> None:
    status = stop.tollgate.command("status")
    assert status.returncode == 3
    assert status.stdout == (
        f"Tollgate is not running with the data folder {stop.tollgate.data}.\n"
    )
    down = stop.tollgate.command("down")
    assert (down.returncode, down.stdout) == (0, status.stdout)
