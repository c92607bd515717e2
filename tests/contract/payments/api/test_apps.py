"""Apps: creating, knowing oneself, merchants of one's own, keys."""

import pytest

from tests.support.payments.api import ABSENT, MERCHANT, App, PaymentsApi, done, fields_of, lines_of
from tollgate.serve.payments.secrets.keys import has_checksum


def test_an_app_is_created_with_a_key_that_works(api: PaymentsApi) -> None:
    response = api.call("POST", "/apps", json={"name": "Coffee"})
    assert response.status_code == 201
    app = response.json()["app"]
    assert app["name"] == "Coffee"
    assert has_checksum(app["key"])
    identity = done(api.call("GET", "/me", app["key"]))["identity"]
    assert identity == {name: app[name] for name in ("id", "name", "created")}


@pytest.mark.parametrize("authorization", [None, "Basic", "Basic !!!", "Basic Og==", "Bearer x"])
def test_creating_an_app_needs_neither_body_nor_credentials(
    api: PaymentsApi, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    response = api.call("POST", "/apps", headers=headers)
    assert response.status_code == 201
    app = response.json()["app"]
    assert "name" not in app
    assert "name" not in done(api.call("GET", "/me", app["key"]))["identity"]


def test_what_php_writes_for_nothing_is_an_empty_object(api: PaymentsApi, shop: App) -> None:
    """`json_encode(array())` is `[]`, also where an object is meant."""
    app = done(api.call("POST", "/apps", json=[]))["app"]
    assert "name" not in app
    opened = done(api.call("POST", "/merchants", shop, json=MERCHANT | {"bank": []}))["merchant"]
    assert opened["bank"] == {}
    paid = api.pay(opened, 300, custom=[])
    assert api.transaction(shop, paid)["custom"] == {}


def test_a_name_of_an_app_is_a_harmless_text(api: PaymentsApi) -> None:
    assert fields_of(api.call("POST", "/apps", json={"name": 7})) == ["name"]
    assert fields_of(api.call("POST", "/apps", json={"name": "x" * 257})) == ["name"]
    app = done(api.call("POST", "/apps", json={"name": " Cof\u202efee\n "}))["app"]
    assert app["name"] == "Coffee"


def test_an_app_created_twice_with_one_key_is_one_app(api: PaymentsApi) -> None:
    key = {"Idempotency-Key": "0b7e1b1c-7f0e-4c43-8c5c-3c3f4d0f1c55"}
    first = api.call("POST", "/apps", json={"name": "a"}, headers=key)
    again = api.call("POST", "/apps", json={"name": "a"}, headers=key)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    other = api.call("POST", "/apps", json={"name": "b"}, headers=key)
    assert other.status_code == 422
    done(api.call("GET", "/me", first.json()["app"]["key"]))


def test_without_credentials_an_idempotency_key_must_be_hard_to_guess(api: PaymentsApi) -> None:
    response = api.call("POST", "/apps", headers={"Idempotency-Key": "1"})
    assert fields_of(response) == ["Idempotency-Key"]


def test_merchants_of_an_app(api: PaymentsApi, shop: App) -> None:
    made = [api.new_merchant(shop, name=str(number), test=number != 1) for number in range(4)]
    path = f"/identities/{shop.id}/merchants"
    newest_first = made[::-1]
    assert api.listed(path, shop) == newest_first
    assert api.listed(path, shop, limit=2) == newest_first[:2]
    assert api.listed(path, shop, limit=2, before=newest_first[1]["id"]) == newest_first[2:]
    assert api.listed(path, shop, after=made[1]["id"]) == made[2:]
    tests = [each for each in newest_first if each["test"]]
    assert api.listed(path, shop, **{"filter[test]": "y"}) == tests
    assert api.listed(path, shop, **{"filter[test]": "no"}) == [made[1]]


def test_merchants_of_another_app_are_not_shown(api: PaymentsApi, shop: App) -> None:
    other = api.new_app()
    path = f"/identities/{other.id}/merchants"
    assert api.call("GET", path, shop, params={"limit": 1}).status_code == 403
    path = f"/identities/{ABSENT}/merchants"
    assert api.call("GET", path, shop, params={"limit": 1}).status_code == 404


def test_an_app_has_two_live_keys_while_they_are_rotated(api: PaymentsApi) -> None:
    app = api.new_app()
    path = f"/apps/{app.id}/keys"
    second = done(api.call("POST", path, app))["app"]
    assert second["id"] == app.id
    for key in (app.key, second["key"]):
        done(api.call("GET", "/me", key))
    third = done(api.call("POST", path, app))["app"]
    assert api.call("GET", "/me", app).status_code == 401
    for key in (second["key"], third["key"]):
        done(api.call("GET", "/me", key))
    keys = lines_of(api.call("GET", path, third["key"]))
    assert [key["last4"] for key in keys] == [second["key"][-4:], third["key"][-4:]]


def test_a_key_tells_when_it_was_used_last(api: PaymentsApi) -> None:
    app = api.new_app()
    second = done(api.call("POST", f"/apps/{app.id}/keys", app))["app"]["key"]
    api.clock.advance(90)
    old, new = lines_of(api.call("GET", f"/apps/{app.id}/keys", second))
    assert old["lastUsed"] == "2026-01-01T00:00:00.000Z"
    assert new["lastUsed"] == "2026-01-01T00:01:30.000Z"


def test_a_rotation_repeated_with_its_key_is_one_rotation(api: PaymentsApi) -> None:
    app = api.new_app()
    path, key = f"/apps/{app.id}/keys", {"Idempotency-Key": "r1"}
    first = api.call("POST", path, app, headers=key)
    again = api.call("POST", path, app, headers=key)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert len(lines_of(api.call("GET", path, app))) == 2


def test_keys_are_their_app_s_own_business(api: PaymentsApi, shop: App) -> None:
    other = api.new_app()
    for method in ("GET", "POST"):
        assert api.call(method, f"/apps/{other.id}/keys", shop).status_code == 403
        assert api.call(method, f"/apps/{ABSENT}/keys", shop).status_code == 404
        assert api.call(method, "/apps/zz/keys", shop).status_code == 404


def test_no_list_shows_a_key(api: PaymentsApi, shop: App) -> None:
    merchant = api.new_merchant(shop)
    shown = api.call("GET", f"/merchants/{merchant['id']}/apps", shop, params={"limit": 9}).text
    shown += api.call("GET", "/me", shop).text
    shown += api.call("GET", f"/apps/{shop.id}/keys", shop).text
    assert shop.key not in shown
