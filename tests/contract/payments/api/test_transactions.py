"""Transactions: made by a customer and by a server, captured, refunded, voided; saved cards."""

import asyncio
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of

Merchant = dict[str, Any]
EUR_ENOUGH = {"currency": "EUR", "amount": 200}


@pytest.fixture
def paid(api: PaymentsApi, merchant: Merchant) -> str:
    """A customer's transaction of 300 in the funding currency."""
    return api.pay(merchant, 300)


def test_a_customer_s_transaction(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    paid = api.pay(merchant, 300, custom={"order": [1, {"x": None}]})
    assert api.transaction(shop, paid) == {
        "id": paid,
        "merchantId": merchant["id"],
        "test": True,
        "created": "2026-01-01T00:00:00.001Z",
        "currency": "DKK",
        "amount": 300,
        "descriptor": "Coffee & Cake",
        "pendingAmount": 300,
        "capturedAmount": 0,
        "refundedAmount": 0,
        "voidedAmount": 0,
        "disputedAmount": 0,
        "card": {
            "bin": "410000",
            "last4": "0000",
            "expiry": "2066-08-31T23:59:59.999Z",
            "scheme": "visa",
            "code": {"present": True},
        },
        "custom": {"order": [1, {"x": None}]},
        "recurring": False,
        "successful": True,
        "error": False,
        "trail": [],
    }


def test_a_capture_answers_with_what_is_then_read(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    path = f"/transactions/{paid}/captures"
    response = api.call("POST", path, shop, json={"amount": 100, "currency": "DKK"})
    assert response.status_code == 201
    assert api.call("GET", f"/transactions/{paid}", shop).content == response.content
    captured = response.json()["transaction"]
    assert (captured["capturedAmount"], captured["pendingAmount"]) == (100, 200)
    (entry,) = captured["trail"]
    (line,) = api.listed(f"/merchants/{merchant['id']}/lines", shop)
    assert entry["capture"] is True
    assert (entry["amount"], entry["lineId"]) == (100, line["id"])
    assert entry["descriptor"] == "Coffee & Cake"
    assert entry["fee"]["flat"] + entry["fee"]["rate"] == line["fee"]
    assert entry["balance"] == line["balance"] == 100 - line["fee"]


def test_amounts_are_gross(api: PaymentsApi, shop: App, paid: str) -> None:
    api.act(shop, paid, "captures", amount=200)
    refunded = api.act(shop, paid, "refunds", amount=120)
    amounts = [refunded[f"{name}Amount"] for name in ("captured", "refunded", "pending")]
    assert amounts == [200, 120, 100]
    voided = api.act(shop, paid, "voids", amount=60)
    assert (voided["voidedAmount"], voided["pendingAmount"]) == (60, 40)
    kinds = [set(entry) & {"capture", "refund", "void"} for entry in voided["trail"]]
    assert kinds == [{"capture"}, {"refund"}, {"void"}]
    assert "lineId" not in voided["trail"][2]


@pytest.mark.parametrize("what", ["captures", "voids"])
def test_no_more_than_is_pending(api: PaymentsApi, shop: App, paid: str, what: str) -> None:
    before = api.transaction(shop, paid)
    path = f"/transactions/{paid}/{what}"
    assert fields_of(api.call("POST", path, shop, json={"amount": 301})) == ["amount"]
    assert api.transaction(shop, paid) == before


def test_no_more_is_refunded_than_was_captured(api: PaymentsApi, shop: App, paid: str) -> None:
    path = f"/transactions/{paid}/refunds"
    assert fields_of(api.call("POST", path, shop, json={"amount": 1})) == ["amount"]
    api.act(shop, paid, "captures", amount=100)
    assert fields_of(api.call("POST", path, shop, json={"amount": 101})) == ["amount"]
    api.act(shop, paid, "refunds", amount=100)
    assert fields_of(api.call("POST", path, shop, json={"amount": 1})) == ["amount"]


@pytest.mark.parametrize("what", ["captures", "refunds", "voids"])
@pytest.mark.parametrize("amount", [None, 0, -1, 1.5, True, "1", "", [1], 2**53, 10**30, 1e300])
def test_what_is_no_amount_is_refused(
    api: PaymentsApi, shop: App, paid: str, what: str, amount: object
) -> None:
    response = api.call("POST", f"/transactions/{paid}/{what}", shop, json={"amount": amount})
    assert fields_of(response) == ["amount"]


@pytest.mark.parametrize("options", [{"json": {"amount": 100.0}}, {"data": {"amount": "100"}}])
def test_an_amount_may_be_an_integral_float_or_a_form_s_digits(
    api: PaymentsApi, shop: App, paid: str, options: dict[str, Any]
) -> None:
    done(api.call("POST", f"/transactions/{paid}/captures", shop, **options))
    assert api.transaction(shop, paid)["capturedAmount"] == 100


@pytest.mark.parametrize("amount", ["1.0", "+1", "-1", "1e2", " 1", "yes", "0", "00"])
def test_a_form_s_amount_is_digits(api: PaymentsApi, shop: App, paid: str, amount: str) -> None:
    path = f"/transactions/{paid}/captures"
    assert fields_of(api.call("POST", path, shop, data={"amount": amount})) == ["amount"]


@pytest.mark.parametrize("currency", ["EUR", "dkk", "", None])
def test_a_capture_s_currency_is_the_transaction_s(
    api: PaymentsApi, shop: App, paid: str, currency: str | None
) -> None:
    path = f"/transactions/{paid}/captures"
    response = api.call("POST", path, shop, json={"amount": 1, "currency": currency})
    if currency:
        assert fields_of(response) == ["currency"]
    else:
        assert response.status_code == 201


@pytest.mark.parametrize("what", ["refunds", "voids"])
def test_one_request_for_all_three_is_taken(
    api: PaymentsApi, shop: App, paid: str, what: str
) -> None:
    """Clients send `currency` and `descriptor` to each of the three."""
    api.act(shop, paid, "captures", amount=100)
    path, body = f"/transactions/{paid}/{what}", {"amount": 20, "descriptor": "Own"}
    before = api.transaction(shop, paid)
    response = api.call("POST", path, shop, json=body | {"currency": "EUR"})
    assert fields_of(response) == ["currency"]
    assert response.json()[0]["message"] == "the transaction is in DKK, not in EUR"
    assert api.transaction(shop, paid) == before
    for currency in ("DKK", "", None):
        done(api.call("POST", path, shop, json=body | {"currency": currency}))
    assert api.transaction(shop, paid)[f"{what.removesuffix('s')}edAmount"] == 60


@pytest.mark.parametrize("what", ["captures", "refunds"])
def test_a_descriptor_of_its_own(api: PaymentsApi, shop: App, paid: str, what: str) -> None:
    api.act(shop, paid, "captures", amount=50, descriptor="")
    acted = api.act(shop, paid, what, amount=50, descriptor="Own")
    assert [entry["descriptor"] for entry in acted["trail"]] == ["Coffee & Cake", "Own"]
    path = f"/transactions/{paid}/{what}"
    bad = {"amount": 50, "descriptor": "x" * 23}
    assert fields_of(api.call("POST", path, shop, json=bad)) == ["descriptor"]


def test_one_of_many_full_captures_wins(api: PaymentsApi, shop: App, paid: str) -> None:
    calls = [("POST", f"/transactions/{paid}/captures", shop, {"amount": 300})] * 8
    statuses = sorted(response.status_code for response in api.together(*calls))
    assert statuses[0] == 201
    assert set(statuses[1:]) <= {400, 409}
    assert api.transaction(shop, paid)["capturedAmount"] == 300


def test_whoever_saw_it_possible_and_lost_is_told_so(
    api: PaymentsApi, shop: App, paid: str
) -> None:
    async def both() -> list[int]:
        path, body = f"/transactions/{paid}/captures", {"amount": 300}
        processes = [api.another_process(), api.another_process()]
        responses = await asyncio.gather(
            *(api.request("POST", path, shop, process, json=body) for process in processes)
        )
        return sorted(response.status_code for response in responses)

    api.ledger.held = 2
    assert api.runner.run(both()) == [201, 409]


@pytest.mark.parametrize("name", ["transactionId", "authorizationId"])
def test_a_server_s_transaction_from_an_earlier_one(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str, name: str
) -> None:
    path = f"/merchants/{merchant['id']}/transactions"
    body = {name: paid, "custom": {"a": 1}, "descriptor": "Again", "cardId": False} | EUR_ENOUGH
    response = api.call("POST", path, shop, json=body)
    assert response.status_code == 201
    made = api.transaction(shop, response.json()["transaction"]["id"])
    assert made["recurring"] is True
    assert made["successful"] is True
    assert (made["currency"], made["amount"], made["pendingAmount"]) == ("EUR", 200, 200)
    assert (made["custom"], made["descriptor"]) == ({"a": 1}, "Again")
    assert made["card"] == api.transaction(shop, paid)["card"]


def test_a_server_s_transaction_from_a_saved_card(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    body = {"transactionId": paid, "notes": "his card"}
    response = api.call("POST", f"/merchants/{merchant['id']}/cards", shop, json=body)
    assert (response.status_code, response.json().keys()) == (201, {"card"})
    card = response.json()["card"]["id"]
    assert done(api.call("GET", f"/cards/{card}", shop))["card"] == {
        "id": card,
        "merchantId": merchant["id"],
        "created": "2026-01-01T00:00:00.002Z",
        "bin": "410000",
        "last4": "0000",
        "expiry": "2066-08-31T23:59:59.999Z",
        "scheme": "visa",
        "notes": "his card",
        "deleted": None,
    }
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"cardId": card, "transactionId": ""} | EUR_ENOUGH
    made = done(api.call("POST", path, shop, json=body))["transaction"]["id"]
    assert api.transaction(shop, made)["recurring"] is True


def test_a_card_without_notes(api: PaymentsApi, shop: App, merchant: Merchant, paid: str) -> None:
    path = f"/merchants/{merchant['id']}/cards"
    card = done(api.call("POST", path, shop, json={"transactionId": paid}))["card"]["id"]
    assert done(api.call("GET", f"/cards/{card}", shop))["card"]["notes"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"transactionId": None}, "transactionId"),
        ({"transactionId": ABSENT}, "transactionId"),
        ({"transactionId": "x"}, "transactionId"),
        ({"transactionId": 5}, "transactionId"),
        ({"authorizationId": ABSENT}, "authorizationId"),
        ({"cardId": ABSENT}, "cardId"),
        ({"transactionId": False, "cardId": ABSENT}, "cardId"),
        ({"transactionId": "", "cardId": "x"}, "cardId"),
        ({"currency": None}, "currency"),
        ({"currency": "XXX"}, "currency"),
        ({"currency": "HRK"}, "currency"),
        ({"amount": 0}, "amount"),
        ({"descriptor": "ø"}, "descriptor"),
        ({"custom": "x"}, "custom"),
        ({"custom": {"x": "y" * 50 * 1024}}, "custom"),
    ],
)
def test_a_bad_field_of_a_server_s_transaction_is_named(
    api: PaymentsApi,
    shop: App,
    merchant: Merchant,
    paid: str,
    change: dict[str, object],
    field: str,
) -> None:
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"transactionId": paid} | EUR_ENOUGH | change
    assert fields_of(api.call("POST", path, shop, json=body)) == [field]
    assert [each["id"] for each in api.listed(path, shop)] == [paid]


