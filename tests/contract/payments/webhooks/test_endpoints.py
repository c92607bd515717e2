"""Webhooks over the API: their secrets, dead letters, and sending those again."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of
from tollgate.actors.ledger.delivery.schedule import (
    GIVE_UP_AFTER_MS,
    DeliveryBatch,
    DeliveryOutcome,
)
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.serve.payments.webhooks.calls import live

Merchant = dict[str, Any]
URL = {"url": "https://example.com/hook"}


@pytest.fixture
def path(merchant: Merchant) -> str:
    return f"/merchants/{merchant['id']}/webhooks"


def claim(api: PaymentsApi) -> DeliveryBatch:
    now_ms = int(api.clock.now_s() * 1000)
    (batch,) = api.runner.run(api.context.deliveries.claim(now_ms, 1_000, 10, 10))
    return batch


def bury_all(api: PaymentsApi) -> list[str]:
    """What is due goes to the dead letters; its events."""
    batch = claim(api)
    events = [letter.event for letter in batch.letters]
    for _ in range(2):
        now_ms = int(api.clock.now_s() * 1000)
        assert api.runner.run(
            api.context.deliveries.settle(batch, DeliveryOutcome(0, "no answer"), now_ms)
        )
        api.clock.advance(GIVE_UP_AFTER_MS / 1000 + 3_600)
        found = api.runner.run(
            api.context.deliveries.claim(int(api.clock.now_s() * 1000), 1_000, 10, 10)
        )
        if not found:
            break
        (batch,) = found
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
    assert {(letter["reason"], letter["queued"]) for letter in dead} == {("no answer", False)}
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


@pytest.mark.parametrize("end", ["dead-letters", "replays"])
def test_another_merchant_s_webhook_is_not_there(
    api: PaymentsApi, shop: App, path: str, end: str
) -> None:
    method = "GET" if end == "dead-letters" else "POST"
    other = f"/merchants/{api.new_merchant(shop)['id']}/webhooks"
    webhook = done(api.call("POST", other, shop, json=URL))["webhook"]["id"]
    for each in (webhook, ABSENT, "x"):
        response = api.call(method, f"{path}/{each}/{end}", shop, params={"limit": 1})
        assert response.status_code == 404
