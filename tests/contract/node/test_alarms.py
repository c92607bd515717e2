"""What operators are given for Prometheus and Grafana: it loads, every alarm sounds when it should
and is silent when it should, and what a dashboard or an alarm asks for is on the metrics page."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.support.manual_clock import ManualClock
from tollgate.actors.kernel.latencies import LatencyTally
from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    DeliveryAttempt,
    OutgoingEvent,
)
from tollgate.actors.ledger.delivery.store import DeliveryOverview
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.shard.figures import ShardReport
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.statistics.totals import Totals
from tollgate.serve.catalog_auth.api.application import CallMeter
from tollgate.serve.payments.api.call import CallRecord
from tollgate.serve.payments.api.health import STORAGE_ERRORS
from tollgate.serve.payments.network.enquiries import OLDEST_AGE, OPEN_INTENTS
from tollgate.serve.payments.reference.exchange_rates import RATES_AGE
from tollgate.serve.payments.telemetry import metered_network
from tollgate.serve.payments.telemetry.books_gauges import BooksGauges
from tollgate.serve.payments.telemetry.delivery_meter import DeliveryMeter
from tollgate.serve.payments.telemetry.request_meter import RequestMeter
from tollgate.serve.payments.telemetry.shard_reports import ShardReports, statistics_of
from tollgate.serve.payments.upkeep import UpkeepRecord
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText

CONFIGS = Path(__file__).parents[3] / "configs"
PROMETHEUS, GRAFANA = CONFIGS / "prometheus", CONFIGS / "grafana"
DASHBOARDS = sorted(GRAFANA.glob("*.json"))
# The rate limit's are held against its page by `tests/architecture/test_manual.py`.
METRIC = re.compile(r"\b(?:payments|catalog)_\w+")
GROUPED = re.compile(r"by \(([^)]*)\)")
EVENT = EntityId(f"{1_800_000_000:08x}{7:016x}")


def promtool(*arguments: str) -> str:
    ended = subprocess.run(
        ["promtool", *arguments],
        cwd=PROMETHEUS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    said = ended.stdout.decode()
    assert ended.returncode == 0, said
    return said


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_prometheus_takes_the_configuration_and_the_alarms() -> None:
    assert "SUCCESS" in promtool("check", "config", "prometheus.yml")


def test_every_alarm_sounds_and_is_silent_in_its_tests() -> None:
    assert "SUCCESS" in promtool("test", "rules", "alerts_test.yml")
    tests = yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
    tried = {
        (asked["alertname"], bool(asked["exp_alerts"]))
        for each in tests
        for asked in each["alert_rule_test"]
    }
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    assert tried == {(name, sounds) for name in names for sounds in (True, False)}


async def _called(meter: CallMeter) -> None:
    async def receive() -> Any: ...
    async def send(_: object) -> None: ...

    await meter({"type": "http", "method": "GET", "path": "/"}, receive, send)


class Deliveries:
    async def overview(self) -> DeliveryOverview:
        return DeliveryOverview(1, 1, EVENT)


@pytest.fixture(scope="module")
def page() -> dict[str, set[str]]:
    """Every series of payments and catalog auth, as their own code names it: the labels by name."""
    tallies, totals, clock = Tallies("a"), Totals(), ManualClock(1.8e9)
    RequestMeter(tallies).note(CallRecord("id", "GET", "/x"), 200, 0.1)
    of_call = ".__network=test.__operation=authorise"
    tallies.count(f"{metered_network.CALLS}{of_call}.__outcome=approved")
    tallies.observe(f"{metered_network.TIMES}{of_call}", 1, 0.1)
    deliveries = DeliveryMeter(tallies)
    deliveries.storage_failed()
    deliveries.attempted([DeliveryAttempt(OutgoingEvent(EVENT, "", ""), 0, 5, CallResult(200))])
    tallies.count(STORAGE_ERRORS)
    tallies.gauge(RATES_AGE, 1.0)
    tallies.gauge(OLDEST_AGE, 1.0)
    tallies.gauge(OPEN_INTENTS, 1.0)
    ShardReports([], tallies, None)
    record = UpkeepRecord(0.0, date(2027, 1, 1), {"DKK": 0})
    asyncio.run(BooksGauges(tallies, Deliveries(), record, clock).look())
    asyncio.run(_called(CallMeter(_nothing, tallies, clock)))
    times = LatencyTally()
    times.observe(1, 0.001)
    commands = {("Capture", "done"): 1}
    report = ShardReport("s", 1, 1, 0.1, 1, 1, 1, commands, times.value(), times.value())
    totals.absorb(statistics_of(report), 0.0)
    totals.absorb(tallies.drain(), 0.0)
    text = MetricsText().render(totals.statistics()).decode()
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            for family in text_string_to_metric_families(f"{line}\n"):
                for sample in family.samples:
                    found.setdefault(sample.name, set()).update(sample.labels)
    return found


async def _nothing(*_: object) -> None: ...


def expressions(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("expr"), str):
            yield node["expr"]
        for value in node.values():
            yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


def test_what_is_asked_for_is_on_the_page(page: dict[str, set[str]]) -> None:
    asked = [expr for file in DASHBOARDS for expr in expressions(json.loads(file.read_text()))]
    asked += [rule["expr"] for rule in rules()]
    named = {name for expr in asked for name in METRIC.findall(expr)}
    assert len(named) > 25
    assert named - page.keys() == set()
    for expr in asked:
        names = METRIC.findall(expr)
        labels = {each.strip() for by in GROUPED.findall(expr) for each in by.split(",")}
        labels -= {"instance", "le"}
        for name in names:
            assert labels <= page[name], (expr, page[name])


def test_what_is_on_the_page_is_shown_somewhere(page: dict[str, set[str]]) -> None:
    asked = " ".join(
        expr for file in DASHBOARDS for expr in expressions(json.loads(file.read_text()))
    )
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in page}
    own = {name for name in families if METRIC.fullmatch(name)}
    assert {name for name in own if name not in asked} == set()


def test_there_is_a_dashboard_for_each_service_and_one_for_the_whole() -> None:
    boards = {file.stem: json.loads(file.read_text()) for file in DASHBOARDS}
    assert boards.keys() == {"catalog-auth", "payments", "ratelimit", "tollgate"}
    assert len({board["uid"] for board in boards.values()}) == len(boards)
    for board in boards.values():
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
        assert len(set(places)) == len(places)


def test_they_are_provisioned_by_file() -> None:
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/tollgate.yml").read_text())[
        "providers"
    ]
    assert (provider["type"], provider["options"]) == ("file", {"path": "${GRAFANA_DASHBOARDS}"})
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert (source["type"], source["url"]) == ("prometheus", "${GRAFANA_PROMETHEUS_URL}")