def test_another_merchant_s_transaction_is_no_source(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    other = api.pay(api.new_merchant(shop))
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"transactionId": other} | EUR_ENOUGH
    assert fields_of(api.call("POST", path, shop, json=body)) == ["transactionId"]
    path = f"/merchants/{merchant['id']}/cards"
    assert fields_of(api.call("POST", path, shop, json={"transactionId": other})) == [
        "transactionId"
    ]


@pytest.mark.parametrize("code", [6, 7, 8, 9, 10, 11, 12, 25])
def test_a_failed_attempt_is_answered_stored_and_of_no_use(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str, code: int
) -> None:
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"transactionId": paid, "currency": "EUR", "amount": 666_000 + code}
    response = api.call("POST", path, shop, json=body)
    assert response.status_code == 400
    error = response.json()
    stored = error.pop("response")["transaction"]["id"]
    assert error.pop("text")
    assert error["code"] == code
    failed = api.transaction(shop, stored)
    assert failed["error"] == error
    assert (failed["successful"], failed["amount"]) == (False, 666_000 + code)
    names = ("pending", "captured", "refunded", "voided", "disputed")
    assert [failed[f"{name}Amount"] for name in names] == [0] * 5
    assert failed["advice"]["retry"] is (code not in (6, 10))
    response = api.call("POST", f"/transactions/{stored}/captures", shop, json={"amount": 1})
    assert fields_of(response) == [""]
    response = api.call("POST", path, shop, json={"transactionId": stored} | EUR_ENOUGH)
    assert fields_of(response) == ["transactionId"]


def test_a_live_merchant_without_a_network_says_so(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    api.approve(live)
    path = f"/merchants/{live['id']}/transactions"
    response = api.call("POST", path, shop, json={"transactionId": ABSENT} | EUR_ENOUGH)
    assert fields_of(response) == [""]
    assert "this Tollgate has no card network for them" in response.json()[0]["message"]
    response = api.call("POST", "/sandbox/payments", json={"key": live["key"]})
    assert fields_of(response) == ["key"]
    assert "the sandbox is for test ones" in response.json()[0]["message"]


@pytest.mark.parametrize("path", ["/transactions/{}", "/cards/{}", "/lines/{}"])
@pytest.mark.parametrize("entity", [ABSENT, "x", "F" * 24, "%20"])
def test_what_is_not_there(api: PaymentsApi, shop: App, path: str, entity: str) -> None:
    assert api.call("GET", path.format(entity), shop).status_code == 404


@pytest.mark.parametrize("what", ["captures", "refunds", "voids"])
def test_nothing_is_done_to_what_is_not_there(api: PaymentsApi, shop: App, what: str) -> None:
    for entity in (ABSENT, "x"):
        response = api.call("POST", f"/transactions/{entity}/{what}", shop, json={"amount": 1})
        assert response.status_code == 404
