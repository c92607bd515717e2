"""A merchant: opening it, changing it, and who has access to it; apps and their keys."""

import json

import pytest
from msgspec.structs import replace

from tests.support.ledger.books import (
    ABSENT,
    DKK,
    EUR,
    NOW_MS,
    PRICING,
    Books,
    Shop,
    open_shop,
    opening,
)
from tollgate.actors.ledger.book.entities import Webhook
from tollgate.actors.ledger.book.head import APPS_MAX, USERS_MAX, WEBHOOKS_MAX, User
from tollgate.actors.ledger.book.machine import OrderEffect, execute
from tollgate.actors.ledger.law.commands import (
    AddApp,
    ChangeMerchant,
    CreateApp,
    InviteUser,
    ReserveMerchant,
    RevokeApp,
    RevokeUser,
    RotateKey,
)
from tollgate.actors.ledger.law.ids import is_merchant_id
from tollgate.actors.ledger.law.outcomes import DoneKind, RefusalReason
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, OPERATOR, BookId, EntityId
from tollgate.actors.ledger.law.webhook_law import (
    AddWebhook,
    RemoveWebhook,
    ReplaceWebhookSecret,
)

SECOND = EntityId("a" * 24)


@pytest.fixture
def shop() -> Shop:
    return open_shop()


def test_a_merchant_is_opened_once(shop: Shop) -> None:
    refused = shop.refusal(opening(shop.app, DKK, PRICING, is_test=False))
    assert refused.kind is RefusalReason.CONSTRAINT
    assert "is open already" in refused.message


@pytest.mark.parametrize("creator", [NOBODY, OPERATOR])
def test_a_merchant_is_opened_for_an_app(creator: EntityId) -> None:
    books = Books()
    command = opening(creator, EUR, PRICING, is_test=True)
    refused = books.attempt(BookId("b" * 24), command, OPERATOR)
    assert not isinstance(refused, OrderEffect)
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "creator")


@pytest.mark.parametrize("book", ["", "b" * 23, "B" * 24])
def test_a_merchant_has_a_merchants_id(book: str) -> None:
    command = opening(SECOND, EUR, PRICING, is_test=True)
    refused = Books().attempt(BookId(book), command, SECOND)
    assert not isinstance(refused, OrderEffect)
    assert "is no merchant's id" in refused.message


def test_merchants_ids_rise_and_are_reserved_once() -> None:
    books = Books()
    ids = []
    for _ in range(3):
        step = books.do(DIRECTORY, ReserveMerchant(), SECOND)
        ids.append(json.loads(step.reply.body)["merchant"]["id"])
    assert ids == sorted(set(ids))
    assert all(is_merchant_id(book) for book in ids)


def test_name_email_and_descriptor_can_change(shop: Shop) -> None:
    step = shop.do(ChangeMerchant(name="Shop", email="new@example.com", descriptor="NEW"))
    assert (step.reply.kind, step.reply.body) == (DoneKind.CHANGED, b"")
    document = shop.books.document("merchant", shop.book)
    assert [document[name] for name in ("name", "email", "descriptor")] == [
        "Shop",
        "new@example.com",
        "NEW",
    ]
    shop.do(ChangeMerchant(name=""))
    assert "name" not in shop.books.document("merchant", shop.book)
    assert shop.books.document("merchant", shop.book)["descriptor"] == "NEW"


@pytest.mark.parametrize("command", [ChangeMerchant(), ChangeMerchant(email="shop@example.com")])
def test_changing_nothing_is_no_event(shop: Shop, command: ChangeMerchant) -> None:
    before = shop.books.head(shop.book)
    step = shop.do(command)
    assert (step.reply.kind, step.events, step.head) == (DoneKind.CHANGED, (), before)


def test_an_app_is_added_once(shop: Shop) -> None:
    first = shop.do(AddApp(SECOND, "Second", NOW_MS))
    head = shop.books.head(shop.book)
    again = shop.do(AddApp(SECOND, "Other name", NOW_MS + 1))
    assert (first.reply.kind, first.reply.body) == (DoneKind.MADE, b"")
    assert first.reply == again.reply
    assert shop.books.head(shop.book) == head
    assert shop.books.documents("membership", shop.book) == [
        {"id": shop.app, "name": "Till", "created": "2026-01-01T00:00:00.000Z"},
        {"id": SECOND, "name": "Second", "created": "2026-01-01T00:00:00.000Z"},
    ]


@pytest.mark.parametrize("app", [NOBODY, OPERATOR, "A" * 24])
def test_only_apps_are_added(shop: Shop, app: EntityId) -> None:
    assert shop.refusal(AddApp(app, "", NOW_MS)).field == "appId"


def test_a_revoked_app_is_out(shop: Shop) -> None:
    shop.do(AddApp(SECOND, "Second", NOW_MS))
    step = shop.do(RevokeApp(SECOND))
    assert (step.reply.kind, step.reply.body) == (DoneKind.CHANGED, b"")
    assert [app["id"] for app in shop.books.documents("membership", shop.book)] == [shop.app]
    assert shop.refusal(RevokeApp(SECOND)).kind is RefusalReason.NOT_FOUND


