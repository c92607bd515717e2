"""Merchants, their users and their apps."""

from typing import Any

import pytest

from tests.support.payments.api import ABSENT, MERCHANT, App, PaymentsApi, done, fields_of

Merchant = dict[str, Any]


def test_a_created_merchant_is_the_one_that_is_read(api: PaymentsApi, shop: App) -> None:
    body = MERCHANT | {
        "name": "Coffee",
        "company": {"country": "DK", "number": "31 85 75 54"},
        "bank": {"iban": "dk50 0040 0440 1162 43"},
    }
    response = api.call("POST", "/merchants", shop, json=body)
    assert response.status_code == 201
    merchant = response.json()["merchant"]
    assert done(api.call("GET", f"/merchants/{merchant['id']}", shop)) == response.json()
    shown = {name: merchant[name] for name in body}
    assert shown == body | {"bank": {"iban": "DK5000400440116243"}}
    assert merchant["balance"] == 0
    assert merchant["created"] == "2026-01-01T00:00:00.000Z"
    assert merchant["claim"]["canCapture"] is True
    assert merchant["pricing"]["rate"] == 0.0135
    assert merchant["pricing"]["flat"] == {"currency": "EUR", "amount": 25}
    assert merchant["tds"].keys() == {"mode"}


def test_optional_fields_may_be_left_out(api: PaymentsApi, shop: App) -> None:
    body = {name: value for name, value in MERCHANT.items() if name != "test"}
    merchant = done(api.call("POST", "/merchants", shop, json=body))["merchant"]
    assert merchant["test"] is False
    assert merchant["bank"] == {}
    assert "name" not in merchant
    assert "number" not in merchant["company"]


def test_a_form_makes_the_same_merchant(api: PaymentsApi, shop: App) -> None:
    form = {
        "company[country]": "DK",
        "currency": "DKK",
        "email": "shop@example.com",
        "website": "example.com",
        "descriptor": "Coffee & Cake",
        "test": "yes",
        "bank[iban]": "DK5000400440116243",
    }
    merchant = done(api.call("POST", "/merchants", shop, data=form))["merchant"]
    assert merchant["company"] == {"country": "DK"}
    assert merchant["test"] is True
    assert merchant["website"] == "example.com"
    assert merchant["bank"] == {"iban": "DK5000400440116243"}


def test_everything_that_is_missing_is_named_at_once(api: PaymentsApi, shop: App) -> None:
    required = ["company.country", "currency", "descriptor", "email", "website"]
    assert sorted(fields_of(api.call("POST", "/merchants", shop))) == required
    assert sorted(fields_of(api.call("POST", "/merchants", shop, json={}))) == required


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"currency": "JPY"}, "currency"),
        ({"currency": "HRK"}, "currency"),
        ({"currency": "dkk"}, "currency"),
        ({"currency": 5}, "currency"),
        ({"email": "shop"}, "email"),
        ({"website": "not a site"}, "website"),
        ({"descriptor": "x" * 23}, "descriptor"),
        ({"descriptor": "Kaffé"}, "descriptor"),
        ({"company": {"country": "Denmark"}}, "company.country"),
        ({"company": "DK"}, "company"),
        ({"company": {"country": "DK", "number": "<>"}}, "company.number"),
        ({"bank": {"iban": "DK5000400440116244"}}, "bank.iban"),
        ({"bank": "DK5000400440116243"}, "bank"),
        ({"test": "yes"}, "test"),
        ({"test": 1}, "test"),
        ({"name": ["x"]}, "name"),
    ],
)
def test_a_bad_field_is_named(
    api: PaymentsApi, shop: App, change: dict[str, object], field: str
) -> None:
    response = api.call("POST", "/merchants", shop, json=MERCHANT | change)
    assert field in fields_of(response)
    assert api.listed(f"/identities/{shop.id}/merchants", shop) == []


