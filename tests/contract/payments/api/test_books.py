"""Lines and their export, balance at a time, events, audit."""

import csv
import io
import json
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of, lines_of

Merchant = dict[str, Any]


@pytest.fixture
def traded(api: PaymentsApi, shop: App, merchant: Merchant) -> str:
    """A transaction with three lines, a minute apart."""
    paid = api.pay(merchant)
    for what, amount in (("captures", 500), ("refunds", 100), ("captures", 200)):
        api.clock.advance(60)
        api.act(shop, paid, what, amount=amount)
    return paid


def test_lines_newest_first_and_one_by_one(
    api: PaymentsApi, shop: App, merchant: Merchant, traded: str
) -> None:
    lines = api.listed(f"/merchants/{merchant['id']}/lines", shop)
    assert [set(line) & {"capture", "refund"} for line in lines] == [
        {"capture"},
        {"refund"},
        {"capture"},
    ]
    for line in lines:
        assert done(api.call("GET", f"/lines/{line['id']}", shop)) == line
        assert line["transactionId"] == traded
    balance = done(api.call("GET", f"/merchants/{merchant['id']}", shop))["merchant"]["balance"]
    assert balance == sum(line["balance"] for line in lines)


def test_the_balance_at_a_time(
    api: PaymentsApi, shop: App, merchant: Merchant, traded: str
) -> None:
    path = f"/merchants/{merchant['id']}/balance"
    lines = api.listed(f"/merchants/{merchant['id']}/lines", shop)[::-1]
    expected = 0
    for line in lines:
        expected += line["balance"]
        found = done(api.call("GET", path, shop, params={"at": line["created"]}))
        assert found == {"balance": {"currency": "DKK", "amount": expected, "at": line["created"]}}
    now = done(api.call("GET", path, shop))["balance"]
    assert (now["amount"], now["at"]) == (expected, "2026-01-01T00:03:00.000Z")
    before = done(api.call("GET", path, shop, params={"at": "2025-12-31"}))["balance"]
    assert before["amount"] == 0


@pytest.mark.parametrize(
    "at", ["yesterday", "2026-13-01", "1", "9" * 100, "2026-01-01T00:00:00+99"]
)
def test_what_is_no_time_is_refused(
    api: PaymentsApi, shop: App, merchant: Merchant, at: str
) -> None:
    path = f"/merchants/{merchant['id']}/balance"
    assert fields_of(api.call("GET", path, shop, params={"at": at})) == ["at"]


def test_lines_as_csv(api: PaymentsApi, shop: App, merchant: Merchant, traded: str) -> None:
    body = {"merchantId": merchant["id"], "amount": 1, "description": '=SUM(1), "x"'}
    done(api.call("POST", "/sandbox/payouts", shop, json=body))
    response = api.call("GET", f"/merchants/{merchant['id']}/lines.csv", shop)
    assert response.headers["content-type"].startswith("text/csv")
    assert response.headers["content-disposition"] == 'attachment; filename="lines.csv"'
    rows = list(csv.DictReader(io.StringIO(response.text)))
    lines = api.listed(f"/merchants/{merchant['id']}/lines", shop)[::-1]
    assert [row["id"] for row in rows] == [line["id"] for line in lines]
    assert [row["kind"] for row in rows] == ["capture", "refund", "capture", "payout"]
    assert [int(row["balance"]) for row in rows] == [line["balance"] for line in lines]
    assert [int(row["fee"]) for row in rows] == [line["fee"] for line in lines]
    assert rows[1]["balance"].startswith("-")  # (a number, which no spreadsheet takes for more)
    assert rows[0]["transactionId"] == traded
    assert rows[3]["description"] == '\'=SUM(1), "x"'


