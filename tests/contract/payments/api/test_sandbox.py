"""What the world does to test merchants: payments, disputes, frauds, payouts; and the operator."""

from typing import Any

import pytest

from tests.support.payments.api import (
    ABSENT,
    GOOD_CARD,
    OPERATOR_KEY,
    App,
    PaymentsApi,
    done,
    fields_of,
)

Merchant = dict[str, Any]


def payment(merchant: Merchant, **changes: object) -> dict[str, object]:
    return {"key": merchant["key"], "amount": 100, "currency": "EUR", "card": GOOD_CARD} | changes


def test_a_payment_by_form(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    form = {
        "key": merchant["key"],
        "amount": "250",
        "currency": "EUR",
        "card[number]": "4100 0000 0000 0000",
        "card[expiry][month]": "8",
        "card[expiry][year]": "66",
        "card[code]": "123",
        "custom[order]": "7",
    }
    made = done(api.call("POST", "/sandbox/payments", data=form))["transaction"]["id"]
    transaction = api.transaction(shop, made)
    assert (transaction["amount"], transaction["custom"]) == (250, {"order": "7"})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"key": None}, 26),
        ({"key": "nobody's"}, 26),
        ({"amount": None}, 15),
        ({"amount": 0}, 14),
        ({"currency": None}, 16),
        ({"currency": "XXX"}, 1),
        ({"card": None}, 17),
        ({"card": "4100000000000000"}, 17),
        ({"card": GOOD_CARD | {"number": ""}}, 17),
        ({"card": GOOD_CARD | {"expiry": {"year": 2066}}}, 18),
        ({"card": GOOD_CARD | {"expiry": {"month": 8}}}, 19),
        ({"card": GOOD_CARD | {"code": None}}, 20),
        ({"card": GOOD_CARD | {"expiry": {"month": 13, "year": 2066}}}, 5),
        ({"card": GOOD_CARD | {"code": "x"}}, 4),
        ({"card": GOOD_CARD | {"number": "41"}}, 3),
    ],
)
def test_what_is_wrong_with_a_payment_has_a_number(
    api: PaymentsApi, shop: App, merchant: Merchant, change: dict[str, object], code: int
) -> None:
    response = api.call("POST", "/sandbox/payments", json=payment(merchant, **change))
    assert response.status_code == 400
    error = response.json()
    assert error["code"] == code
    assert error["message"]
    assert error["text"]
    assert error["client"] or error["merchant"]
    assert "response" not in error
    assert api.listed(f"/merchants/{merchant['id']}/transactions", shop) == []


@pytest.mark.parametrize("number", ["4242424242424242", "4100000000000001"])
def test_a_number_that_could_be_real_is_refused_and_not_repeated(
    api: PaymentsApi, merchant: Merchant, number: str
) -> None:
    card = GOOD_CARD | {"number": number}
    response = api.call("POST", "/sandbox/payments", json=payment(merchant, card=card))
    assert fields_of(response) == ["card.number"]
    assert number not in response.text


@pytest.mark.parametrize(
    ("test", "code"),
    [
        ({"card": {"status": "expired"}}, 6),
        ({"card": {"scheme": "unsupported"}}, 29),
        ({"card": {"code": "invalid"}}, 4),
        ({"card": {"limit": {"currency": "EUR", "exponent": 2, "value": 99}}}, 25),
        ({"tds": {"status": "rejected"}}, 31),
    ],
)
def test_a_card_behaves_as_it_is_told(
    api: PaymentsApi, shop: App, merchant: Merchant, test: dict[str, object], code: int
) -> None:
    response = api.call("POST", "/sandbox/payments", json=payment(merchant, test=test))
    assert response.status_code == 400
    assert response.json()["code"] == code
    stored = response.json()["response"]["transaction"]["id"]
    assert api.transaction(shop, stored)["successful"] is False


