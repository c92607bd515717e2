"""Traces of payments, as a collector gets them (docs/operations.md, Traces)."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import pytest

from tests.support.payments.api import GOOD_CARD, REFERENCE, App, PaymentsApi
from tests.support.ratelimit.otlp_collector import Received, attributes, http_collector
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.actors.ledger.shard.client import LedgerClient
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.network.card_network import CardNetworks
from tollgate.serve.payments.network.simulator import SimulatedNetwork
from tollgate.serve.payments.telemetry.metered_network import MeteredNetwork
from tollgate.serve.payments.telemetry.request_meter import RequestMeter
from tollgate.serve.ratelimit.tracing.set_up import set_up_call_tracing
from tollgate.serve.settings import Settings

TRACE_ID, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01"}


class Connection:
    """The shard of the tests, behind the client that batches for it."""

    def __init__(self, api: PaymentsApi) -> None:
        self._api = api

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        return await self._api.ledger.execute(orders)


@contextmanager
def traced(api: PaymentsApi, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls of this API are traced; at the end all spans have been sent."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    said = {"TRACING_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": url}
    clock, tallies = SystemClock(), Tallies("payments-1")
    tracing = set_up_call_tracing(
        Settings.from_environment(said), "Payments", clock, tallies.count, Random(7).getrandbits
    )
    network = MeteredNetwork(SimulatedNetwork(REFERENCE.errors, clock), "test", tallies, clock)
    context = replace(
        api.context,
        clock=clock,
        commands=replace(api.context.commands, ledger=LedgerClient([Connection(api)]), clock=clock),
        networks=CardNetworks(network),
    )
    meter = RequestMeter(tallies, tracing)
    api.client = api.client_of(payments_application(Dispatcher(context, meter=meter), "0.0"))
    tracing.spans.start()
    try:
        yield
    finally:
        tracing.spans.stop()


def test_a_trace_runs_from_the_call_to_the_network_and_the_shards_batch(
    api: PaymentsApi, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant, received = api.new_merchant(shop), Received()
    body = {"key": merchant["key"], "amount": 10, "currency": "DKK", "card": GOOD_CARD}
    with http_collector(received) as url:
        with traced(api, url, monkeypatch):
            paid = api.call("POST", "/sandbox/payments", json=body, headers=PARENT)
        (call,) = received.wait_for("POST /sandbox/payments", 1)
    assert paid.status_code == 201
    (network,) = received.named("card network authorise")
    (order,) = received.named("ledger Authorise")
    (batch,) = received.named("shard batch")
    assert len(received.spans) == 4
    assert {span.trace_id.hex() for span in received.spans} == {TRACE_ID}
    assert call.parent_span_id.hex() == SPAN_ID
    assert network.parent_span_id == order.parent_span_id == call.span_id
    assert batch.parent_span_id == order.span_id
    assert call.start_time_unix_nano <= network.start_time_unix_nano
    assert network.end_time_unix_nano <= order.start_time_unix_nano
    assert order.start_time_unix_nano <= batch.start_time_unix_nano
    assert order.end_time_unix_nano <= call.end_time_unix_nano
    assert attributes(call)["tollgate.request_id"] == paid.headers["x-request-id"]
    assert attributes(call)["tollgate.merchant"] == merchant["id"]
    assert attributes(order)["tollgate.operation"] == api.ledger.orders[-1].operation
    assert attributes(network) == {"tollgate.network": "test", "tollgate.outcome": "approved"}
    assert received.resources[0]["service.name"] == "Payments"
    said = "".join(str(span) for span in received.spans)
    for secret in (str(GOOD_CARD["number"]), str(merchant["key"]), shop.key):
        assert secret not in said


def test_who_declines_has_no_spans_and_a_fault_is_an_error(
    api: PaymentsApi, shop: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = Received()

    async def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with http_collector(received) as url, traced(api, url, monkeypatch):
        path, declined = "/merchants/x", {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-00"}
        api.call("GET", path, shop, headers=declined)
        monkeypatch.setattr(type(api.context.authentication), "caller", fail)
        api.call("GET", path, shop, headers=PARENT)
        (span,) = received.wait_for("GET /merchants/{merchantId}", 1)
    assert span.status.message == "HTTP status 500"
    assert len(received.spans) == 1


def test_without_tracing_nothing_of_it_is_imported() -> None:
    program = (
        "import sys; import tollgate.serve.payments.wiring;"
        "print([name for name in sys.modules if name.startswith('opentelemetry.exporter')])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=True
    )
    assert ended.stdout.decode().strip() == "[]"