def test_a_merchant_created_twice_with_one_key_is_one_merchant(api: PaymentsApi, shop: App) -> None:
    key = {"Idempotency-Key": "m1"}
    first = api.call("POST", "/merchants", shop, json=MERCHANT, headers=key)
    again = api.call("POST", "/merchants", shop, json=MERCHANT, headers=key)
    assert again.status_code == 201
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    other = api.call("POST", "/merchants", shop, json=MERCHANT | {"name": "x"}, headers=key)
    assert other.status_code == 422
    assert len(api.listed(f"/identities/{shop.id}/merchants", shop)) == 1


def test_name_email_and_descriptor_change_and_nothing_else(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    path = f"/merchants/{merchant['id']}"
    changes = {"name": "New", "email": "new@example.com", "descriptor": "New"}
    response = api.call("PUT", path, shop, json=changes)
    assert (response.status_code, response.content) == (204, b"")
    assert "content-type" not in response.headers
    assert done(api.call("GET", path, shop))["merchant"] == merchant | changes


@pytest.mark.parametrize(
    "body",
    [None, {}, {"name": None}, {"descriptor": ""}, {"email": None, "descriptor": None}],
)
def test_a_change_of_nothing_succeeds(
    api: PaymentsApi, shop: App, merchant: Merchant, body: dict[str, object] | None
) -> None:
    path = f"/merchants/{merchant['id']}"
    options = {} if body is None else {"json": body}
    assert api.call("PUT", path, shop, **options).status_code == 204
    assert done(api.call("GET", path, shop))["merchant"] == merchant


def test_a_name_can_be_taken_away(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    path = f"/merchants/{merchant['id']}"
    done(api.call("PUT", path, shop, json={"name": "New"}))
    done(api.call("PUT", path, shop, data={"name": ""}))
    assert done(api.call("GET", path, shop))["merchant"] == merchant


@pytest.mark.parametrize("field", ["currency", "test", "company", "bank", "website", "key", "id"])
def test_any_other_field_is_refused_by_name(
    api: PaymentsApi, shop: App, merchant: Merchant, field: str
) -> None:
    path = f"/merchants/{merchant['id']}"
    body = {field: merchant.get(field, {}), "name": "New"}
    assert fields_of(api.call("PUT", path, shop, json=body)) == [field]
    assert done(api.call("GET", path, shop))["merchant"] == merchant


def test_a_bad_change_changes_nothing(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    path = f"/merchants/{merchant['id']}"
    body = {"name": "New", "email": "shop", "descriptor": "x" * 23}
    assert sorted(fields_of(api.call("PUT", path, shop, json=body))) == ["descriptor", "email"]
    assert done(api.call("GET", path, shop))["merchant"] == merchant


def test_an_invited_user_is_there_at_once_and_gets_a_letter(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    path = f"/merchants/{merchant['id']}/users"
    response = api.call("POST", path, shop, json={"email": "one@example.com"})
    assert (response.status_code, response.json()) == (201, {"isMember": False})
    (user,) = api.listed(path, shop)
    assert user["email"] == "one@example.com"
    assert user.keys() == {"id", "email", "created"}
    (letter,) = api.invitations.sent
    assert (letter.email, letter.invited_by) == ("one@example.com", "Coffee & Cake")


def test_who_is_a_member_already_gets_no_second_letter(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    path = f"/merchants/{merchant['id']}/users"
    done(api.call("POST", path, shop, json={"email": "one@example.com"}))
    response = api.call("POST", path, shop, json={"email": "One@Example.com"})
    assert (response.status_code, response.json()) == (201, {"isMember": True})
    assert len(api.listed(path, shop)) == len(api.invitations.sent) == 1


def test_a_repeated_invitation_sends_no_second_letter(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    path, key = f"/merchants/{merchant['id']}/users", {"Idempotency-Key": "u1"}
    first = api.call("POST", path, shop, json={"email": "one@example.com"}, headers=key)
    again = api.call("POST", path, shop, json={"email": "one@example.com"}, headers=key)
    assert again.content == first.content
    assert len(api.invitations.sent) == 1


def test_strangers_hear_of_a_live_merchant_once_it_is_approved(api: PaymentsApi, shop: App) -> None:
    live = api.new_merchant(shop, test=False)
    path = f"/merchants/{live['id']}/users"
    done(api.call("POST", path, shop, json={"email": "one@example.com"}))
    assert [user["email"] for user in api.listed(path, shop)] == ["one@example.com"]
    assert api.invitations.sent == []
    api.approve(live)
    done(api.call("POST", path, shop, json={"email": "two@example.com"}))
    assert [letter.email for letter in api.invitations.sent] == ["two@example.com"]


@pytest.mark.parametrize("body", [{}, {"email": "shop"}, {"email": None}, {"email": ["a@b.c"]}])
def test_an_invitation_needs_an_address(
    api: PaymentsApi, shop: App, merchant: Merchant, body: dict[str, object]
) -> None:
    path = f"/merchants/{merchant['id']}/users"
    assert fields_of(api.call("POST", path, shop, json=body)) == ["email"]
    assert api.listed(path, shop) == []
    assert api.invitations.sent == []


def test_a_user_is_revoked_once(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    path = f"/merchants/{merchant['id']}/users"
    done(api.call("POST", path, shop, json={"email": "one@example.com"}))
    (user,) = api.listed(path, shop)
    response = api.call("DELETE", f"{path}/{user['id']}", shop)
    assert (response.status_code, response.content) == (204, b"")
    assert "content-type" not in response.headers
    assert api.listed(path, shop) == []
    assert api.call("DELETE", f"{path}/{user['id']}", shop).status_code == 404
    assert api.call("DELETE", f"{path}/nobody", shop).status_code == 404


def test_apps_include_the_creator(api: PaymentsApi, shop: App, merchant: Merchant) -> None:
    (app,) = api.listed(f"/merchants/{merchant['id']}/apps", shop)
    assert app == done(api.call("GET", "/me", shop))["identity"]


def test_an_app_is_given_access_and_loses_it(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    other, path = api.new_app("Other"), f"/merchants/{merchant['id']}/apps"
    assert api.call("GET", path, other, params={"limit": 1}).status_code == 403
    for _ in range(2):  # (adding one that is there already succeeds)
        response = api.call("POST", path, shop, json={"appId": other.id})
        assert (response.status_code, response.content) == (201, b"")
        assert "content-type" not in response.headers
    assert [app["id"] for app in api.listed(path, other)] == [other.id, shop.id]
    response = api.call("DELETE", f"{path}/{other.id}", shop)
    assert (response.status_code, response.content) == (204, b"")
    assert api.call("GET", path, other, params={"limit": 1}).status_code == 403
    assert [app["id"] for app in api.listed(path, shop)] == [shop.id]
    assert api.call("DELETE", f"{path}/{other.id}", shop).status_code == 404


def test_an_app_may_revoke_itself_and_be_told_again(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    path, key = f"/merchants/{merchant['id']}/apps/{shop.id}", {"Idempotency-Key": "r1"}
    assert api.call("DELETE", path, shop, headers=key).status_code == 204
    assert api.call("GET", f"/merchants/{merchant['id']}", shop).status_code == 403
    again = api.call("DELETE", path, shop, headers=key)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (204, "true")
    assert api.call("DELETE", path, shop).status_code == 403


@pytest.mark.parametrize("app_id", [None, "", "x", ABSENT, 7, ABSENT.upper()])
def test_only_an_app_that_exists_is_given_access(
    api: PaymentsApi, shop: App, merchant: Merchant, app_id: object
) -> None:
    path = f"/merchants/{merchant['id']}/apps"
    assert fields_of(api.call("POST", path, shop, json={"appId": app_id})) == ["appId"]
    assert [app["id"] for app in api.listed(path, shop)] == [shop.id]
