"""Live merchants wait for the operator's approval, and exchange by rates that are not too old."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.support.payments.api import (
    ABSENT,
    MERCHANT,
    NOW_S,
    OPERATOR_KEY,
    App,
    PaymentsApi,
    done,
    fields_of,
    lines_of,
)
from tollgate.actors.ledger.law.commands import Authorise, Order
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.values import (
    OPERATOR,
    BookId,
    CardBrand,
    CardSummary,
    Currency,
    Origin,
)
from tollgate.serve.payments.api.application import payments_application
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.api.limits import waiting_merchants

WAITS = "the merchant is live and waits for the operator's approval"
CARD = CardSummary("410000", "0000", 3_042_000_000_000, CardBrand.VISA, has_code=True)
PAYMENT = {"transactionId": ABSENT, "currency": "EUR", "amount": 5}


def waiting(api: PaymentsApi) -> list[str]:
    return list(api.waiting())


def approval(api: PaymentsApi, merchant: dict[str, Any], version: str) -> httpx.Response:
    path = f"/operator/merchants/{merchant['id']}/approval"
    body = {"version": version}
    response = api.call("PUT", path, OPERATOR_KEY, json=body)
    assert isinstance(response, httpx.Response)
    return response


def found(api: PaymentsApi, shop: App, merchant: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = done(api.call("GET", f"/merchants/{merchant['id']}", shop))
    return answer["merchant"]


def test_a_live_merchant_waits_and_is_approved(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    api.new_merchant(shop)
    assert not live["claim"]["canChargeCard"]
    assert waiting(api) == [live["id"]]
    response = api.call("POST", f"/merchants/{live['id']}/transactions", shop, json=PAYMENT)
    assert response.status_code == 400
    assert response.json() == {
        "code": 27,
        "message": f"Merchant may not create transactions: {WAITS}",
        "text": "The shop may not take payments at the moment.",
        "client": False,
        "merchant": True,
    }
    body = {"merchantId": live["id"], "amount": 1}
    response = api.call("POST", "/operator/payouts", OPERATOR_KEY, json=body)
    assert response.json() == [{"field": "", "message": WAITS}]
    body = {"transactionId": ABSENT}
    response = api.call("POST", f"/merchants/{live['id']}/cards", shop, json=body)
    assert (response.status_code, response.json()["code"]) == (400, 28)
    done(api.call("PUT", f"/merchants/{live['id']}", shop, json={"name": "Coffee"}))
    version = api.waiting()[live["id"]]["version"]
    for _ in range(2):
        response = approval(api, live, version)
        assert (response.status_code, response.content) == (204, b"")
    assert waiting(api) == []
    assert all(
        value is (name != "canTransferToCard")
        for name, value in found(api, shop, live)["claim"].items()
    )
    events = api.listed(f"/merchants/{live['id']}/events", shop)
    assert [each["type"] for each in events].count("merchant.approved") == 1
    (audit,) = (
        each
        for each in api.listed(f"/merchants/{live['id']}/audit", shop)
        if each["type"] == "merchant.approved"
    )
    assert (audit["appId"], audit["keyLast4"]) == (OPERATOR, OPERATOR_KEY[-4:])
    response = api.call("POST", f"/merchants/{live['id']}/transactions", shop, json=PAYMENT)
    assert fields_of(response) == [""]


def test_the_document_cannot_be_made_to_look_as_if_it_waited(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False, name='"canChargeCard":false')
    api.approve(live)
    assert waiting(api) == []


def test_those_that_wait_are_paged(api: PaymentsApi, shop: App) -> None:
    ids = [api.new_merchant(shop, test=False)["id"] for _ in range(3)]
    assert waiting(api) == ids[::-1]
    path = f"/operator/waiting-merchants?limit=1&before={ids[2]}"
    (page,) = lines_of(api.call("GET", path, OPERATOR_KEY))
    assert page["id"] == ids[1]
    assert fields_of(api.call("GET", "/operator/waiting-merchants", OPERATOR_KEY)) == ["limit"]


@pytest.mark.parametrize("merchant", [ABSENT, "x"])
def test_only_what_is_there_is_approved(api: PaymentsApi, merchant: str) -> None:
    assert approval(api, {"id": merchant}, "0" * 32).status_code == 404


def test_the_list_shows_what_is_approved(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False, name="Tea")
    (read,) = api.waiting().values()
    assert {name: read[name] for name in live} == live
    assert read.keys() - live.keys() == {"version"}
    assert fields_of(approval(api, live, "")) == ["version"]
    path = f"/operator/merchants/{live['id']}/approval"
    assert fields_of(api.call("PUT", path, OPERATOR_KEY)) == ["version"]


def test_a_merchant_that_was_changed_meanwhile_is_not_approved(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    read = api.waiting()[live["id"]]["version"]
    here = f"/merchants/{live['id']}"
    for changes in ({"email": "x@example.com"}, {"name": "Tea", "email": "y@example.com"}):
        done(api.call("PUT", here, shop, json=changes))
    response = approval(api, live, read)
    assert (response.status_code, response.json()["code"]) == (409, "CONFLICT")
    assert response.json()["message"] == (
        'nothing was approved: the name was "" and is now "Tea", the email was '
        '"shop@example.com" and is now "y@example.com"; look at the merchant again'
    )
    response = approval(api, live, "0" * 32)
    assert response.status_code == 409
    assert "it is no version of this merchant" in response.json()["message"]
    assert waiting(api) == [live["id"]]
    api.approve(live)


def test_one_that_is_rejected_waits_no_more(api: PaymentsApi, shop: App) -> None:
    """Whatever its texts are."""
    live = api.new_merchant(shop, test=False)
    other = api.new_merchant(shop, test=False, name='"rejected":true')
    path = f"/operator/merchants/{live['id']}/rejection"
    for _ in range(2):
        assert api.call("PUT", path, OPERATOR_KEY).status_code == 204
    assert waiting(api) == [other["id"]]
    assert found(api, shop, live)["rejected"] is True
    response = api.call("POST", f"/merchants/{live['id']}/transactions", shop, json=PAYMENT)
    assert response.json()["code"] == 27
    assert "the operator has rejected it" in response.json()["message"]
    api.approve(other)
    path = f"/operator/merchants/{other['id']}/rejection"
    assert fields_of(api.call("PUT", path, OPERATOR_KEY)) == [""]


def test_an_approved_merchant_is_changed_by_the_operator(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    api.approve(live)
    here = f"/merchants/{live['id']}"
    response = api.call("PUT", here, shop, json={"descriptor": "Bank", "email": live["email"]})
    assert fields_of(response) == ["descriptor"]
    assert "only the operator changes it now" in response.json()[0]["message"]
    done(api.call("PUT", here, shop, json={"email": live["email"]}))
    done(api.call("PUT", f"/operator{here}", OPERATOR_KEY, json={"descriptor": "Tea"}))
    assert found(api, shop, live)["descriptor"] == "Tea"
    assert found(api, shop, live)["claim"]["canChargeCard"]
    (audit,) = (
        each for each in api.listed(f"{here}/audit", shop) if each["type"] == "merchant.changed"
    )
    assert audit["appId"] == OPERATOR
    path = f"/operator/merchants/{ABSENT}"
    assert api.call("PUT", path, OPERATOR_KEY, json={"name": "x"}).status_code == 404


Opened = Callable[..., httpx.Response]


@pytest.fixture
def opened(api: PaymentsApi, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Opens a live merchant, where 2 of an app, 3 of an address and 5 in all may wait."""
    for name, most in (("PER_APP_", 2), ("PER_ADDRESS_", 3), ("", 5)):
        monkeypatch.setattr(waiting_merchants, f"WAITING_{name}MAX", most)

    def opened(app: App, address: str = "192.0.2.7", key: str = "") -> httpx.Response:
        api.address = address
        client = api.client_of(payments_application(Dispatcher(api.context), "0.0"))
        body, headers = MERCHANT | {"test": False}, {"Idempotency-Key": key} if key else {}
        call = {"json": body, "headers": headers, "client": client}
        response = api.call("POST", "/merchants", app, **call)
        assert isinstance(response, httpx.Response)
        return response

    return opened


