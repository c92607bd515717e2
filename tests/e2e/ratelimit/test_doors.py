"""Every way to ask a running Tollgate, with real clients."""

from typing import Any

import grpc
import httpx
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from tests.e2e.callers import CALL_TIMEOUT_S, own_connection, question
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.service_stub import Code, RateLimitServiceStub, Unit

UNLIMITED = 4_294_967_295
YEAR = Unit.YEAR


def json_question(domain: str, **entry: str) -> dict[str, Any]:
    entries = [{"key": key, "value": value} for key, value in entry.items()]
    return {"domain": domain, "descriptors": [{"entries": entries}]}


def test_grpc_counts_down_and_refuses(service: RateLimitServiceStub) -> None:
    request = question("e2e", "account=grpc")
    answers = [service.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S) for _ in range(5)]
    assert [answer.overall_code for answer in answers] == [Code.OK] * 3 + [Code.OVER_LIMIT] * 2
    statuses = [answer.statuses[0] for answer in answers]
    assert [status.limit_remaining for status in statuses] == [2, 1, 0, 0, 0]
    assert {(s.current_limit.requests_per_unit, s.current_limit.unit) for s in statuses} == {
        (3, YEAR)
    }
    assert all(0 < status.duration_until_reset.seconds <= 365 * 86_400 for status in statuses)


def test_grpc_answers_every_descriptor_in_order(
    service: RateLimitServiceStub,
) -> None:
    descriptors = ("account=order", "unknown=x", "free=x", "pair=outer,inner=x", "account=order")
    answer = service.ShouldRateLimit(question("e2e", *descriptors, hits=2), timeout=CALL_TIMEOUT_S)
    assert answer.overall_code == Code.OVER_LIMIT
    assert [s.code for s in answer.statuses] == [Code.OK] * 4 + [Code.OVER_LIMIT]
    assert [s.limit_remaining for s in answer.statuses] == [1, 0, UNLIMITED, 98, 0]
    assert [s.HasField("current_limit") for s in answer.statuses] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert answer.statuses[3].current_limit.name == "nested"


def test_grpc_errors_have_the_references_status_and_text(
    service: RateLimitServiceStub,
) -> None:
    for request, text in (
        (question(""), "rate limit domain must not be empty"),
        (question("e2e"), "rate limit descriptor list must not be empty"),
    ):
        with pytest.raises(grpc.RpcError) as failure:
            service.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)
        assert failure.value.code() is grpc.StatusCode.UNKNOWN
        assert failure.value.details() == text


def test_the_doors_share_their_counters(
    tollgate: TollgateProcess, service: RateLimitServiceStub, http: httpx.Client
) -> None:
    first = service.ShouldRateLimit(question("e2e", "account=shared"), timeout=CALL_TIMEOUT_S)
    second = http.post("/json", json=json_question("e2e", account="shared")).json()
    third = tollgate.command(
        *("client", "-dial_string", tollgate.grpc_address),
        *("-domain", "e2e", "-descriptors", "account=shared"),
    )
    body = json_question("e2e", account="shared")
    fourth = httpx.post(tollgate.url("JSON_PORT", "/json"), json=body, trust_env=False)
    assert first.statuses[0].limit_remaining == 2
    assert second["statuses"][0]["limitRemaining"] == 1
    assert third.returncode == 0, third.stderr
    assert third.stdout.splitlines()[0] == "overall: OK"
    assert "account=shared: OK, limit 3/YEAR, remaining 0, reset" in third.stdout
    assert fourth.status_code == 429


def test_the_client_command_says_what_went_wrong(tollgate: TollgateProcess) -> None:
    refused = tollgate.command("client", "-dial_string", tollgate.grpc_address, "-domain", "e2e")
    assert refused.returncode == 1
    assert refused.stderr == (
        f"error: {tollgate.grpc_address}: UNKNOWN: rate limit descriptor list must not be empty\n"
    )


def test_json_over_http_is_200_then_429(http: httpx.Client) -> None:
    answers = [http.post("/json", json=json_question("e2e", account="http")) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
    allowed, refused = answers[0].json(), answers[3].json()
    reset = allowed["statuses"][0].pop("durationUntilReset")
    assert reset.removesuffix("s").isdigit()
    assert allowed == {
        "overallCode": "OK",
        "statuses": [
            {
                "code": "OK",
                "currentLimit": {"requestsPerUnit": 3, "unit": "YEAR"},
                "limitRemaining": 2,
            }
        ],
    }
    assert refused["overallCode"] == refused["statuses"][0]["code"] == "OVER_LIMIT"
    assert "limitRemaining" not in refused["statuses"][0]  # (zeros are left out)


@pytest.mark.parametrize(
    "body",
    [b"", b"}", b'{"domain": "e2e", "nonsense": 1}', b'{"domain": ""}', b'{"domain": "e2e"}'],
    ids=["empty", "no JSON", "unknown field", "no domain", "no descriptors"],
)
def test_json_errors_are_400(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/json", content=body)
    assert answer.status_code == 400
    assert answer.text == "Bad Request\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_http_health_and_unknown_paths(http: httpx.Client) -> None:
    healthy = http.get("/healthcheck")
    assert (healthy.status_code, healthy.text) == (200, "OK")
    unknown = http.get("/nothing-here")
    assert (unknown.status_code, unknown.text) == (404, "404 page not found\n")


def test_grpc_health_serves_checks_and_watches(tollgate: TollgateProcess) -> None:
    serving = health_pb2.HealthCheckResponse.SERVING
    with own_connection(tollgate.grpc_address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("ratelimit", ""):
            request = health_pb2.HealthCheckRequest(service=name)
            assert health.Check(request, timeout=CALL_TIMEOUT_S).status == serving
            watch = health.Watch(request, timeout=CALL_TIMEOUT_S)
            assert next(watch).status == serving
            watch.cancel()
        unknown = health_pb2.HealthCheckRequest(service="unknown")
        with pytest.raises(grpc.RpcError) as failure:
            health.Check(unknown, timeout=CALL_TIMEOUT_S)
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND


def test_reflection_describes_the_services(tollgate: TollgateProcess) -> None:
    with own_connection(tollgate.grpc_address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert set(database.get_services()) >= {
            "envoy.service.ratelimit.v3.RateLimitService",
            "grpc.health.v1.Health",
        }
        pool = DescriptorPool(database)
        found = pool.FindServiceByName("envoy.service.ratelimit.v3.RateLimitService")
        method = found.methods_by_name["ShouldRateLimit"]
        assert method.input_type.full_name == "envoy.service.ratelimit.v3.RateLimitRequest"
        fields = method.input_type.fields_by_name
        assert {"domain", "descriptors", "hits_addend"} <= set(fields)
