"""A key that was lost or stolen is replaced by the recovery code, or by the operator."""

from dataclasses import replace

import httpx
import pytest

from tests.support.payments.api import ABSENT, OPERATOR_KEY, App, PaymentsApi, done, fields_of
from tollgate.actors.ledger.law.commands import CreateApp
from tollgate.actors.ledger.law.outcomes import Done, TurnedAway
from tollgate.actors.ledger.storage.operation_expiry import KEPT_MS, forget_operations

TICKET = {"Idempotency-Key": "ticket-4711"}


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


def replace_code(
    api: PaymentsApi, app: App | None, code: str, path: str = "", **headers: str
) -> httpx.Response:
    path = path or f"/apps/{app.id if app else ABSENT}/recovery-codes"
    response = api.call("POST", path, app, json={"recoveryCode": code}, headers=headers)
    assert isinstance(response, httpx.Response)
    return response


def test_a_code_that_leaked_is_replaced(api: PaymentsApi) -> None:
    owner, code = created(api)
    key = {"Idempotency-Key": "0123456789-0123456789"}
    first, again = (replace_code(api, owner, code, **key) for _ in range(2))
    assert (first.status_code, first.content) == (201, again.content)
    assert again.headers["idempotency-replayed"] == "true"
    made = first.json()["app"]
    assert made.keys() == {"id", "name", "created", "recoveryCode"}
    assert made["recoveryCode"].startswith("rc_")
    assert works(api, owner), "the keys stay what they are"
    path, body = f"/apps/{owner.id}/recoveries", {"recoveryCode": code}
    assert api.call("POST", path, json=body).status_code == 403
    assert replace_code(api, owner, code).status_code == 403
    last = replace_code(api, owner, made["recoveryCode"]).json()["app"]["recoveryCode"]
    assert len({code, made["recoveryCode"], last}) == 3
    assert works(api, recover(api, owner.id, last))


def test_neither_a_key_nor_a_code_alone_replaces_the_code(api: PaymentsApi) -> None:
    owner, code = created(api)
    assert replace_code(api, None, code, f"/apps/{owner.id}/recovery-codes").status_code == 401
    other, _ = created(api)
    path = f"/apps/{owner.id}/recovery-codes"
    assert replace_code(api, other, code, path).status_code == 403
    assert replace_code(api, owner, f"{code}x").status_code == 403
    # A key that the code has just made is as good as the code alone.
    thief = recover(api, owner.id, code)
    refused = replace_code(api, thief, code)
    assert refused.status_code == 403
    assert "younger than a day" in refused.json()["message"]
    api.clock.advance(86_401)
    assert replace_code(api, thief, code).status_code == 201


def test_whoever_guesses_the_idempotency_key_is_shown_no_code(api: PaymentsApi) -> None:
    owner, code = created(api)
    assert fields_of(replace_code(api, owner, code, **TICKET)) == ["Idempotency-Key"]


def test_the_older_key_hears_of_the_newer(api: PaymentsApi) -> None:
    owner, _ = created(api)
    assert "tollgate-newer-key" not in api.call("GET", "/me", owner).headers
    newer = rotated(api, owner)
    response = api.call("GET", "/me", owner)
    assert response.headers["tollgate-newer-key"] == (
        f"{newer.key[-4:]}; created=2026-01-01T00:00:00.001Z"
    )
    assert "tollgate-newer-key" not in api.call("GET", "/me", newer).headers


def test_nobody_knows_beforehand_which_key_another_makes(api: PaymentsApi) -> None:
    """A thief's rotation, the owner's recovery and the operator's reissue by the same text."""
    owner, code = created(api)
    path = f"/apps/{owner.id}/keys"
    stolen = done(api.call("POST", path, owner, headers=TICKET))["app"]["key"]
    recovered = recover(api, owner.id, code, **TICKET)
    path = f"/operator/apps/{owner.id}/keys"
    reissued = done(api.call("POST", path, OPERATOR_KEY, headers=TICKET))["app"]["key"]
    assert len({owner.key, stolen, recovered.key, reissued}) == 4
    assert works(api, App(owner.id, reissued))
    assert not works(api, App(owner.id, stolen))
    assert not works(api, recovered)


def test_no_key_comes_back(api: PaymentsApi) -> None:
    """The same request, once the reply to the first is forgotten, makes another key."""
    owner, _ = created(api)
    path = f"/apps/{owner.id}/keys"
    first, again = (api.call("POST", path, owner, headers=TICKET) for _ in range(2))
    assert first.content == again.content
    api.clock.advance(KEPT_MS / 1_000 + 1)
    api.new_app()  # (nothing is forgotten that the newest entry does not call old)
    assert api.runner.run(forget_operations(api.database, api.context.now_ms))
    key = done(first)["app"]["key"]
    later = done(api.call("POST", path, App(owner.id, key), headers=TICKET))["app"]["key"]
    assert later != key
    assert works(api, App(owner.id, later))


def test_replies_of_before_there_were_salts_are_repeated(api: PaymentsApi) -> None:
    """Their keys follow from the idempotency key alone; a code is shown if the app has it."""
    secrets, digests = api.context.secrets, api.context.digests
    headers = {"Idempotency-Key": "0123456789-0123456789"}
    with_code = {"Idempotency-Key": "0123456789-9876543210"}
    for given, has_code in ((headers, False), (with_code, True)):
        scope = (api.address, given["Idempotency-Key"])
        key, code = secrets.app_key(*scope), secrets.recovery_code(*scope)
        stored, recovery = digests.stored(key), digests.stored(code).digest
        before = CreateApp("", stored.digest, stored.last4, recovery if has_code else "")
        api.ledger.instead = [TurnedAway(1)]
        assert api.call("POST", "/apps", headers=given).status_code == 503
        order = replace(api.ledger.orders[-1], command=before)
        (made,) = api.runner.run(api.ledger.execute([order]))
        assert isinstance(made, Done)
        assert b"salt" not in made.body
        shown = done(api.call("POST", "/apps", headers=given))["app"]
        assert shown["key"] == key
        assert works(api, App(shown["id"], key))
        assert shown.get("recoveryCode") == (code if has_code else None)