def test_3d_secure_is_kept_on_the_transaction(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    full = api.pay(merchant, test={"tds": {}})
    attempt = api.pay(merchant, test={"tds": {"status": "attempted"}})
    assert api.transaction(shop, full)["tds"] == "full"
    assert api.transaction(shop, attempt)["tds"] == "attempt"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"test": {"card": {"status": "odd"}}}, "test.card.status"),
        ({"test": 5}, "test"),
        ({"custom": [{}]}, "custom"),
    ],
)
def test_a_bad_field_of_a_payment_is_named(
    api: PaymentsApi, merchant: Merchant, change: dict[str, object], field: str
) -> None:
    response = api.call("POST", "/sandbox/payments", json=payment(merchant, **change))
    assert fields_of(response) == [field]


def test_the_sandbox_is_not_for_live_merchants(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    assert fields_of(api.call("POST", "/sandbox/payments", json=payment(live))) == ["key"]
    body = {"merchantId": live["id"], "amount": 1}
    assert api.call("POST", "/sandbox/payouts", shop, json=body).status_code == 403


@pytest.mark.parametrize(("end", "kept"), [("won", "won"), ("lost", "lost")])
def test_a_dispute_is_opened_and_decided_once(
    api: PaymentsApi, shop: App, merchant: Merchant, end: str, kept: str
) -> None:
    paid = api.pay(merchant)
    api.act(shop, paid, "captures", amount=500)
    balance = done(api.call("GET", f"/merchants/{merchant['id']}", shop))["merchant"]["balance"]
    body = {"transactionId": paid, "amount": 300, "reason": {"code": 83, "title": "Fraud"}}
    response = api.call("POST", "/sandbox/disputes", shop, json=body)
    assert response.status_code == 201
    dispute = response.json()["dispute"]
    assert dispute["reason"] == {"code": 83, "title": "Fraud"}
    assert done(api.call("GET", f"/disputes/{dispute['id']}", shop)) == response.json()
    query = {"filter[merchantId]": merchant["id"], "filter[transactionId]": paid}
    assert api.listed("/disputes", shop, **query) == [dispute]
    assert api.transaction(shop, paid)["disputedAmount"] == 300
    path = f"/transactions/{paid}/refunds"
    assert fields_of(api.call("POST", path, shop, json={"amount": 201})) == ["amount"]
    decided = api.call("POST", f"/sandbox/disputes/{dispute['id']}/{end}", shop)
    assert decided.status_code == 201
    assert decided.json()["dispute"] == dispute | {kept: True}
    again = api.call("POST", f"/sandbox/disputes/{dispute['id']}/won", shop)
    assert fields_of(again) == [""]
    transaction = api.transaction(shop, paid)
    assert transaction["disputedAmount"] == (0 if end == "won" else 300)
    ends = [entry["dispute"] for entry in transaction["trail"] if "dispute" in entry]
    assert ends == [{"id": dispute["id"]}, {"id": dispute["id"], kept: True}]
    after = done(api.call("GET", f"/merchants/{merchant['id']}", shop))["merchant"]["balance"]
    lines = api.listed(f"/merchants/{merchant['id']}/lines", shop, limit=2)
    assert [line.get(kept) for line in lines] == [True, None]
    assert after == balance + sum(line["balance"] for line in lines)


def test_a_fraud_is_reported(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    paid = api.pay(merchant)
    response = api.call("POST", "/sandbox/frauds", shop, json={"transactionId": paid, "reason": 6})
    assert response.status_code == 201
    fraud = response.json()["fraud"]
    assert (fraud["transactionId"], fraud["reason"]) == (paid, 6)
    assert fraud["reported"] == "2026-01-01T00:00:00.000Z"
    assert done(api.call("GET", f"/frauds/{fraud['id']}", shop)) == response.json()
    assert api.listed("/frauds", shop, **{"filter[merchantId]": merchant["id"]}) == [fraud]
    body = {"transactionId": paid, "reason": 9}
    assert fields_of(api.call("POST", "/sandbox/frauds", shop, json=body)) == ["reason"]
    without = done(api.call("POST", "/sandbox/frauds", shop, data={"transactionId": paid}))
    assert "reason" not in without["fraud"]


@pytest.mark.parametrize("path", ["/disputes", "/frauds"])
def test_reports_are_asked_for_by_merchant(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    response = api.call("GET", path, shop, params={"limit": 1})
    assert fields_of(response) == ["filter.merchantId"]
    query = {"limit": 1, "filter[merchantId]": ABSENT}
    assert api.call("GET", path, shop, params=query).status_code == 404
    query["filter[merchantId]"] = str(merchant["id"])
    assert api.call("GET", path, api.new_app(), params=query).status_code == 403
    assert api.call("GET", f"{path}/{ABSENT}", shop).status_code == 404


def test_a_payout_in_the_sandbox(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    paid = api.pay(merchant)
    balance = api.act(shop, paid, "captures", amount=1000)["trail"][0]["balance"]
    body = {"merchantId": merchant["id"], "amount": balance, "description": "January"}
    response = api.call("POST", "/sandbox/payouts", shop, json=body)
    assert response.status_code == 201
    line = response.json()["line"]
    assert (line["payout"], line["balance"], line["description"]) == (True, -balance, "January")
    assert fields_of(api.call("POST", "/sandbox/payouts", shop, json=body)) == ["amount"]


def test_the_operator_pays_out_to_live_merchants_too(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    api.approve(live)
    body = {"merchantId": live["id"], "amount": 1}
    response = api.call("POST", "/operator/payouts", OPERATOR_KEY, json=body)
    assert fields_of(response) == ["amount"]  # (nothing is on the balance)
    body["merchantId"] = ABSENT
    response = api.call("POST", "/operator/payouts", OPERATOR_KEY, json=body)
    assert fields_of(response) == ["merchantId"]


def test_the_books_of_all_merchants_cancel_out(api: PaymentsApi, shop: App) -> None:
    for currency in ("DKK", "EUR"):
        merchant = api.new_merchant(shop, currency=currency)
        paid = api.pay(merchant, currency="USD")
        api.act(shop, paid, "captures", amount=700)
        api.act(shop, paid, "refunds", amount=200)
    trial = done(api.call("GET", "/operator/trial-balance", OPERATOR_KEY))["trialBalance"]
    assert trial["balanced"] is True
    assert {account["currency"] for account in trial["accounts"]} == {"DKK", "EUR", "USD"}


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/operator/payouts"), ("GET", "/operator/trial-balance")]
)
def test_the_operator_s_calls_take_his_key_alone(
    api: PaymentsApi, shop: App, method: str, path: str
) -> None:
    assert api.call(method, path).status_code == 401
    assert api.call(method, path, shop).status_code == 401
    assert api.call("GET", "/me", OPERATOR_KEY).status_code == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/payouts"), ("GET", "/trial-balance"), ("POST", "/imports")],
)
def test_the_operator_s_calls_are_not_at_the_door_of_the_apps(
    api: PaymentsApi, method: str, path: str
) -> None:
    options = {"client": api.client}
    response = api.call(method, f"/operator{path}", OPERATOR_KEY, **options)
    assert response.status_code == 404
    assert "/operator" not in api.call("GET", "/openapi.json").text


def test_the_apps_calls_are_not_at_the_door_of_the_operator(api: PaymentsApi, shop: App) -> None:
    options = {"client": api.operator_client}
    assert api.call("GET", "/me", shop, **options).status_code == 404
    described = done(api.call("GET", "/openapi.json", **options))
    assert set(described["paths"]) == {
        "/operator/payouts",
        "/operator/trial-balance",
        "/operator/imports",
        "/operator/disputes",
        "/operator/frauds",
        "/operator/settlements",
        "/operator/merchants/{merchantId}/settlements",
        "/operator/apps/{appId}/keys",
        "/operator/merchants/{merchantId}",
        "/operator/merchants/{merchantId}/approval",
        "/operator/merchants/{merchantId}/pricing",
        "/operator/merchants/{merchantId}/rejection",
        "/operator/waiting-merchants",
    }
