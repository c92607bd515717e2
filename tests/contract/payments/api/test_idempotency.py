"""Idempotency-Key (part D; C2): one effect and the same bytes, however often and whenever."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.payments.api import MERCHANT, REFERENCE, App, PaymentsApi, done, fields_of

Merchant = dict[str, Any]
CURRENCIES = REFERENCE.currencies
KEY = {"Idempotency-Key": "the-key"}


@pytest.fixture
def paid(api: PaymentsApi, merchant: Merchant) -> str:
    return api.pay(merchant, 300)


def test_a_repeated_capture_is_one_capture(api: PaymentsApi, shop: App, paid: str) -> None:
    path, body = f"/transactions/{paid}/captures", {"amount": 300}
    first = api.call("POST", path, shop, json=body, headers=KEY)
    assert "idempotency-replayed" not in first.headers
    for _ in range(2):
        again = api.call("POST", path, shop, json=body, headers=KEY)
        assert (again.status_code, again.content) == (201, first.content)
        assert again.headers["idempotency-replayed"] == "true"
    assert api.transaction(shop, paid)["capturedAmount"] == 300
    # The reply stays the first one, whatever has become of the transaction.
    api.act(shop, paid, "refunds", amount=300)
    assert api.call("POST", path, shop, json=body, headers=KEY).content == first.content


def test_repetitions_at_the_same_time_are_one_capture(
    api: PaymentsApi, shop: App, paid: str
) -> None:
    call = ("POST", f"/transactions/{paid}/captures", shop, {"amount": 100})
    responses = api.together(*[call] * 5, headers=KEY)
    assert {response.content for response in responses} == {responses[0].content}
    replayed = [response.headers.get("idempotency-replayed") for response in responses]
    assert sorted(replayed, key=str) == [None, "true", "true", "true", "true"]
    assert api.transaction(shop, paid)["capturedAmount"] == 100


def test_the_order_of_names_and_a_trailing_slash_make_no_difference(
    api: PaymentsApi, shop: App, paid: str
) -> None:
    path = f"/transactions/{paid}/captures"
    first = api.call(
        "POST", path, shop, content=b'{"amount":1,"currency":"DKK"}', headers=KEY | JSON
    )
    again = api.call(
        "POST", f"{path}/", shop, content=b'{ "currency": "DKK", "amount": 1 }', headers=KEY | JSON
    )
    assert again.content == first.content


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("captures", {"amount": 2}),
        ("voids", {"amount": 1}),
        ("captures", {"amount": 1, "descriptor": "x"}),
    ],
)
def test_another_request_with_the_same_key_is_refused(
    api: PaymentsApi, shop: App, paid: str, what: str, body: dict[str, object]
) -> None:
    path = f"/transactions/{paid}/captures"
    done(api.call("POST", path, shop, json={"amount": 1}, headers=KEY))
    before = api.transaction(shop, paid)
    response = api.call("POST", f"/transactions/{paid}/{what}", shop, json=body, headers=KEY)
    assert response.status_code == 422
    assert response.json()["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert api.transaction(shop, paid) == before


def test_a_refusal_is_not_kept(api: PaymentsApi, shop: App, paid: str) -> None:
    path, body = f"/transactions/{paid}/refunds", {"amount": 100}
    assert fields_of(api.call("POST", path, shop, json=body, headers=KEY)) == ["amount"]
    api.act(shop, paid, "captures", amount=100)
    response = api.call("POST", path, shop, json=body, headers=KEY)
    assert response.status_code == 201
    assert "idempotency-replayed" not in response.headers


def test_a_failed_attempt_is_kept_with_its_status(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"transactionId": paid, "currency": "EUR", "amount": 666_007}
    first = api.call("POST", path, shop, json=body, headers=KEY)
    again = api.call("POST", path, shop, json=body, headers=KEY)
    assert (again.status_code, again.content) == (400, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert len(api.listed(path, shop)) == 2


def test_a_key_belongs_to_an_app_and_a_merchant(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    other = api.new_app()
    body = {"appId": other.id}
    done(api.call("POST", f"/merchants/{merchant['id']}/apps", shop, json=body))
    for app in (shop, other):
        path = f"/transactions/{paid}/captures"
        response = api.call("POST", path, app, json={"amount": 10}, headers=KEY)
        assert "idempotency-replayed" not in response.headers
    second = api.new_merchant(shop)
    path = f"/transactions/{api.pay(second)}/captures"
    response = api.call("POST", path, shop, json={"amount": 20}, headers=KEY)
    assert response.status_code == 201
    assert api.transaction(shop, paid)["capturedAmount"] == 20


def test_puts_and_deletes_take_a_key_too(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    path = f"/merchants/{merchant['id']}"
    for _ in range(2):
        response = api.call("PUT", path, shop, json={"name": "New"}, headers=KEY)
        assert (response.status_code, response.content) == (204, b"")
    assert response.headers["idempotency-replayed"] == "true"
    done(api.call("POST", f"{path}/users", shop, json={"email": "a@example.com"}))
    (user,) = api.listed(f"{path}/users", shop)
    key = {"Idempotency-Key": "another"}
    for _ in range(2):
        response = api.call("DELETE", f"{path}/users/{user['id']}", shop, headers=key)
        assert response.status_code == 204
    assert response.headers["idempotency-replayed"] == "true"


def test_a_repeated_payment_by_card_is_one_payment(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    card = {"number": "4100000000000000", "expiry": {"month": 8, "year": 2066}, "code": "123"}
    body = {"key": merchant["key"], "amount": 5, "currency": "EUR", "card": card}
    first = api.call("POST", "/sandbox/payments", json=body, headers=KEY)
    again = api.call("POST", "/sandbox/payments", json=body, headers=KEY)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    other = api.call("POST", "/sandbox/payments", json=body | {"amount": 6}, headers=KEY)
    assert other.status_code == 422


def with_other_tables(api: PaymentsApi) -> Any:
    """A process whose tables have other words for errors, and no currency but deprecated ones."""
    currencies = {
        code: replace(each, is_deprecated=True) for code, each in CURRENCIES.by_code.items()
    }
    errors = {
        code: replace(each, error=replace(each.error, message="Other words", text="Other words."))
        for code, each in REFERENCE.errors.by_code.items()
    }
    return api.another_process(
        replace(
            REFERENCE,
            currencies=replace(CURRENCIES, by_code=currencies),
            errors=replace(REFERENCE.errors, by_code=errors),
        )
    )


@pytest.mark.parametrize("amount", [5, 666_007])
def test_a_repeated_transaction_is_not_judged_by_later_tables(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str, amount: int
) -> None:
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"transactionId": paid, "currency": "EUR", "amount": amount}
    first = api.call("POST", path, shop, json=body, headers=KEY)
    client = with_other_tables(api)
    again = api.call("POST", path, shop, json=body, headers=KEY, client=client)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert fields_of(api.call("POST", path, shop, json=body, client=client)) == ["currency"]
    assert len(api.listed(path, shop)) == 2


def test_a_repeated_merchant_is_not_judged_by_later_tables(api: PaymentsApi, shop: App) -> None:
    first = api.call("POST", "/merchants", shop, json=MERCHANT, headers=KEY)
    client = with_other_tables(api)
    again = api.call("POST", "/merchants", shop, json=MERCHANT, headers=KEY, client=client)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    other = api.call("POST", "/merchants", shop, json=MERCHANT, client=client)
    assert fields_of(other) == ["currency"]


@pytest.mark.parametrize("test", [{}, {"card": {"status": "expired"}}])
def test_a_repeated_payment_by_card_is_not_judged_by_later_tables(
    api: PaymentsApi, merchant: Merchant, test: dict[str, Any]
) -> None:
    card = {"number": "4100000000000000", "expiry": {"month": 8, "year": 2066}, "code": "123"}
    body = {"key": merchant["key"], "amount": 5, "currency": "EUR", "card": card, "test": test}
    first = api.call("POST", "/sandbox/payments", json=body, headers=KEY)
    client = with_other_tables(api)
    again = api.call("POST", "/sandbox/payments", json=body, headers=KEY, client=client)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    for other in (card | {"number": "4200000000000000"}, card | {"code": ""}):
        changed = body | {"card": other, "currency": "EUR"}
        response = api.call("POST", "/sandbox/payments", json=changed, headers=KEY)
        assert response.status_code != 201
        assert "idempotency-replayed" not in response.headers


@pytest.mark.parametrize("key", ["x" * 256, "a\tb", "ø"])
def test_what_is_no_key_is_refused(api: PaymentsApi, shop: App, paid: str, key: str) -> None:
    path, headers = f"/transactions/{paid}/captures", {"Idempotency-Key": key.encode("latin-1")}
    response = api.call("POST", path, shop, json={"amount": 1}, headers=headers)
    assert fields_of(response) == ["Idempotency-Key"]
    assert api.transaction(shop, paid)["capturedAmount"] == 0


def test_a_key_has_up_to_255_characters(api: PaymentsApi, shop: App, paid: str) -> None:
    path, headers = f"/transactions/{paid}/captures", {"Idempotency-Key": "x" * 255}
    for _ in range(2):
        response = api.call("POST", path, shop, json={"amount": 1}, headers=headers)
    assert response.headers["idempotency-replayed"] == "true"


def test_without_a_key_two_captures_are_two_and_are_pointed_out(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    """C3."""
    for _ in range(2):
        api.act(shop, paid, "captures", amount=100)
    assert api.transaction(shop, paid)["capturedAmount"] == 200
    types = [each["type"] for each in api.listed(f"/merchants/{merchant['id']}/events", shop)]
    assert types.count("transaction.captured") == 2
    assert types.count("transaction.possible_duplicate") == 1