def test_a_user_is_invited_once(shop: Shop) -> None:
    first = shop.do(InviteUser("Ann@example.com"))
    again = shop.do(InviteUser("ann@EXAMPLE.com"))
    assert first.reply.body == b'{"isMember":false}'
    assert again.reply.body == b'{"isMember":true}'
    (user,) = shop.books.documents("user", shop.book)
    assert user == {
        "id": user["id"],
        "email": "Ann@example.com",
        "created": "2026-01-01T00:00:00.001Z",
    }
    step = shop.do(RevokeUser(EntityId(user["id"])))
    assert (step.reply.kind, step.reply.body) == (DoneKind.CHANGED, b"")
    assert shop.books.documents("user", shop.book) == []
    assert shop.refusal(RevokeUser(EntityId(user["id"]))).kind is RefusalReason.NOT_FOUND
    assert shop.do(InviteUser("ann@example.com")).reply.body == b'{"isMember":false}'


def test_a_webhook_comes_and_goes(shop: Shop) -> None:
    step = shop.do(AddWebhook("https://hooks.example/a", "sealed secret"))
    document = json.loads(step.reply.body)["webhook"]
    assert document == shop.books.document("webhook", document["id"])
    assert document["url"] == "https://hooks.example/a"
    assert b"sealed secret" not in step.reply.body
    webhook = shop.books.entity(document["id"])
    assert isinstance(webhook, Webhook)
    assert webhook.secret == "sealed secret"
    step = shop.do(RemoveWebhook(document["id"]))
    assert (step.reply.kind, step.entities) == (DoneKind.CHANGED, {document["id"]: None})
    assert shop.books.documents("webhook") == []
    assert shop.refusal(RemoveWebhook(document["id"])).kind is RefusalReason.NOT_FOUND
    assert "sealed" not in json.dumps(shop.books.documents("event"))


def test_a_webhooks_secret_is_replaced(shop: Shop) -> None:
    (webhook,) = shop.do(AddWebhook("https://hooks.example/a", "sealed secret")).entities
    before = shop.books.document("webhook", webhook)
    step = shop.do(ReplaceWebhookSecret(webhook, "sealed pair", replaces="sealed secret"))
    assert json.loads(step.reply.body) == {"webhook": before}
    found = shop.books.entity(webhook)
    assert isinstance(found, Webhook)
    assert found.secret == "sealed pair"
    assert "sealed" not in json.dumps(shop.books.documents("event"))


def test_of_two_who_replace_a_secret_one_is_told(shop: Shop) -> None:
    (webhook,) = shop.do(AddWebhook("https://hooks.example/a", "sealed")).entities
    late = ReplaceWebhookSecret(webhook, "sealed 3", replaces="sealed")
    shop.do(ReplaceWebhookSecret(webhook, "sealed 2", replaces="sealed"))
    assert shop.refusal(late).kind is RefusalReason.CONSTRAINT
    missing = ReplaceWebhookSecret(ABSENT, "sealed 3", replaces="sealed")
    assert shop.refusal(missing).kind is RefusalReason.NOT_FOUND
    found = shop.books.entity(webhook)
    assert isinstance(found, Webhook)
    assert found.secret == "sealed 2"


def test_what_a_head_lists_has_an_end(shop: Shop) -> None:
    head = shop.books.head(shop.book)
    assert head is not None
    assert head.merchant is not None
    merchant = replace(
        head.merchant,
        apps=head.merchant.apps * APPS_MAX,
        users=(User(ABSENT, "ann@example.com", NOW_MS),) * USERS_MAX,
        webhooks=(ABSENT,) * WEBHOOKS_MAX,
    )
    full = replace(head, merchant=merchant)
    for command, count in (
        (AddApp(SECOND, "", NOW_MS), APPS_MAX),
        (InviteUser("bob@example.com"), USERS_MAX),
        (AddWebhook("https://hooks.example", ""), WEBHOOKS_MAX),
    ):
        refused = execute(full, {}, shop.books.order(shop.book, command, shop.app), NOW_MS)
        assert not isinstance(refused, OrderEffect)
        assert f"at most {count} " in refused.message


def test_an_app_has_an_identity_and_a_key() -> None:
    books = Books()
    step = books.do(DIRECTORY, CreateApp("Kasse 1 ☂", "digest-1", "ab12"))
    (app,) = step.entities
    assert step.reply.kind == DoneKind.MADE
    assert json.loads(step.reply.body) == {"app": books.document("app", app)}
    assert books.document("app", app) == {
        "id": app,
        "name": "Kasse 1 ☂",
        "created": "2026-01-01T00:00:00.000Z",
    }
    assert "☂".encode() in step.reply.body
    assert {key.digest: (key.app, key.last4) for key in books.live_keys.values()} == {
        "digest-1": (app, "ab12")
    }


def test_an_app_without_a_name() -> None:
    books = Books()
    (app,) = books.do(DIRECTORY, CreateApp("", "digest-1", "ab12")).entities
    assert books.document("app", app).keys() == {"id", "created"}


def test_two_keys_are_live_during_a_rotation() -> None:
    books = Books()
    (app,) = books.do(DIRECTORY, CreateApp("", "digest-1", "ab12")).entities
    live = []
    for number in (2, 3, 4):
        books.now_ms += 1_000
        books.do(DIRECTORY, RotateKey(app, f"digest-{number}", "cd34"), app)
        live.append(sorted(books.live_keys))
    assert live == [
        ["digest-1", "digest-2"],
        ["digest-2", "digest-3"],
        ["digest-3", "digest-4"],
    ]
    assert books.live_keys["digest-4"].created_ms == books.now_ms
    assert "digest" not in json.dumps(books.documents("event"))


def test_an_app_that_is_not_there_has_no_key_to_rotate() -> None:
    refused = Books().attempt(DIRECTORY, RotateKey(ABSENT, "digest", "cd34"), ABSENT)
    assert not isinstance(refused, OrderEffect)
    assert refused.kind is RefusalReason.NOT_FOUND
