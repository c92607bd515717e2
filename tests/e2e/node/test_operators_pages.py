"""What an operator looks at while Tollgate runs: the debug port, the metrics page, the commands."""

import json

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.callers import CALL_TIMEOUT_S, grpc_traffic, question
from tests.support.processes.tollgate import TollgateProcess
from tests.support.ratelimit.service_stub import RateLimitServiceStub
from tests.support.waiting import until

# The names of the default mapping (B19), and one statistic that it does not map.
FAMILIES = {
    "ratelimit_service_rate_limit_total_hits": "counter",
    "ratelimit_service_rate_limit_within_limit": "counter",
    "ratelimit_service_rate_limit_near_limit": "counter",
    "ratelimit_service_rate_limit_over_limit": "counter",
    "ratelimit_service_rate_limit_shadow_mode": "counter",
    "ratelimit_service_should_rate_limit_error": "counter",
    "ratelimit_service_total_requests": "counter",
    "ratelimit_service_response_time_seconds": "histogram",
    "ratelimit_service_config_load_success": "counter",
    "ratelimit_service_config_load_error": "counter",
    "ratelimit_service_global_shadow_mode": "counter",
}


class MetricsPage:
    """The metrics page, read with Prometheus' own parser."""

    def __init__(self, url: str) -> None:
        self._url = url

    def families(self) -> dict[str, Metric]:
        answer = httpx.get(self._url)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        return {family.name: family for family in text_string_to_metric_families(answer.text)}

    def value(self, name: str, **labels: str) -> float:
        """A counter's value; 0 when there is no such series."""
        # The parser appends `_total` to the samples of counters, not to the name of the family.
        families = self.families()
        samples = families[name].samples if name in families else ()
        return sum(sample.value for sample in samples if sample.labels == labels)


@pytest.fixture
def metrics(tollgate: TollgateProcess) -> MetricsPage:
    return MetricsPage(tollgate.url("PULLMETRICS_PORT", "/metrics"))


def settle(service: RateLimitServiceStub, metrics: MetricsPage) -> None:
    """Returns once everything that was counted so far is shown: a front hands it on in order."""
    name = "ratelimit_service_rate_limit_total_hits"
    labels = {"domain": "e2e", "key1": "pair_outer", "key2": "inner_settled"}
    before = metrics.value(name, **labels)
    request = question("e2e", "pair=outer,inner=settled")
    service.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)
    until(lambda: metrics.value(name, **labels) == before + 1, "all that was counted is shown")


def test_the_metrics_page_has_the_names_of_the_default_mapping(
    service: RateLimitServiceStub, metrics: MetricsPage
) -> None:
    nested = {"domain": "e2e", "key1": "pair_outer", "key2": "inner_seen"}
    account = {"domain": "e2e", "key1": "account"}
    total = "ratelimit_service_rate_limit_total_hits"
    over = "ratelimit_service_rate_limit_over_limit"
    requests = "ratelimit_service_total_requests"
    settle(service, metrics)
    before = {
        total: metrics.value(total, **account),
        over: metrics.value(over, **account),
        requests: metrics.value(requests, grpc_method="ShouldRateLimit"),
    }
    for _ in range(5):
        request = question("e2e", "account=metrics", "pair=outer,inner=seen")
        service.ShouldRateLimit(request, timeout=CALL_TIMEOUT_S)
    settle(service, metrics)
    assert metrics.value(total, **account) == before[total] + 5
    assert metrics.value(over, **account) == before[over] + 2
    assert metrics.value(total, **nested) == 5
    assert metrics.value("ratelimit_service_rate_limit_within_limit", **nested) == 5
    assert metrics.value(requests, grpc_method="ShouldRateLimit") == before[requests] + 6
    found = metrics.families()
    assert {name: found[name].type for name in FAMILIES} == FAMILIES
    # (the shipped rates are of 2025-01-01)
    assert metrics.value("payments_exchange_rates_age_seconds") > 300 * 86_400
    buckets = [
        sample.value
        for sample in found["ratelimit_service_response_time_seconds"].samples
        if sample.name.endswith("_bucket") and sample.labels["grpc_method"] == "ShouldRateLimit"
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] >= 5


def test_what_payments_and_catalog_auth_do_is_on_the_page(
    http: httpx.Client, metrics: MetricsPage
) -> None:
    labels = {"method": "POST", "route": "/apps", "status": "201"}
    orders = {"command": "CreateApp", "outcome": "done"}
    before = metrics.value("payments_requests", **labels)
    done = metrics.value("payments_commands", **orders)
    assert http.post("/payments/apps", json={}).status_code == 201
    assert http.get("/catalog-auth/healthcheck").text == "OK"
    until(lambda: metrics.value("payments_requests", **labels) == before + 1, "it is counted")
    until(lambda: metrics.value("payments_commands", **orders) == done + 1, "its order is, too")
    healthy = {"method": "GET", "route": "/healthcheck", "status": "200"}
    until(lambda: metrics.value("catalog_requests", **healthy) >= 1, "and what the others do")
    found = metrics.families()
    assert found["payments_request_duration_seconds"].type == "histogram"
    assert {sample.value for sample in found["payments_shard_is_taken_over"].samples} == {1}