def test_so_many_wait_of_an_app_and_no_more(api: PaymentsApi, shop: App, opened: Opened) -> None:
    first = opened(shop, key="first")
    assert opened(shop).status_code == 201
    response = opened(shop)
    assert (response.status_code, response.headers["retry-after"]) == (429, "3600")
    assert response.json()["message"] == (
        "2 live merchants of your app wait for approval, and no more may: ask the operator to look "
        "at them"
    )
    # What was done already is told again, and test merchants never wait.
    assert opened(shop, key="first").content == first.content
    api.new_merchant(shop)
    api.approve(first.json()["merchant"])
    assert opened(shop).status_code == 429, "counted a moment ago"
    api.clock.advance(10)
    assert opened(shop).status_code == 201


def test_so_many_wait_of_an_address_and_in_all(api: PaymentsApi, shop: App, opened: Opened) -> None:
    apps = [shop, *(api.new_app() for _ in range(5))]
    for app in apps[:3]:
        assert opened(app, "2001:db8::1").status_code == 201
    api.clock.advance(60)  # (and so it is not known by this process alone)
    response = opened(apps[3], "2001:db8::2")
    assert response.status_code == 429
    assert "3 live merchants of your address" in response.json()["message"]
    for app in apps[3:5]:
        assert opened(app).status_code == 201
    for _ in range(2):
        response = opened(apps[5], "192.0.2.9")
        assert (response.status_code, response.headers["retry-after"]) == (503, "3600")
        assert "(5) wait already" in response.json()["message"]
        api.clock.advance(60)
    api.clock.advance(30 * 86_400)
    assert opened(apps[5], "192.0.2.9").status_code == 201


