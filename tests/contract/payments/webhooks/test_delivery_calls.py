"""Deliveries over the API: types, the log, tests, retries, dead letters."""

import json
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of
from tests.support.payments.deliveries import deliver_due
from tollgate.actors.ledger.delivery.batches import CallResult, DeliveryBatch
from tollgate.actors.ledger.delivery.schedule import GIVE_UP_AFTER_MS
from tollgate.serve.payments.webhooks.signature import is_signed

Merchant = dict[str, Any]
URL = {"url": "https://example.com/hook"}


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


def added(api: PaymentsApi, shop: App, path: str, **more: object) -> str:
    webhook = done(api.call("POST", path, shop, json=URL | more))["webhook"]["id"]
    return f"{path}/{webhook}"


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
    query = "?limit=1" if end in ("dead-letters", "deliveries") else ""
    for each in (webhook, ABSENT, "x"):
        response = api.call(method, f"{path}/{each}/{end}{query}", shop)
        assert response.status_code == 404


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