def test_errors_are_counted_by_kind(
    service: RateLimitServiceStub,
    http: httpx.Client,
    debug: httpx.Client,
    metrics: MetricsPage,
) -> None:
    name = "ratelimit_service_should_rate_limit_error"
    settle(service, metrics)
    before = metrics.value(name, err_type="service_error")
    assert http.post("/json", json={"domain": "e2e"}).status_code == 400
    settle(service, metrics)
    assert metrics.value(name, err_type="service_error") == before + 1
    line = f"ratelimit.service.call.should_rate_limit.service_error: {before + 1:.0f}\n"
    assert line in debug.get("/stats").text


def test_the_index_names_every_page(debug: httpx.Client) -> None:
    index = debug.get("/")
    lines = index.text.splitlines()
    assert lines == sorted(lines)
    assert {
        "/debug/pprof/: root of various pprof endpoints. hit for help.",
        "/debug/pprof/profile: CPU profiling endpoint",
        "/debug/pprof/trace: trace endpoint",
        "/rlconfig: print out the currently loaded configuration for debugging",
        "/stats: print out stats",
    } <= set(lines)
    assert debug.get("/no/such/page").text == index.text


def test_rlconfig_prints_the_rules_in_force(debug: httpx.Client) -> None:
    lines = set(debug.get("/rlconfig").text.splitlines())
    flags = "shadow_mode: false, quota_mode: false"
    assert {
        f"edge.path_/limited: unit=MINUTE requests_per_unit=3, {flags}",
        f"edge.path_/free: unit=UNKNOWN requests_per_unit=0, {flags}",
        "edge.path_/new: unit=MINUTE requests_per_unit=3, shadow_mode: true, quota_mode: false",
        f"edge.path_/orders.method_POST: unit=MINUTE requests_per_unit=10, {flags}",
        f"e2e.account: unit=YEAR requests_per_unit=3, {flags}",
    } <= lines


def has_decisions(debug: httpx.Client) -> bool:
    """Whether a profile of a second shows the front at work. (A busy machine may give it none of
    that second.)"""
    raw = debug.get("/debug/pprof/profile", params={"seconds": 1, "format": "raw"})
    assert raw.status_code == 200, raw.text
    return "fronts/native.py" in raw.text and "decide_batch" in raw.text


def test_the_front_can_be_profiled_under_load(
    tollgate: TollgateProcess, debug: httpx.Client
) -> None:
    with grpc_traffic(tollgate.grpc_address, "e2e", ["tenant=profiled"]) as traffic:
        # Without a name it is the front: the process that matters most comes first.
        until(lambda: has_decisions(debug), "a sample is taken while it decides")
        svg = debug.get("/debug/pprof/profile", params={"seconds": 1})
        stacks = debug.get("/debug/pprof/stacks")
    assert svg.headers["content-type"] == "image/svg+xml"
    assert "<svg" in svg.text
    assert "grpc-pump" in stacks.text
    assert [call for call in traffic.calls if call.error] == []


def test_memory_is_shown_per_process(debug: httpx.Client) -> None:
    lines = debug.get("/debug/pprof/memory").text.splitlines()
    sizes = {line.split()[0]: line.split()[2] for line in lines[1:]}
    assert {"partition-0", "partition-1", "watcher", "operations"} < set(sizes)
    assert all(float(rss_mib) > 10 for rss_mib in sizes.values())


def test_status_says_what_listens_where(tollgate: TollgateProcess) -> None:
    told = tollgate.command("status", "--json")
    assert told.returncode == 0
    status = json.loads(told.stdout)
    assert status["state"] == "healthy"
    assert status["data"] == str(tollgate.data)
    ports = tollgate.ports
    assert (
        status["addresses"].items()
        >= {
            "HTTP": f"0.0.0.0:{ports['PORT']}",
            "JSON": f"http://127.0.0.1:{ports['JSON_PORT']}/json",
            "gRPC": f"127.0.0.1:{ports['GRPC_PORT']}",
            "operator": f"http://127.0.0.1:{ports['PAYMENTS_OPERATOR_PORT']}",
            "catalog auth": f"http://0.0.0.0:{ports['PORT']}/catalog-auth/",
            "debug": f"127.0.0.1:{ports['DEBUG_PORT']}",
            "metrics": f"127.0.0.1:{ports['PULLMETRICS_PORT']}",
        }.items()
    )
    assert "Tollgate is healthy (pid" in tollgate.command("status").stdout


def test_a_second_start_with_the_same_data_folder_is_refused(tollgate: TollgateProcess) -> None:
    refused = tollgate.command("up", "--detach")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        f"tollgate: runs already with data folder {tollgate.data} (pid {tollgate.pid}): "
        "stop it with `tollgate down`, or set another TOLLGATE_DATA\n"
    )
    assert tollgate.command("status").returncode == 0
