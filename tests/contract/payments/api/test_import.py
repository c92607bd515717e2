"""Importing over the API: what the npm client's own test expects is there, once, and in balance."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.payments.api import OPERATOR_KEY, App, PaymentsApi, done, fields_of
from tollgate.actors.ledger.law.values import BookId
from tollgate.serve.payments.imports import orders

FIXTURES = Path(__file__).parents[3] / "e2e/payments/paylike/fixtures.yaml"
SHOP = App("555eca95ed59804d2cf12b11", "4ff7de37-dddf-4e51-8cc9-48b61a102923")
MERCHANT = "55006bdfe0308c4cbfdbd0e1"
TRANSACTION = "560fd96b7973ff3d2362a78c"
VOID, TRAIL = "          - {void: 50}\n", "        trail:\n"
COUNTS = {"apps": 1, "merchants": 2, "transactions": 3, "lines": 5, "cards": 1}


def load(api: PaymentsApi, text: str, key: str | None = OPERATOR_KEY) -> Any:
    return api.call("POST", "/operator/imports", key, json={"file": text, "name": "fixtures.yaml"})


@pytest.fixture
def fixtures() -> str:
    return FIXTURES.read_text(encoding="utf-8")


def test_what_is_imported_is_there(api: PaymentsApi, fixtures: str) -> None:
    response = load(api, fixtures)
    assert response.status_code == 201
    assert response.json() == {"imported": COUNTS}
    assert done(api.call("GET", "/me", SHOP))["identity"]["id"] == SHOP.id
    listed = api.listed(f"/identities/{SHOP.id}/merchants", SHOP)
    assert [each["id"] for each in listed] == ["55006bf0e0308c4cbfdbd0e2", MERCHANT]
    assert all(each["test"] for each in listed)
    transaction = api.transaction(SHOP, TRANSACTION)
    amounts = {name: transaction[f"{name}Amount"] for name in ("captured", "refunded", "voided")}
    assert amounts == {"captured": 500, "refunded": 200, "voided": 50}
    assert transaction["pendingAmount"] == 450
    assert transaction["tds"] == "full"
    assert transaction["custom"] == {"source": "fixtures"}
    assert transaction["trail"][0]["lineId"] == "560fd97a7973ff3d2362a78d"
    assert transaction["trail"][1]["descriptor"] == "Coffee 2"
    card = done(api.call("GET", "/cards/560fdc007973ff3d2362a793", SHOP))["card"]
    assert (card["expiry"], card["notes"]) == ("2066-08-31T23:59:59.999Z", "From a fixture")
    failed = api.transaction(SHOP, "560fdb007973ff3d2362a792")
    assert (failed["successful"], failed["error"]["code"]) == (False, 7)
    assert failed["recurring"] is True


def test_the_books_are_in_balance(api: PaymentsApi, fixtures: str) -> None:
    load(api, fixtures)
    merchant = done(api.call("GET", f"/merchants/{MERCHANT}", SHOP))["merchant"]
    lines = api.listed(f"/merchants/{MERCHANT}/lines", SHOP)
    assert [line["id"] for line in lines] == [
        "560fdd007973ff3d2362a794",
        "560fda017973ff3d2362a791",
        "560fd9907973ff3d2362a78f",
        "560fd97b7973ff3d2362a78e",
        "560fd97a7973ff3d2362a78d",
    ]
    assert merchant["balance"] == sum(line["balance"] for line in lines)
    trial = done(api.call("GET", "/operator/trial-balance", OPERATOR_KEY))["trialBalance"]
    assert trial["balanced"] is True


def test_life_goes_on_with_what_was_imported(api: PaymentsApi, fixtures: str) -> None:
    load(api, fixtures)
    body = {"transactionId": TRANSACTION, "currency": "EUR", "amount": 300}
    made = done(api.call("POST", f"/merchants/{MERCHANT}/transactions", SHOP, json=body))
    new = made["transaction"]["id"]
    assert api.act(SHOP, new, "captures", amount=100, currency="EUR")["pendingAmount"] == 200
    assert api.act(SHOP, TRANSACTION, "refunds", amount=300)["refundedAmount"] == 500
    newest = api.listed(f"/merchants/{MERCHANT}/transactions", SHOP, limit=3)
    assert newest[0]["id"] == new
    assert len(newest) == 3


def test_importing_again_changes_nothing(api: PaymentsApi, fixtures: str) -> None:
    load(api, fixtures)
    before = api.listed(f"/merchants/{MERCHANT}/events", SHOP)
    response = load(api, fixtures)
    assert (response.status_code, response.json()) == (201, {"imported": COUNTS})
    assert api.listed(f"/merchants/{MERCHANT}/events", SHOP) == before


def test_a_void_that_changes_places_in_its_trail_is_the_same(
    api: PaymentsApi, fixtures: str
) -> None:
    load(api, fixtures)
    before = api.transaction(SHOP, TRANSACTION)
    moved = fixtures.replace(VOID, "").replace(TRAIL, f"{TRAIL}{VOID}", 1)
    assert moved != fixtures
    assert load(api, moved).json() == {"imported": COUNTS}
    assert api.transaction(SHOP, TRANSACTION) == before
    assert load(api, fixtures.replace("void: 50", "void: 51")).status_code == 422
    assert api.transaction(SHOP, TRANSACTION) == before


def test_a_void_that_was_imported_under_its_place_is_not_done_again(
    api: PaymentsApi, fixtures: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As releases before named it."""

    def named(book: BookId, what: str) -> str:
        return key(book, what.replace("void number 0", "void 3"))

    key = orders._key
    with monkeypatch.context() as patch:
        patch.setattr(orders, "_key", named)
        load(api, fixtures)
    before = api.transaction(SHOP, TRANSACTION)
    assert load(api, fixtures).json() == {"imported": COUNTS}
    assert api.transaction(SHOP, TRANSACTION) == before


