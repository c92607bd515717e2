"""Keys that expire, and keys for test or live merchants alone (part D, Key rotation; T11)."""

from typing import Any

import pytest

from tests.support.payments.api import MERCHANT, NOW_S, App, PaymentsApi, done, fields_of, lines_of
from tollgate.serve.payments.secrets.keys import has_checksum

DAY = 86_400
UUID = "0b9a1f3e-5d44-4c4a-9a58-0d1f4f0a7f11"


def moment(days: int) -> str:
    """A time so many days after the clock's beginning, which is that of January."""
    return f"2026-01-{days + 1:02}T00:00:00.000Z"


def added(api: PaymentsApi, app: App, **body: Any) -> App:
    made = done(api.call("POST", f"/apps/{app.id}/keys", app, json=body))["app"]
    return App(app.id, made["key"])


def test_a_key_works_until_it_expires(api: PaymentsApi) -> None:
    assert NOW_S % DAY == 0
    made = done(api.call("POST", "/apps", json={"expires": moment(20)}))["app"]
    app = App(made["id"], made["key"])
    (key,) = _keys(api, app)
    assert key["expires"] == moment(20)
    assert "tollgate-key-expires" not in api.call("GET", "/me", app).headers
    api.clock.advance(6 * DAY)
    assert api.call("GET", "/me", app).headers["tollgate-key-expires"] == moment(20)
    api.clock.advance(14 * DAY - 0.001)
    assert api.call("GET", "/me", app).status_code == 200
    api.clock.advance(0.001)
    refused = api.call("GET", "/me", app)
    assert (refused.status_code, refused.json()["code"]) == (401, "KEY_EXPIRED")
    assert moment(20) in refused.json()["message"]
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert api.call("POST", "/merchants", app, json=MERCHANT).status_code == 401


def _keys(api: PaymentsApi, app: App) -> list[dict[str, Any]]:

    return lines_of(api.call("GET", f"/apps/{app.id}/keys", app))


def test_a_key_that_has_expired_makes_room(api: PaymentsApi, shop: App) -> None:
    soon = added(api, shop, expires=moment(1))
    api.clock.advance(DAY)
    later = added(api, shop)
    assert [each.get("expires") for each in _keys(api, shop)] == [None, None]
    assert api.call("GET", "/me", shop).status_code == 200
    assert api.call("GET", "/me", later).status_code == 200
    assert api.call("GET", "/me", soon).json()["code"] == "UNAUTHORIZED"


@pytest.mark.parametrize("expires", ["2026-01-01", "2025-12-31T23:59:59Z", "2046-01-01", "soon"])
def test_a_key_expires_in_the_future_and_within_ten_years(
    api: PaymentsApi, shop: App, expires: str
) -> None:
    for path, app in (("/apps", None), (f"/apps/{shop.id}/keys", shop)):
        assert fields_of(api.call("POST", path, app, json={"expires": expires})) == ["expires"]
    assert len(_keys(api, shop)) == 1


def test_prefixes_tell_test_from_live(api: PaymentsApi, shop: App) -> None:
    for test, prefix in ((True, "sk_test_"), (False, "sk_live_")):
        key = added(api, shop, test=test).key
        assert key.startswith(prefix)
        assert has_checksum(key)
        assert not has_checksum(key[:-1] + ("a" if key[-1] != "a" else "b"))
        assert not has_checksum(key.replace(prefix, "sk_prod_"))
    assert [each.get("test") for each in _keys(api, shop)] == [None, True, False]
    form = done(api.call("POST", "/apps", data={"test": "yes"}))["app"]
    assert form["key"].startswith("sk_test_")


def test_a_key_is_refused_at_merchants_of_the_other_kind(api: PaymentsApi, shop: App) -> None:
    merchants = {kind: api.new_merchant(shop, test=kind) for kind in (True, False)}
    for kind in (True, False):
        app = added(api, shop, test=kind)
        mine, other = merchants[kind], merchants[not kind]
        done(api.call("GET", f"/merchants/{mine['id']}", app))
        words = {True: "test", False: "live"}
        for method, path, body in (
            ("GET", f"/merchants/{other['id']}", None),
            ("GET", f"/merchants/{other['id']}/lines?limit=1", None),
            ("PUT", f"/merchants/{other['id']}", {"name": "Tea"}),
            ("DELETE", f"/merchants/{other['id']}/apps/{shop.id}", None),
            ("POST", "/merchants", MERCHANT | {"test": not kind}),
        ):
            refused = api.call(method, path, app, json=body)
            assert refused.status_code == 403, (method, path)
            assert f"this is a {words[kind]} key" in refused.json()["message"]
        made = done(api.call("POST", "/merchants", app, json=MERCHANT | {"test": kind}))
        assert made["merchant"]["test"] is kind
        listed = api.listed(f"/identities/{shop.id}/merchants", app)
        assert {each["test"] for each in listed} == {kind}
        contrary = {"filter[test]": "no" if kind else "yes"}
        assert api.listed(f"/identities/{shop.id}/merchants", app, **contrary) == []


def test_a_key_of_one_kind_makes_no_other(api: PaymentsApi, shop: App) -> None:
    test = added(api, shop, test=True)
    refused = api.call("POST", f"/apps/{shop.id}/keys", test, json={"test": False})
    assert refused.status_code == 403
    assert added(api, test).key.startswith("sk_test_")


def test_each_kind_has_two_keys(api: PaymentsApi, shop: App) -> None:
    for _ in range(3):
        for test in (True, False):
            added(api, shop, test=test)
    assert [each.get("test") for each in _keys(api, shop)] == [None, True, False, True, False]
    assert api.call("GET", "/me", shop).status_code == 200


def test_a_newer_key_is_told_to_those_that_it_could_replace(api: PaymentsApi, shop: App) -> None:
    test = added(api, shop, test=True)
    added(api, shop, test=False)
    assert "tollgate-newer-key" in api.call("GET", "/me", shop).headers
    assert "tollgate-newer-key" not in api.call("GET", "/me", test).headers
    added(api, shop)
    api.clock.advance(2)
    assert "tollgate-newer-key" in api.call("GET", "/me", test).headers


def test_a_repetition_shows_the_same_key(api: PaymentsApi, shop: App) -> None:
    test = added(api, shop, test=True)
    key = {"idempotency-key": UUID}
    path = f"/apps/{shop.id}/keys"
    first, again = (api.call("POST", path, test, json={}, headers=key) for _ in range(2))
    assert first.json() == again.json()
    assert api.call("POST", path, shop, json={}, headers=key).status_code == 422