def test_the_operator_may_do_without(api: PaymentsApi, shop: App) -> None:
    api.use_trade(replace(api.trade, approves_live=True))
    live = api.new_merchant(shop, test=False)
    assert live["claim"]["canChargeCard"]
    assert waiting(api) == []
    done(api.call("PUT", f"/merchants/{live['id']}", shop, json={"descriptor": "Tea"}))


def authorised(api: PaymentsApi, merchant: dict[str, Any], currency: str) -> str:
    """A payment that some card network took for a live merchant."""
    command = Authorise(Currency(currency), 2, 10_000, CARD, "", "", None)
    order = Order(
        operation=f"network-{currency}",
        book=BookId(merchant["id"]),
        command=command,
        origin=Origin(OPERATOR, "", "", ""),
        time_left_ms=1_000,
    )
    (answer,) = api.runner.run(api.ledger.execute([order]))
    assert isinstance(answer, Done)
    return answer.body.decode().split('"')[5]


def test_live_merchants_exchange_by_young_rates_alone(api: PaymentsApi, shop: App) -> None:
    """The shipped table is of a year ago by the clock of these tests."""
    live = api.new_merchant(shop, test=False, currency="EUR")
    api.approve(live)
    path = f"/transactions/{authorised(api, live, 'USD')}/captures"
    for client in (None, api.another_process()):  # (where it is read first, and where it is known)
        response = api.call("POST", path, shop, json={"amount": 100}, client=client)
        assert fields_of(response) == ["currency"]
        message = response.json()[0]["message"]
        assert message.startswith("the exchange rates in exchange-rates.yaml are dated 2025-01-01")
    own = authorised(api, live, "EUR")
    done(api.call("POST", f"/transactions/{own}/captures", shop, json={"amount": 100}))
    # What was done by young rates is told again when they have become too old.
    age_ms = NOW_S * 1000 - 1_735_689_600_000
    api.use_trade(replace(api.trade, rates_age_max_ms=age_ms + 60_000))
    headers = {"Idempotency-Key": "invoice-1"}
    captured = api.call("POST", path, shop, json={"amount": 100}, headers=headers)
    assert captured.status_code == 201
    api.clock.advance(3_600)
    assert fields_of(api.call("POST", path, shop, json={"amount": 100})) == ["currency"]
    again = api.call("POST", path, shop, json={"amount": 100}, headers=headers)
    assert (again.status_code, again.content) == (201, captured.content)


def test_a_fee_in_another_currency_does_not_wait_for_young_rates(
    api: PaymentsApi, shop: App
) -> None:
    """The shipped fees are in EUR: what this merchant takes is in the currency of its account."""
    live = api.new_merchant(shop, test=False, currency="DKK")
    api.approve(live)
    own = authorised(api, live, "DKK")
    captured = api.act(shop, own, "captures", amount=100)
    assert captured["trail"][0]["fee"]["flat"] == 187


def test_test_merchants_exchange_out_of_the_box(api: PaymentsApi, shop: App) -> None:
    merchant = api.new_merchant(shop)
    paid = api.pay(merchant, currency="USD")
    api.act(shop, paid, "captures", amount=100)