def test_an_import_that_was_cut_short_goes_on(api: PaymentsApi, fixtures: str) -> None:
    wrong = fixtures.replace("refund: 200", "refund: 2000")
    assert fields_of(load(api, wrong)) == ["amount"]
    assert api.transaction(SHOP, TRANSACTION)["capturedAmount"] == 500
    assert load(api, fixtures).json() == {"imported": COUNTS}
    assert api.transaction(SHOP, TRANSACTION)["refundedAmount"] == 200


def test_an_import_that_says_something_else_is_refused(api: PaymentsApi, fixtures: str) -> None:
    load(api, fixtures)
    changed = fixtures.replace("amount: 9950", "amount: 9951")
    assert load(api, changed).status_code == 422
    assert api.transaction(SHOP, "560fda007973ff3d2362a790")["amount"] == 9_950


@pytest.mark.parametrize("key", [None, "wrong", SHOP.key])
def test_nobody_but_the_operator_imports(api: PaymentsApi, fixtures: str, key: str | None) -> None:
    assert load(api, fixtures, key).status_code == 401
    assert api.call("GET", "/me", SHOP).status_code == 401


def test_keys_in_use_are_left_alone(api: PaymentsApi, fixtures: str) -> None:
    owner = api.new_app()
    merchant = api.new_merchant(owner)
    stolen_app = fixtures.replace(SHOP.key, owner.key)
    assert fields_of(load(api, stolen_app)) == [SHOP.id]
    assert done(api.call("GET", "/me", owner))["identity"]["id"] == owner.id
    stolen_merchant = fixtures.replace("7c9f0f4c-7c0f-4b7b-9a49-6a2a7c3c5d10", merchant["key"])
    assert fields_of(load(api, stolen_merchant)) == [MERCHANT]


def test_ids_in_use_are_left_alone(api: PaymentsApi, fixtures: str) -> None:
    owner = api.new_app()
    merchant = api.new_merchant(owner)
    paid = api.pay(merchant)
    before = api.act(owner, paid, "captures", amount=10)
    line = before["trail"][0]["lineId"]
    event = api.listed(f"/merchants/{merchant['id']}/events", owner)[0]["id"]
    for taken in (paid, line, event, merchant["id"], owner.id):
        stolen = fixtures.replace("560fd97a7973ff3d2362a78d", taken)
        assert fields_of(load(api, stolen)) == [taken]
    assert api.transaction(owner, paid) == before
    (found,) = api.listed(f"/merchants/{merchant['id']}/lines", owner)
    assert found["id"] == line


def test_a_line_of_the_same_merchant_is_not_written_again(api: PaymentsApi, fixtures: str) -> None:
    load(api, fixtures)
    line = api.act(SHOP, TRANSACTION, "captures", amount=10)["trail"][-1]["lineId"]
    assert fields_of(load(api, fixtures.replace("560fd97b7973ff3d2362a78e", line))) == ["id"]
    merchant = done(api.call("GET", f"/merchants/{MERCHANT}", SHOP))["merchant"]
    lines = api.listed(f"/merchants/{MERCHANT}/lines", SHOP)
    assert len(lines) == COUNTS["lines"] + 1
    assert merchant["balance"] == sum(each["balance"] for each in lines)


@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({}, "file", "is required"),
        ({"file": 5}, "file", "must be the text of a file"),
        ({"file": "version: 1", "name": "x.yaml"}, "file", "x.yaml:1: holds neither apps"),
        ({"file": "a: [", "name": "x.yaml"}, "file", "x.yaml:2: "),
    ],
)
def test_a_file_that_is_none_is_refused(
    api: PaymentsApi, body: dict[str, object], field: str, why: str
) -> None:
    response = api.call("POST", "/operator/imports", OPERATOR_KEY, json=body)
    assert fields_of(response) == [field]
    assert why in response.json()[0]["message"]


def test_an_app_that_is_nowhere_is_refused(api: PaymentsApi, fixtures: str) -> None:
    lonely = fixtures.replace(
        "apps: [555eca95ed59804d2cf12b11]", "apps: [555eca95ed59804d2cf12b12]"
    )
    assert fields_of(load(api, lonely)) == ["apps"]
