"""Webhooks over the API: their secrets, dead letters, and sending those again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of
from tests.support.payments.deliveries import deliver_due
from tollgate.actors.ledger.delivery.batches import CallResult, DeliveryBatch
from tollgate.actors.ledger.delivery.schedule import GIVE_UP_AFTER_MS
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.asgi import Dispatcher
from tollgate.serve.payments.webhooks.calls import WebhookTargets, is_signed, live

Merchant = dict[str, Any]
URL = {"url": "https://example.com/hook"}


@pytest.fixture
def path(merchant: Merchant) -> str:
    return f"/merchants/{merchant['id']}/webhooks"


def claim(api: PaymentsApi) -> DeliveryBatch:
    now_ms = int(api.clock.now_s() * 1000)
    (batch,) = api.runner.run(api.context.deliveries.claim(now_ms, 1_000, 10, 10))
    return batch


NO = CallResult(500, "HTTP status 500")


def deliver(api: PaymentsApi, *answers: CallResult) -> None:
    """Everything that is due at this moment, answered so; then all is taken."""
    api.receivers.answers += answers
    api.runner.run(deliver_due(api.context.deliveries, api.context.webhook_caller, api.clock))


def taken(api: PaymentsApi) -> list[str]:
    """The types of the events that were sent, as often as they were."""
    return [json.loads(body)["type"] for _, body, _ in api.receivers.taken]


def bury_all(api: PaymentsApi) -> list[str]:
    """What is due goes to the dead letters; its events."""
    events = [each.event for each in claim(api).events]
    api.clock.advance(60)
    for _ in range(6):
        deliver(api, *[NO] * 20)
        api.receivers.answers.clear()
        api.clock.advance(GIVE_UP_AFTER_MS / 1000 + 3_600)
    return events


def test_a_webhook_s_secret_is_shown_once_and_signs(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    response = api.call("POST", path, shop, json=URL)
    assert response.status_code == 201
    webhook = response.json()["webhook"]
    secret = webhook.pop("secret")
    assert secret.startswith("whsec_")
    assert api.listed(path, shop) == [webhook]
    assert webhook["url"] == URL["url"]
    api.pay(merchant)
    batch = claim(api)
    known = api.context.secret_sealer.open(batch.secret, batch.book)
    assert live(known, 0) == [secret]


def test_a_webhook_added_twice_with_one_key_is_one(api: PaymentsApi, shop: App, path: str) -> None:
    key = {"Idempotency-Key": "w1"}
    first = api.call("POST", path, shop, json=URL, headers=key)
    again = api.call("POST", path, shop, json=URL, headers=key)
    assert again.content == first.content
    assert again.headers["idempotency-replayed"] == "true"
    assert len(api.listed(path, shop)) == 1


def test_a_secret_is_replaced_over_a_day(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    first = done(api.call("POST", path, shop, json=URL))["webhook"]
    key = {"Idempotency-Key": "roll 1"}
    response = api.call("POST", f"{path}/{first['id']}/secrets", shop, headers=key)
    assert response.status_code == 201
    second = response.json()["webhook"]
    assert second["secret"] != first["secret"]
    assert second | {"secret": ""} == first | {"secret": ""}
    again = api.call("POST", f"{path}/{first['id']}/secrets", shop, headers=key)
    assert again.content == response.content
    assert again.headers["idempotency-replayed"] == "true"
    api.pay(merchant)
    batch, now_ms = claim(api), int(api.clock.now_s() * 1000)
    known = api.context.secret_sealer.open(batch.secret, batch.book)
    assert live(known, now_ms) == [second["secret"], first["secret"]]
    assert live(known, now_ms + 86_400_000) == [second["secret"]]
    assert second["secret"] not in str(api.listed(f"/merchants/{merchant['id']}/events", shop))


def test_of_two_who_replace_a_secret_at_once_one_is_told(
    api: PaymentsApi, shop: App, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = done(api.call("POST", path, shop, json=URL))["webhook"]
    secrets = f"{path}/{webhook['id']}/secrets"
    execute = api.ledger.execute
    first: list[int] = []

    async def after_another(orders: Sequence[Order]) -> list[OrderOutcome]:
        monkeypatch.setattr(api.ledger, "execute", execute)
        first.append((await api.request("POST", secrets, shop)).status_code)
        return await execute(orders)

    monkeypatch.setattr(api.ledger, "execute", after_another)
    assert api.call("POST", secrets, shop).status_code == 409
    assert first == [201]


def test_a_secret_is_replaced_by_members_at_a_webhook_of_theirs(
    api: PaymentsApi, shop: App, path: str
) -> None:
    webhook = done(api.call("POST", path, shop, json=URL))["webhook"]
    stranger = api.new_app()
    assert api.call("POST", f"{path}/{webhook['id']}/secrets", stranger).status_code == 403
    assert api.call("POST", f"{path}/{ABSENT}/secrets", shop).status_code == 404


@pytest.mark.parametrize(
    "url",
    [None, "", "example.com", "http://example.com/", "https://127.0.0.1/", "https://10.0.0.1/", 7],
)
def test_a_webhook_s_url_is_public_and_secure(
    api: PaymentsApi, shop: App, path: str, url: object
) -> None:
    assert fields_of(api.call("POST", path, shop, json={"url": url})) == ["url"]
    assert api.listed(path, shop) == []


def test_a_webhook_is_removed_once(api: PaymentsApi, shop: App, path: str) -> None:
    webhook = done(api.call("POST", path, shop, json=URL))["webhook"]["id"]
    response = api.call("DELETE", f"{path}/{webhook}", shop)
    assert (response.status_code, response.content) == (204, b"")
    assert api.listed(path, shop) == []
    assert api.call("DELETE", f"{path}/{webhook}", shop).status_code == 404
    assert api.call("DELETE", f"{path}/x", shop).status_code == 404


def test_dead_letters_are_listed_and_sent_again(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    webhook = done(api.call("POST", path, shop, json=URL))["webhook"]["id"]
    letters = f"{path}/{webhook}/dead-letters"
    assert api.listed(letters, shop) == []
    api.pay(merchant)
    api.pay(merchant)
    events = bury_all(api)
    dead = api.listed(letters, shop)
    assert [letter["id"] for letter in dead] == events[::-1]
    assert {letter["queued"] for letter in dead} == {False}
    assert "HTTP status 500" in {letter["reason"] for letter in dead}
    assert api.listed(letters, shop, limit=1) == dead[:1]
    assert api.listed(letters, shop, before=dead[0]["id"]) == dead[1:]
    replays = f"{path}/{webhook}/replays"
    response = api.call("POST", replays, shop, json={"events": [events[0]]})
    assert (response.status_code, response.json()) == (201, {"queued": 1})
    assert done(api.call("POST", replays, shop)) == {"queued": len(events) - 1}
    assert done(api.call("POST", replays, shop)) == {"queued": 0}
    assert all(letter["queued"] for letter in api.listed(letters, shop))


@pytest.mark.parametrize("events", ["x", [], ["x"], [7], [ABSENT] * 1_001])
def test_what_is_sent_again_is_named_by_ids(
    api: PaymentsApi, shop: App, path: str, events: object
) -> None:
    webhook = done(api.call("POST", path, shop, json=URL))["webhook"]["id"]
    response = api.call("POST", f"{path}/{webhook}/replays", shop, json={"events": events})
    assert fields_of(response) == ["events"]


@pytest.mark.parametrize(
    "end", ["dead-letters", "replays", "deliveries", "retries", "tests", "status"]
)
def test_another_merchant_s_webhook_is_not_there(
    api: PaymentsApi, shop: App, path: str, end: str
) -> None:
    method = "POST" if end in ("replays", "retries", "tests") else "GET"
    other = f"/merchants/{api.new_merchant(shop)['id']}/webhooks"
    webhook = done(api.call("POST", other, shop, json=URL))["webhook"]["id"]
    for each in (webhook, ABSENT, "x"):
        response = api.call(method, f"{path}/{each}/{end}", shop, params={"limit": 1})
        assert response.status_code == 404


def added(api: PaymentsApi, shop: App, path: str, **more: object) -> str:
    webhook = done(api.call("POST", path, shop, json=URL | more))["webhook"]["id"]
    return f"{path}/{webhook}"


def test_a_webhook_is_fetched_as_it_is_listed(api: PaymentsApi, shop: App, path: str) -> None:
    here = added(api, shop, path)
    found = done(api.call("GET", here, shop))["webhook"]
    assert [found] == api.listed(path, shop)
    assert found["enabled"] is True
    assert "types" not in found, "it gets them all"


def test_a_webhook_is_changed_field_by_field(api: PaymentsApi, shop: App, path: str) -> None:
    here = added(api, shop, path)
    wanted = {"types": ["transaction.voided", "transaction.captured"]}
    assert api.call("PUT", here, shop, json=wanted).status_code == 204
    assert api.call("PUT", here, shop, json={"enabled": False}).content == b""
    changed = {"url": "https://example.com/other"}
    assert api.call("PUT", here, shop, json=changed).status_code == 204
    found = done(api.call("GET", here, shop))["webhook"]
    assert found == api.listed(path, shop)[0]
    assert found["types"] == ["transaction.captured", "transaction.voided"]
    assert (found["enabled"], found["url"]) == (False, "https://example.com/other")
    assert api.call("PUT", here, shop, json={"types": [], "enabled": True}).status_code == 204
    found = done(api.call("GET", here, shop))["webhook"]
    assert "types" not in found
    assert found["enabled"] is True
    merchant = path.removesuffix("/webhooks")
    told = [e["data"] for e in api.listed(f"{merchant}/events", shop) if "changed" in e["type"]]
    told = [{k: v for k, v in each.items() if k != "webhookId"} for each in told]
    assert told == [
        {"types": [], "enabled": True},
        {"url": "https://example.com/other"},
        {"enabled": False},
        {"types": ["transaction.captured", "transaction.voided"]},
    ]


def test_a_change_that_changes_nothing_is_no_event(api: PaymentsApi, shop: App, path: str) -> None:
    here = added(api, shop, path)
    events = len(api.listed(f"{path.removesuffix('/webhooks')}/events", shop))
    for body in ({}, {"enabled": True}, URL, {"types": []}):
        assert api.call("PUT", here, shop, json=body).status_code == 204
    assert len(api.listed(f"{path.removesuffix('/webhooks')}/events", shop)) == events
    assert api.call("PUT", f"{path}/{ABSENT}", shop, json=URL).status_code == 404
    assert api.call("PUT", here, api.new_app(), json=URL).status_code == 403


def test_a_form_can_say_the_same(api: PaymentsApi, shop: App, path: str) -> None:
    form = {"url": URL["url"], "types[]": "transaction.captured", "enabled": "no"}
    webhook = done(api.call("POST", path, shop, data=form))["webhook"]
    assert (webhook["types"], webhook["enabled"]) == (["transaction.captured"], False)
    here = f"{path}/{webhook['id']}"
    assert api.call("PUT", here, shop, data={"types[]": "", "enabled": "yes"}).status_code == 204
    assert "types" not in done(api.call("GET", here, shop))["webhook"]


@pytest.mark.parametrize("types", ["x", {}, [7], ["*"], ["transaction.capture"], ["app.created"]])
def test_types_are_those_of_the_book(api: PaymentsApi, shop: App, path: str, types: object) -> None:
    response = api.call("POST", path, shop, json=URL | {"types": types})
    assert fields_of(response) == ["types"]
    if types == ["transaction.capture"]:
        assert "did you mean transaction.captured?" in response.text


def test_only_the_wanted_types_are_sent(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    added(api, shop, path, types=["transaction.captured"])
    transaction = api.pay(merchant)
    api.act(shop, transaction, "captures", amount=100)
    deliver(api)
    assert taken(api) == ["transaction.captured"]


def test_what_happens_while_it_is_disabled_is_sent_later(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    here = added(api, shop, path, enabled=False)
    api.pay(merchant)
    deliver(api)
    assert taken(api) == []
    done(api.call("PUT", here, shop, json={"enabled": True}))
    deliver(api)
    assert taken(api) == ["webhook.added", "transaction.created", "webhook.changed"]


def test_the_log_tells_of_every_attempt(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    here = added(api, shop, path)
    assert api.listed(f"{here}/deliveries", shop) == []
    deliver(api)
    api.clock.advance(1.0)
    api.pay(merchant)
    deliver(api, CallResult(410, "HTTP status 410"))
    failed, delivered = api.listed(f"{here}/deliveries", shop)
    assert delivered.keys() == {
        *("id", "eventId", "type", "created", "durationMs", "delivered", "status")
    }
    assert (delivered["type"], delivered["delivered"]) == ("webhook.added", True)
    assert (failed["status"], failed["error"]) == (410, "HTTP status 410")
    assert failed["nextAttempt"] > failed["created"]
    assert api.listed(f"{here}/deliveries", shop, limit=1) == [failed]
    assert api.listed(f"{here}/deliveries", shop, before=failed["id"]) == [delivered]


def test_the_status_tells_what_waits_and_a_retry_sends_it_now(
    api: PaymentsApi, shop: App, path: str
) -> None:
    here = added(api, shop, path)
    assert done(api.call("GET", f"{here}/status", shop)) == {
        "status": {"waiting": 0, "deadLetters": 0}
    }
    deliver(api, CallResult(None, "no answer within 10 s"))
    status = done(api.call("GET", f"{here}/status", shop))["status"]
    assert (status["waiting"], status["deadLetters"]) == (1, 0)
    assert status["nextAttempt"] > status["failingSince"]
    deliver(api)
    assert len(taken(api)) == 1, "its pause is not over"
    (event,) = [each["eventId"] for each in api.listed(f"{here}/deliveries", shop)]
    retries = f"{here}/retries"
    assert done(api.call("POST", retries, shop, json={"events": [ABSENT]})) == {"queued": 0}
    response = api.call("POST", retries, shop, json={"events": [event]})
    assert (response.status_code, response.json()) == (201, {"queued": 1})
    deliver(api)
    assert done(api.call("GET", f"{here}/status", shop))["status"]["waiting"] == 0
    assert done(api.call("POST", retries, shop)) == {"queued": 0}


def test_a_test_is_one_signed_call_and_no_event(api: PaymentsApi, shop: App, path: str) -> None:
    webhook = done(api.call("POST", path, shop, json=URL | {"enabled": False}))["webhook"]
    here = f"{path}/{webhook['id']}"
    response = api.call("POST", f"{here}/tests", shop)
    assert response.status_code == 201
    delivery = response.json()["delivery"]
    assert (delivery["type"], delivery["status"]) == ("webhook.test", 200)
    assert delivery["delivered"] is True
    assert api.listed(f"{here}/deliveries", shop) == [delivery]
    ((url, body, headers),) = api.receivers.taken
    assert url == URL["url"]
    assert is_signed(headers["Tollgate-Signature"], body, webhook["secret"], int(api.clock.now_s()))
    event = json.loads(body)
    assert event["id"] == delivery["eventId"] == headers["Tollgate-Event"]
    assert event["data"] == {"webhookId": webhook["id"]}
    events = api.listed(f"{path.removesuffix('/webhooks')}/events", shop)
    assert event["id"] not in [each["id"] for each in events]
    api.receivers.answers.append(NO)
    failed = done(api.call("POST", f"{here}/tests", shop))["delivery"]
    assert (failed["delivered"], failed["error"]) == (False, "HTTP status 500")
    assert "nextAttempt" not in failed


LOOPBACK = ("http://localhost:9000/hook", "http://127.0.0.1:9000/hook", "https://[::1]:9000/")


@pytest.fixture
def local(api: PaymentsApi) -> PaymentsApi:
    """A Tollgate that serves its own machine alone, called from there."""
    targets = WebhookTargets(test=TargetPolicy(allows_loopback=True))
    api.address = "127.0.0.1"
    api.client = api.client_of(Dispatcher(replace(api.context, targets=targets)))
    return api


@pytest.mark.parametrize("url", LOOPBACK)
def test_on_the_loopback_a_test_merchant_s_webhook_may_be_there(
    local: PaymentsApi, shop: App, path: str, url: str
) -> None:
    here = added(local, shop, path)
    assert local.call("POST", path, shop, json={"url": url}).status_code == 201
    assert local.call("PUT", here, shop, json={"url": url}).status_code == 204


@pytest.mark.parametrize("url", LOOPBACK)
def test_a_live_merchant_s_webhook_is_never_on_the_loopback(
    local: PaymentsApi, shop: App, url: str
) -> None:
    live_one = local.new_merchant(shop, test=False)
    response = local.call("POST", f"/merchants/{live_one['id']}/webhooks", shop, json={"url": url})
    assert fields_of(response) == ["url"]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"Via": "1.1 proxy"},
        {"X-Real-IP": "127.0.0.1"},
        {"X-Forwarded-Host": "localhost"},
        {"X-Forwarded-Proto": "https"},
    ],
)
def test_whoever_comes_through_a_proxy_is_not_on_this_machine(
    local: PaymentsApi, shop: App, path: str, headers: dict[str, str]
) -> None:
    for url in LOOPBACK:
        response = local.call("POST", path, shop, json={"url": url}, headers=headers)
        assert fields_of(response) == ["url"]


def test_whoever_calls_from_elsewhere_does_not_name_this_machine(
    local: PaymentsApi, shop: App, path: str
) -> None:
    local.address = "192.0.2.7"
    targets = WebhookTargets(test=TargetPolicy(allows_loopback=True))
    local.client = local.client_of(Dispatcher(replace(local.context, targets=targets)))
    here = added(local, shop, path)
    for url in LOOPBACK:
        assert fields_of(local.call("POST", path, shop, json={"url": url})) == ["url"]
        assert fields_of(local.call("PUT", here, shop, json={"url": url})) == ["url"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "2130706433", "[::1]"])
def test_names_and_numbers_of_the_loopback_are_one(
    api: PaymentsApi, shop: App, path: str, host: str
) -> None:
    for scheme in ("http", "https"):
        assert fields_of(api.call("POST", path, shop, json={"url": f"{scheme}://{host}/"}))
