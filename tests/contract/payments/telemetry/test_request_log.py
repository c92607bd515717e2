"""The request log of payments: lines with ids, and never a secret."""

import json
import logging
from collections.abc import Iterator

import pytest

from tests.support.payments.api import ABSENT, GOOD_CARD, App, PaymentsApi
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.node.logs import JsonLines, TextLines
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.telemetry.request_meter import LOG, RequestMeter


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.json: list[str] = []
        self.text: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.json.append(JsonLines().format(record))
        self.text.append(TextLines().format(record))


@pytest.fixture
def lines(api: PaymentsApi) -> Iterator[Lines]:
    """The log of an API, with its requests."""
    door = Dispatcher(api.context, meter=RequestMeter(Tallies("payments-1")))
    api.client = api.client_of(payments_application(door, "0.0"))
    handler, level, propagates = Lines(), LOG.level, LOG.propagate
    LOG.addHandler(handler)
    LOG.propagate = False
    LOG.setLevel(logging.INFO)
    yield handler
    LOG.removeHandler(handler)
    LOG.propagate = propagates
    LOG.setLevel(level)


def test_a_call_has_a_line_with_its_ids_and_no_secret(
    api: PaymentsApi, shop: App, lines: Lines
) -> None:
    merchant = api.new_merchant(shop)
    transaction = api.pay(merchant)
    reply = api.call("POST", f"/transactions/{transaction}/captures", shop, json={"amount": 10})
    assert reply.status_code == 201
    line = json.loads(lines.json[-1])
    order = api.ledger.orders[-1]
    assert line["@message"] == "POST /transactions/{transactionId}/captures: 201"
    assert {name: line[name] for name in ("level", "status", "method")} == {
        "level": "info",
        "status": 201,
        "method": "POST",
    }
    assert line["requestId"] == reply.headers["x-request-id"]
    assert (line["app"], line["merchant"]) == (shop.id, merchant["id"])
    assert line["operation"] == order.operation
    assert f'merchant="{merchant["id"]}"' in lines.text[-1]
    said = "".join((*lines.json, *lines.text))
    for secret in (shop.key, str(GOOD_CARD["number"]), str(merchant["key"])):
        assert secret not in said


def test_only_what_should_not_have_happened_is_said_by_itself(
    api: PaymentsApi, shop: App, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    LOG.setLevel(logging.WARNING)
    path = f"/merchants/{ABSENT}"
    assert api.call("GET", path, shop).status_code == 404
    assert lines.json == []

    async def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(api.context.authentication), "caller", fail)
    reply = api.call("GET", path, shop)
    assert reply.status_code == 500
    (line,) = map(json.loads, lines.json)
    assert (line["level"], line["requestId"]) == ("error", reply.headers["x-request-id"])
