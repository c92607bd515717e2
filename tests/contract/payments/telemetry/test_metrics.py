"""What payments count, from a call to the metrics page as Prometheus reads it."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.payments.api import ABSENT, App, PaymentsApi
from tollgate.actors.ledger.shard.figures import ShardReport
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.actors.ratelimit.statistics.totals import Totals
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.telemetry.books_gauges import BooksGauges
from tollgate.serve.payments.telemetry.request_meter import RequestMeter
from tollgate.serve.payments.telemetry.shard_reports import statistics_of
from tollgate.serve.payments.upkeep import UpkeepRecord
from tollgate.serve.ratelimit.sinks.prometheus import MetricsText

Series = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


class Page:
    """The metrics page over what several processes counted."""

    def __init__(self) -> None:
        self._totals = Totals()

    def absorb(self, tallies: Tallies) -> None:
        self._totals.absorb(tallies.drain(), 0.0)

    def hear(self, report: ShardReport) -> None:
        self._totals.absorb(statistics_of(report), 0.0)

    def read(self) -> Series:
        text = MetricsText().render(self._totals.statistics()).decode()
        # Line by line, for the parser gives counters another name.
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for line in text.splitlines()
            if not line.startswith("#")
            for family in text_string_to_metric_families(f"{line}\n")
            for sample in family.samples
        }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, frozenset(labels.items())]


@pytest.fixture
def tallies(api: PaymentsApi) -> Tallies:
    """Of an API whose requests are counted."""
    counted = Tallies("payments-1")
    door = Dispatcher(api.context, meter=RequestMeter(counted))
    api.client = api.client_of(payments_application(door, "0.0"))
    return counted


def test_requests_are_counted_by_route_and_status(
    api: PaymentsApi, shop: App, merchant: Mapping[str, object], tallies: Tallies
) -> None:
    page, path = Page(), f"/merchants/{merchant['id']}"
    for asked in (path, path, f"/merchants/{ABSENT}"):
        api.call("GET", asked, shop)
    api.call("GET", "/nowhere/at/all", shop)
    api.call("BREW", path, shop)
    page.absorb(tallies)
    series = page.read()
    route = {"method": "GET", "route": "/merchants/{merchantId}"}
    assert value(series, "payments_requests", **route, status="200") == 2
    assert value(series, "payments_requests", **route, status="404") == 1
    none = {"method": "other", "route": "none"}
    assert value(series, "payments_requests", **none, status="404") == 1
    assert value(series, "payments_requests", **none, status="405") == 1
    times = "payments_request_duration_seconds"
    assert value(series, f"{times}_bucket", **route, le="+Inf") == 3
    assert value(series, f"{times}_count", **route) == 3
    # Nothing of what callers sent is in a name.
    assert not any("BREW" in text or ABSENT in text for text in map(str, series))


def test_what_shards_did_adds_up_and_their_state_stands_beside_it() -> None:
    page, counted = Page(), {("Capture", "done"): 3}
    for name in ("ledger-0-of-2", "ledger-1-of-2"):
        for epoch in (4, 5):
            page.hear(ShardReport(name, 17, epoch, 0.25, waiting=7, commands=counted))
    page.hear(ShardReport("ledger-1-of-2", 18))
    series = page.read()
    assert value(series, "payments_commands", command="Capture", outcome="done") == 12
    one, other = {"shard": "ledger-0-of-2"}, {"shard": "ledger-1-of-2"}
    assert value(series, "payments_shard_epoch", **one) == 5
    assert value(series, "payments_shard_mailbox_depth", **one) == 7
    assert value(series, "payments_shard_is_taken_over", **one) == 1
    assert value(series, "payments_shard_is_taken_over", **other) == 0


def test_commits_have_a_histogram_of_seconds_and_one_of_orders(api: PaymentsApi, shop: App) -> None:
    merchant = api.new_merchant(shop)
    api.ledger.shard.tally.take()
    api.act(shop, api.pay(merchant), "captures", amount=100)
    commands, times, orders = api.ledger.shard.tally.take()
    page = Page()
    page.hear(ShardReport("a", 1, 1, commands=commands, commit_times=times, commit_orders=orders))
    series = page.read()
    assert value(series, "payments_commands", command="Authorise", outcome="done") == 1
    assert value(series, "payments_commands", command="Capture", outcome="done") == 1
    assert value(series, "payments_commit_duration_seconds_count") == 2
    assert value(series, "payments_commit_orders_bucket", le="1.0") == 2
    assert value(series, "payments_commit_orders_sum") == 2


def test_the_books_are_told_of_once_however_many_processes_read_them(
    api: PaymentsApi, shop: App, tmp_path: Path
) -> None:
    merchant = api.new_merchant(shop)
    path = f"/merchants/{merchant['id']}/webhooks"
    api.call("POST", path, shop, json={"url": "https://shop.example/hook"})
    api.act(shop, api.pay(merchant), "captures", amount=100)
    (tmp_path / "2025-12-30.json").touch()
    record = UpkeepRecord.found(tmp_path, tmp_path, api.clock.now_s())
    record.imbalance = {"DKK": -3, "EUR": 0}
    api.clock.advance(90)
    page = Page()
    for process in ("payments-1", "payments-2"):
        tallies = Tallies(process)
        gauges = BooksGauges(tallies, api.context.deliveries, record, api.clock)
        api.runner.run(gauges.look())
        page.absorb(tallies)
    series = page.read()
    assert value(series, "payments_books_imbalance_minor_units", currency="DKK") == 3
    assert value(series, "payments_books_imbalance_minor_units", currency="EUR") == 0
    assert value(series, "payments_books_webhook_event_age_seconds") == 90
    assert value(series, "payments_books_dead_letters") == 0
    assert value(series, "payments_books_webhook_retries") == 0
    assert value(series, "payments_books_backup_age_seconds") == 90
    assert value(series, "payments_books_anchor_age_seconds") == 86_400 + 90
