"""The metrics port, and the dashboard that reads it."""

import asyncio
import json
import pickle
import re
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tollgate.actors.ratelimit.statistics.tallies import RULE_STATS, Tallies
from tollgate.actors.ratelimit.statistics.totals import LOST, Statistics, Totals
from tollgate.actors.ratelimit.watching.subscription import (
    ACKNOWLEDGED,
    AWAY,
    REFUSED,
    STREAMS_ENDED,
)
from tollgate.serve.net.listener import listen
from tollgate.serve.ratelimit.backends.memcached.node import ADD, INCREMENT, MULTIGET
from tollgate.serve.ratelimit.backends.redis.connections import ConnectionCounts
from tollgate.serve.ratelimit.backends.redis.store import PER_SECOND_POOL, POOL
from tollgate.serve.ratelimit.counting_shadow.comparison import ShadowOutcome
from tollgate.serve.ratelimit.sinks.choice import metrics_text
from tollgate.serve.ratelimit.sinks.mapping_file import MappingFileError
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText, metrics_app
from tollgate.serve.ratelimit.tracing.span_thread import CALLS_LOST, CALLS_SENT
from tollgate.serve.settings import Settings

DASHBOARD = Path(__file__).parents[3] / "configs/grafana/ratelimit.json"


def busy() -> Totals:
    """Totals after a bit of everything."""
    front, totals = Tallies("front-1"), Totals()
    rule = front.rule("shop.path_/cart.user", is_dynamic=False)
    for position, stat in enumerate(RULE_STATS):
        setattr(rule, stat, position + 1)
    front.touch(rule)
    front.domain_not_found("nobody")
    front.count("ratelimit.service.config_load_success")
    front.count("ratelimit.actors.ended")
    front.count("ratelimit.service.call.should_rate_limit.service_error", 2)
    front.count("ratelimit_server.ShouldRateLimit.total_requests", 9)
    front.gauge("ratelimit.localcache.entryCount", 4)
    for name in ("entries", "loans"):
        front.gauge(f"ratelimit.counters.{name}", 1)
    for name in ("calls", "evicted"):
        front.count(f"ratelimit.counters.{name}")
    front.observe("ShouldRateLimit", 9, 0.00012)
    count_outside(front)
    totals.absorb(front.drain(), 0.0)
    return totals


def count_outside(front: Tallies) -> None:
    """As stores outside, a second place, a control plane and a collector have it counted."""
    for scope in (POOL, PER_SECOND_POOL):
        connections = ConnectionCounts(scope, front)
        connections.open()
        connections.close()
    for command in (MULTIGET, INCREMENT, ADD):
        front.count(f"{command}.__code=error")
    spans = (CALLS_SENT, CALLS_LOST)
    rules = (ACKNOWLEDGED, REFUSED, STREAMS_ENDED)
    for name in (*(each.value for each in ShadowOutcome), *spans, *rules, LOST):
        front.count(name)
    front.gauge(AWAY, 0)


def fetch(text: MetricsText, path: str, asked: str, **headers: str) -> httpx.Response:
    totals = busy()

    async def statistics() -> Statistics:
        return totals.statistics()

    async def main() -> httpx.Response:
        app = metrics_app(text, statistics, path)
        async with (
            await listen(app, "127.0.0.1", 0, what="metrics") as listener,
            httpx.AsyncClient() as client,
        ):
            return await client.get(f"http://127.0.0.1:{listener.port}{asked}", headers=headers)

    return asyncio.run(main())


def test_a_scrape_is_prometheus_text_with_types_and_tags() -> None:
    answer = fetch(MetricsText({"zone": "eu"}), "/metrics", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    # The parser calls a counter by its OpenMetrics name, so the names are read off the type lines.
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", answer.text, re.MULTILINE))
    assert types["ratelimit_service_rate_limit_over_limit"] == "counter"
    assert types["ratelimit_service_response_time_seconds"] == "histogram"
    assert types["ratelimit_localcache_entryCount"] == "gauge"
    assert set(families) == {name.removesuffix("_total") for name in types}
    (over_limit,) = families["ratelimit_service_rate_limit_over_limit"].samples
    assert over_limit.value == 2
    assert over_limit.labels == {
        "domain": "shop",
        "key1": "path_/cart",
        "key2": "user",
        "zone": "eu",
    }


def test_a_scraper_that_would_rather_have_openmetrics_gets_names_without_total() -> None:
    accept = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5"
    answer = fetch(MetricsText(), "/metrics", "/metrics", accept=accept)
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 9\n' in answer.text


def own_mapping(file: Path) -> MetricsText:
    environ = {"USE_PROMETHEUS": "true", "PROMETHEUS_MAPPER_YAML": str(file)}
    return metrics_text(Settings.from_environment(environ))


def test_a_file_maps_the_page(tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    file.write_text("mappings: [{match: ratelimit.localcache.*, name: cache, labels: {of: $1}}]")
    answer = fetch(own_mapping(file), "/metrics", "/metrics")
    assert 'cache{of="entryCount"} 4\n' in answer.text
    assert "ratelimit_server_ShouldRateLimit_response_time_count 9\n" in answer.text


def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "map.yaml"
    with pytest.raises(MappingFileError) as caught:
        own_mapping(file)
    assert str(caught.value) == (
        f"PROMETHEUS_MAPPER_YAML: {file} cannot be read: No such file or directory"
    )
    file.write_text("mappings:\n- {match: a, nam: b}\n")
    with pytest.raises(MappingFileError) as caught:
        own_mapping(file)
    assert str(caught.value).startswith(f"{file}: line 2: nam is not supported: known are match, ")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_only_the_path_that_was_set_answers() -> None:
    assert fetch(MetricsText(), "/prometheus", "/prometheus").status_code == 200
    assert fetch(MetricsText(), "/prometheus", "/metrics").status_code == 404


def dashboard_queries() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])
    ]
    variables = [
        variable["definition"]
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
    return [*expressions, *variables]


def test_the_dashboard_asks_for_metrics_that_the_page_has() -> None:
    text = MetricsText().render(busy().statistics()).decode()
    names = {re.split(r"[ {]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    asked = {
        name for query in dashboard_queries() for name in re.findall(r"\bratelimit_\w+", query)
    }
    assert len(asked) >= 10
    assert asked <= names


def test_the_dashboard_asks_for_labels_that_the_page_has() -> None:
    text = MetricsText().render(busy().statistics()).decode()
    labels = {
        label
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        for label in sample.labels
    }
    queries = "\n".join(dashboard_queries())
    grouped = {
        label.strip()
        for labels_text in re.findall(r"\bby \(([^)]*)\)", queries)
        for label in labels_text.split(",")
    }
    selected = set(re.findall(r"(\w+)=~?\"", queries))
    assert {"domain", "key1", "grpc_method", "err_type", "code", "le"} <= grouped | selected
    assert grouped | selected <= labels


@pytest.mark.parametrize("field", ["id", "gridPos"])
def test_the_dashboards_panels_are_apart(field: str) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    if field == "id":
        assert len({panel["id"] for panel in panels}) == len(panels)
        return
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
