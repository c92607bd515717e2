"""A key that was lost or stolen is replaced by the recovery code, or by the operator."""

import pytest

from tests.support.payments.api import ABSENT, OPERATOR_KEY, App, PaymentsApi, done, fields_of


def created(api: PaymentsApi) -> tuple[App, str]:
    """An app, and its recovery code."""
    made = done(api.call("POST", "/apps", json={"name": "Coffee"}))["app"]
    return App(made["id"], made["key"]), made["recoveryCode"]


def rotated(api: PaymentsApi, app: App) -> App:
    made = done(api.call("POST", f"/apps/{app.id}/keys", app))["app"]
    assert "recoveryCode" not in made
    return App(app.id, made["key"])


def recover(api: PaymentsApi, app: str, code: str, **headers: str) -> App:
    path, body = f"/apps/{app}/recoveries", {"recoveryCode": code}
    response = api.call("POST", path, json=body, headers=headers)
    assert response.status_code == 201, response.text
    made = response.json()["app"]
    assert made.keys() == {"id", "name", "created", "key"}
    return App(made["id"], made["key"])


def works(api: PaymentsApi, app: App) -> bool:
    return bool(api.call("GET", "/me", app).status_code == 200)


def test_a_thief_cannot_lock_the_owner_out(api: PaymentsApi) -> None:
    owner, code = created(api)
    thief = rotated(api, rotated(api, owner))
    assert not works(api, owner)
    again = recover(api, owner.id, code)
    assert works(api, again)
    assert not works(api, thief)
    # A key is no way to the code, and the code is no key.
    assert not works(api, App(owner.id, code))
    later = recover(api, owner.id, code)
    assert works(api, later)
    assert not works(api, again)


def test_a_repetition_shows_the_same_key(api: PaymentsApi) -> None:
    owner, code = created(api)
    key = {"Idempotency-Key": "lost-1"}
    first = recover(api, owner.id, code, **key)
    assert recover(api, owner.id, code, **key) == first
    assert works(api, first)
    # Another app's owner may use the same idempotency key.
    other, others_code = created(api)
    assert recover(api, other.id, others_code, **key).key != first.key


@pytest.mark.parametrize("app", ["", ABSENT])
def test_a_wrong_code_tells_nothing(api: PaymentsApi, app: str) -> None:
    owner, code = created(api)
    body = {"recoveryCode": f"{code}x" if not app else code}
    response = api.call("POST", f"/apps/{app or owner.id}/recoveries", json=body)
    assert response.status_code == 403
    assert response.json()["message"] == "this is not the recovery code of an app with this id"
    assert works(api, owner)


@pytest.mark.parametrize("code", [None, "", 5, "with blanks", "x" * 257])
def test_what_is_no_code(api: PaymentsApi, code: object) -> None:
    owner, _ = created(api)
    path = f"/apps/{owner.id}/recoveries"
    assert fields_of(api.call("POST", path, json={"recoveryCode": code})) == ["recoveryCode"]
    assert api.call("POST", "/apps/x/recoveries", json={}).status_code == 404


def test_creating_an_app_again_shows_the_same_code(api: PaymentsApi) -> None:
    headers = {"Idempotency-Key": "0123456789-0123456789"}
    first, again = (api.call("POST", "/apps", headers=headers) for _ in range(2))
    assert first.content == again.content
    made = first.json()["app"]
    recover_body = {"recoveryCode": made["recoveryCode"]}
    done(api.call("POST", f"/apps/{made['id']}/recoveries", json=recover_body))


def test_the_operator_makes_a_new_key_and_code(api: PaymentsApi) -> None:
    owner, code = created(api)
    path = f"/operator/apps/{owner.id}/keys"
    headers = {"Idempotency-Key": "ticket-4711"}
    first, again = (api.call("POST", path, OPERATOR_KEY, headers=headers) for _ in range(2))
    assert (first.status_code, first.content) == (201, again.content)
    made = first.json()["app"]
    assert works(api, App(owner.id, made["key"]))
    assert not works(api, owner)
    body = {"recoveryCode": code}
    assert api.call("POST", f"/apps/{owner.id}/recoveries", json=body).status_code == 403
    assert works(api, recover(api, owner.id, made["recoveryCode"]))
    for absent in (ABSENT, "x"):
        path = f"/operator/apps/{absent}/keys"
        assert api.call("POST", path, OPERATOR_KEY).status_code == 404


def test_the_older_key_hears_of_the_newer(api: PaymentsApi) -> None:
    owner, _ = created(api)
    assert "tollgate-newer-key" not in api.call("GET", "/me", owner).headers
    newer = rotated(api, owner)
    response = api.call("GET", "/me", owner)
    assert response.headers["tollgate-newer-key"] == (
        f"{newer.key[-4:]}; created=2026-01-01T00:00:00.001Z"
    )
    assert "tollgate-newer-key" not in api.call("GET", "/me", newer).headers
