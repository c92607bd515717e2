"""Webhooks over the API: adding, changing, removing one, and its secrets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.support.payments.api import ABSENT, App, PaymentsApi, done, fields_of
from tollgate.actors.ledger.delivery.batches import DeliveryBatch
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import Done, OrderOutcome, TurnedAway
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.law.webhook_law import AddWebhook
from tollgate.actors.ledger.storage.operation_expiry import KEPT_MS, forget_operations
from tollgate.serve.payments.webhooks.calls import live

Merchant = dict[str, Any]
URL = {"url": "https://example.com/hook"}


def claim(api: PaymentsApi) -> DeliveryBatch:
    now_ms = int(api.clock.now_s() * 1000)
    (batch,) = api.runner.run(api.context.deliveries.claim(now_ms, 1_000, 10, 10))
    return batch


def added(api: PaymentsApi, shop: App, path: str, **more: object) -> str:
    webhook = done(api.call("POST", path, shop, json=URL | more))["webhook"]["id"]
    return f"{path}/{webhook}"


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


def test_no_secret_comes_back(api: PaymentsApi, shop: App, path: str) -> None:
    """The same request, once the reply to the first is forgotten, makes another secret."""
    key = {"Idempotency-Key": "2026"}
    webhook = done(api.call("POST", path, shop, json=URL))["webhook"]
    secrets = f"{path}/{webhook['id']}/secrets"
    made = {webhook["secret"]}
    for _ in range(2):
        first, again = (api.call("POST", secrets, shop, headers=key) for _ in range(2))
        assert first.content == again.content
        assert "salt" not in first.text
        made.add(done(first)["webhook"]["secret"])
        api.clock.advance(KEPT_MS / 1_000 + 1)
        api.new_app()  # (nothing is forgotten that the newest entry does not call old)
        assert api.runner.run(forget_operations(api.database, api.context.now_ms))
    assert len(made) == 3


def test_replies_of_before_there_were_salts_show_their_secret(
    api: PaymentsApi, shop: App, merchant: Merchant, path: str
) -> None:
    """And what receivers were told goes on signing."""
    key = {"Idempotency-Key": "w1"}
    before = api.context.secrets.webhook_secret(shop.id, merchant["id"], "w1")
    api.ledger.instead = [TurnedAway(1)]
    assert api.call("POST", path, shop, json=URL, headers=key).status_code == 503
    sealed = api.context.secret_sealer.seal([before], BookId(merchant["id"]))
    order = replace(api.ledger.orders[-1], command=AddWebhook(URL["url"], sealed))
    (made,) = api.runner.run(api.ledger.execute([order]))
    assert isinstance(made, Done)
    assert b"salt" not in made.body
    shown = done(api.call("POST", path, shop, json=URL, headers=key))["webhook"]
    assert shown["secret"] == before.secret
    api.pay(merchant)
    batch = claim(api)
    assert live(api.context.secret_sealer.open(batch.secret, batch.book), 0) == [before.secret]


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