def test_exports_name_the_currency_of_each_amount(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    """The balance of a capture in EUR is in DKK, and so is its fee."""
    api.act(shop, api.pay(merchant, 500, currency="EUR"), "captures", amount=500, currency="EUR")
    here = f"/merchants/{merchant['id']}"
    (line,) = api.listed(f"{here}/lines", shop)
    text = api.call("GET", f"{here}/lines.csv", shop).text
    (row,) = csv.DictReader(io.StringIO(text))
    assert text.splitlines()[0] == (  # a column stays where it is; new ones go to the end
        "id,created,kind,transactionId,currency,amount,balance,fee,description,test,fundingCurrency"
    )
    assert (row["currency"], row["amount"]) == ("EUR", "500")
    assert (row["fundingCurrency"], int(row["balance"])) == ("DKK", line["balance"])
    exported = json.loads(api.call("GET", f"{here}/lines.ndjson", shop).text)
    assert exported == line | {"fundingCurrency": "DKK"}


def test_lines_as_ndjson(api: PaymentsApi, shop: App, merchant: Merchant, traded: str) -> None:
    path = f"/merchants/{merchant['id']}/lines.ndjson"
    lines = api.listed(f"/merchants/{merchant['id']}/lines", shop)[::-1]
    response = api.call("GET", path, shop)
    assert response.headers["content-type"] == "application/x-ndjson"
    exported = [line | {"fundingCurrency": "DKK"} for line in lines]
    assert [json.loads(line) for line in response.text.splitlines()] == exported
    response = api.call("GET", path, shop, params={"after": lines[0]["id"]})
    assert [json.loads(line) for line in response.text.splitlines()] == exported[1:]
    for name in ("transactionId", "merchantId"):
        query = {f"filter[{name}]": ABSENT}
        assert api.call("GET", path, shop, params=query).text == ""
    query = {"filter[odd]": "1"}
    assert fields_of(api.call("GET", path, shop, params=query)) == ["filter.odd"]


def test_an_export_pages_through_all_lines(
    api: PaymentsApi, shop: App, merchant: Merchant, traded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollgate.serve.payments.api.routes.books.LINES_PER_PIECE", 1)
    response = api.call("GET", f"/merchants/{merchant['id']}/lines.ndjson", shop)
    assert len(response.text.splitlines()) == 3


def test_every_change_leaves_one_event_in_order(
    api: PaymentsApi, shop: App, merchant: Merchant, traded: str
) -> None:
    path = f"/merchants/{merchant['id']}/events"
    events = api.listed(path, shop)[::-1]
    assert [event["type"] for event in events] == [
        "merchant.opened",
        "transaction.created",
        "transaction.captured",
        "transaction.refunded",
        "transaction.captured",
    ]
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5]
    assert events[2]["data"]["transactionId"] == traded
    assert api.listed(path, shop, after=events[2]["id"]) == events[3:]


def test_a_refused_call_leaves_no_event(
    api: PaymentsApi, shop: App, merchant: Merchant, traded: str
) -> None:
    path = f"/merchants/{merchant['id']}/events"
    before = api.listed(path, shop)
    api.call("POST", f"/transactions/{traded}/captures", shop, json={"amount": 10**6})
    api.call("POST", f"/transactions/{traded}/captures", shop, json={"amount": 0})
    assert api.listed(path, shop) == before


def test_the_audit_says_who_from_where_and_why(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    paid = api.pay(merchant)
    headers = {"Idempotency-Key": "c1", "X-Request-ID": "req-1"}
    body = {"amount": 100}
    done(api.call("POST", f"/transactions/{paid}/captures", shop, json=body, headers=headers))
    path = f"/merchants/{merchant['id']}/audit"
    entries = api.listed(path, shop)
    assert [entry["seq"] for entry in entries] == [1, 2, 3]
    assert entries[1]["type"] == "transaction.created"
    assert (entries[1]["appId"], entries[1]["keyLast4"]) == (None, None)
    captured = entries[2]
    assert len(captured.pop("hash")) == 64
    assert captured == {
        "seq": 3,
        "created": "2026-01-01T00:00:00.002Z",
        "type": "transaction.captured",
        "appId": shop.id,
        "keyLast4": shop.key[-4:],
        "address": "192.0.2.7",
        "requestId": "req-1",
        "idempotencyKey": "c1",
    }
    assert api.listed(path, shop, after=1, limit=1)[0]["seq"] == 2
    assert lines_of(api.call("GET", path, shop, params={"limit": 9, "after": 99})) == []
    query = {"limit": 9, "after": "x"}
    assert fields_of(api.call("GET", path, shop, params=query)) == ["after"]
    assert fields_of(api.call("GET", path, shop)) == ["limit"]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_without_a_year_of_ours_is_refused(api: PaymentsApi, shop: App, at: str) -> None:
    path = f"/merchants/{api.new_merchant(shop)['id']}/balance"
    assert fields_of(api.call("GET", path, shop, params={"at": at})) == ["at"]
