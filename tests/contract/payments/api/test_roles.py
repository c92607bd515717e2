"""Roles over the API: what an app may not, it is told, whatever the call would have done."""

from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of
from tollgate.serve.payments.api.asgi import ROUTES
from tollgate.serve.payments.api.router import Access

READ_ONLY, REFUNDS = "read-only", "refunds"
# Of an app alone, of a merchant to come, or open to whoever knows a public key or a code.
OF_NO_MERCHANT = {"/merchants", "/sandbox/payments"}


@pytest.fixture
def desk(api: PaymentsApi) -> App:
    return api.new_app("Desk")


def give(api: PaymentsApi, shop: App, merchant: Any, app: App, role: str) -> None:
    body = {"appId": app.id, "role": role}
    done(api.call("POST", f"/merchants/{merchant['id']}/apps", shop, json=body))


def body_of(path: str, merchant: str, transaction: str) -> dict[str, object]:
    """As much of a body as a call looks at before it looks at roles."""
    if path == "/sandbox/payouts":
        return {"merchantId": merchant, "amount": 1}
    if path in ("/sandbox/frauds", "/cards"):
        return {"transactionId": transaction}
    return {"transactionId": transaction, "amount": 1} if path.startswith("/sandbox") else {}


@pytest.mark.parametrize("role", [READ_ONLY, REFUNDS])
def test_every_write_is_an_owners_but_for_refunds(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], desk: App, role: str
) -> None:
    paid = api.pay(merchant, 1_000)
    api.act(shop, paid, "captures", amount=500)
    disputed = {"transactionId": paid, "amount": 10}
    dispute = done(api.call("POST", "/sandbox/disputes", shop, json=disputed))["dispute"]["id"]
    give(api, shop, merchant, desk, role)
    before = api.listed(f"/merchants/{merchant['id']}/events", shop)
    asked = len(api.ledger.orders)
    ids = {"{merchantId}": merchant["id"], "{transactionId}": paid, "{disputeId}": dispute}
    writes = [
        (route.method, route.path)
        for route in ROUTES
        if route.access is Access.APP
        and route.method != "GET"
        and not route.path.startswith("/apps/")
    ]
    assert len(writes) > 20
    for method, template in writes:
        if template in OF_NO_MERCHANT:
            continue
        steps = template.split("/")
        path = "/".join(ids.get(step, ABSENT) if "{" in step else step for step in steps)
        refused = api.call(method, path, desk, json=body_of(path, merchant["id"], paid))
        if template.endswith("/refunds") and role == REFUNDS:
            assert fields_of(refused) == ["amount"]
            continue
        assert refused.status_code == 403, (method, path, refused.text)
        assert f"role at this merchant is {role}" in refused.json()["message"]
    assert len(api.ledger.orders) == asked
    assert api.listed(f"/merchants/{merchant['id']}/events", shop) == before
    assert api.listed(f"/merchants/{merchant['id']}/lines", desk)
    assert api.transaction(desk, paid)["capturedAmount"] == 500


def test_refunds_refunds(api: PaymentsApi, shop: App, merchant: dict[str, Any], desk: App) -> None:
    paid = api.pay(merchant, 1_000)
    api.act(shop, paid, "captures", amount=500)
    give(api, shop, merchant, desk, REFUNDS)
    assert api.act(desk, paid, "refunds", amount=200)["refundedAmount"] == 200


def test_roles_are_shown_and_changed(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], desk: App
) -> None:
    here = f"/merchants/{merchant['id']}"
    give(api, shop, merchant, desk, READ_ONLY)
    body = {"email": "ann@example.com", "role": REFUNDS}
    done(api.call("POST", f"{here}/users", shop, json=body))
    assert [each.get("role") for each in api.listed(f"{here}/apps", shop)] == [READ_ONLY, None]
    (user,) = api.listed(f"{here}/users", shop)
    assert user["role"] == REFUNDS
    for path in (f"{here}/apps/{desk.id}", f"{here}/users/{user['id']}"):
        done(api.call("PUT", path, shop, json={"role": "owner"}))
    assert all("role" not in each for each in api.listed(f"{here}/apps", shop))
    assert "role" not in api.listed(f"{here}/users", shop)[0]
    done(api.call("PUT", here, desk, json={"name": "Tea"}))
    types = [event["type"] for event in api.listed(f"{here}/events", shop)]
    assert {"app.role_changed", "user.role_changed"} < set(types)


def test_a_role_that_is_taken_away_is_gone_with_the_next_call(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], desk: App
) -> None:
    here = f"/merchants/{merchant['id']}"
    done(api.call("POST", f"{here}/apps", shop, json={"appId": desk.id}))
    done(api.call("PUT", here, desk, json={"name": "Tea"}))
    done(api.call("PUT", f"{here}/apps/{desk.id}", shop, json={"role": READ_ONLY}))
    assert api.call("PUT", here, desk, json={"name": "Coffee"}).status_code == 403
    assert done(api.call("GET", here, desk))["merchant"]["name"] == "Tea"


def test_bad_roles_are_refused(
    api: PaymentsApi, shop: App, merchant: dict[str, Any], desk: App
) -> None:
    here = f"/merchants/{merchant['id']}"
    body = {"appId": desk.id, "role": "admin"}
    assert fields_of(api.call("POST", f"{here}/apps", shop, json=body)) == ["role"]
    give(api, shop, merchant, desk, READ_ONLY)
    again = {"appId": desk.id, "role": "owner"}
    assert fields_of(api.call("POST", f"{here}/apps", shop, json=again)) == ["role"]
    demoted = api.call("PUT", f"{here}/apps/{shop.id}", shop, json={"role": READ_ONLY})
    assert fields_of(demoted) == ["role"]
    assert api.call("DELETE", f"{here}/apps/{shop.id}", shop).status_code == 400
    done(api.call("DELETE", f"{here}/apps/{desk.id}", desk))
    missing = api.call("PUT", f"{here}/users/{desk.id}", shop, json={"role": READ_ONLY})
    assert missing.status_code == 404


def test_an_invitation_says_what_one_may(
    api: PaymentsApi, shop: App, merchant: dict[str, Any]
) -> None:
    body = {"email": "ann@example.com", "role": READ_ONLY}
    done(api.call("POST", f"/merchants/{merchant['id']}/users", shop, json=body))
    assert [each.role.value for each in api.invitations.sent] == [READ_ONLY]
