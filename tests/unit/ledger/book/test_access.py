"""Who may give which order: the whole table."""

import json

import pytest

from tests.support.ledger.books import (
    ABSENT,
    EUR,
    NOW_MS,
    PRICING,
    Books,
    Shop,
    authorise,
    open_shop,
    opening,
)
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import (
    AddApp,
    Capture,
    ChangeMerchant,
    ChangeRole,
    Command,
    CreateApp,
    DecideDispute,
    Intend,
    InviteUser,
    OpenDispute,
    PayOut,
    Refund,
    ReportFraud,
    ReserveMerchant,
    RevokeApp,
    RevokeUser,
    RotateKey,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.outcomes import DoneKind, RefusalReason
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, OPERATOR, BookId, EntityId, Role
from tollgate.actors.ledger.law.webhook_law import (
    AddWebhook,
    RemoveWebhook,
    ReplaceWebhookSecret,
)

STRANGER = EntityId("a" * 24)
MEMBERS: list[Command] = [
    ChangeMerchant(name="Other"),
    AddApp(ABSENT, "", NOW_MS),
    RevokeApp(STRANGER),
    InviteUser("a@example.com"),
    RevokeUser(ABSENT),
    Capture(ABSENT, 1, None, "", None, None),
    Refund(ABSENT, 1, ""),
    Void(ABSENT, 1),
    SaveCard(ABSENT, ""),
    AddWebhook("https://hooks.example", "sealed"),
    ReplaceWebhookSecret(ABSENT, "sealed", ""),
    RemoveWebhook(ABSENT),
    ChangeRole(ABSENT, Role.READ_ONLY, is_app=True),
    authorise(1, source=ABSENT),
]
OPERATORS: list[Command] = [
    OpenDispute(ABSENT, 1, 1, "", NOW_MS, None),
    DecideDispute(ABSENT, is_won=True),
    ReportFraud(ABSENT, None, None),
    PayOut(1, ""),
]
ALL = [*MEMBERS, *OPERATORS, authorise(1)]


def may(shop: Shop, command: Command, app: EntityId) -> bool:
    """Whether access is given, whatever else comes of the order."""
    answer = shop.books.attempt(shop.book, command, app)
    return isinstance(answer, OrderEffect) or answer.kind is not RefusalReason.FORBIDDEN


@pytest.mark.parametrize("command", ALL, ids=lambda command: type(command).__name__)
@pytest.mark.parametrize("is_test", [False, True])
def test_of_a_merchant(command: Command, is_test: bool) -> None:
    shop = open_shop(is_test=is_test)
    is_customers = command == authorise(1)
    assert may(shop, command, OPERATOR)
    assert may(shop, command, NOBODY) is is_customers
    assert not may(shop, command, STRANGER)
    shop = open_shop(is_test=is_test)
    assert may(shop, command, shop.app) is (is_test or command not in OPERATORS)


def test_a_refusal_says_who_may() -> None:
    live = open_shop(is_test=False)
    assert live.refusal(PayOut(1, "")).message == "only the operator may do this to a live merchant"
    refused = live.refusal(PayOut(1, ""), STRANGER)
    assert refused.message == "the app has no access to this merchant"


@pytest.mark.parametrize("app", [NOBODY, STRANGER, OPERATOR])
def test_anybody_may_create_an_app(app: EntityId) -> None:
    assert Books().do(DIRECTORY, CreateApp("", "digest", "ab12"), app).reply.kind == DoneKind.MADE


def test_an_app_rotates_its_own_key_only() -> None:
    books = open_shop().books
    (app,) = (EntityId(document["id"]) for document in books.documents("app"))
    for stranger in (NOBODY, STRANGER):
        refused = books.attempt(DIRECTORY, RotateKey(app, "new", "cd34"), stranger)
        assert not isinstance(refused, OrderEffect)
        assert refused.kind is RefusalReason.FORBIDDEN
    books.do(DIRECTORY, RotateKey(app, "new", "cd34"), app)
    books.do(DIRECTORY, RotateKey(app, "newer", "cd34"), OPERATOR)


def test_a_merchant_is_reserved_by_an_app() -> None:
    books = Books()
    refused = books.attempt(DIRECTORY, ReserveMerchant())
    assert not isinstance(refused, OrderEffect)
    assert refused.kind is RefusalReason.FORBIDDEN
    books.do(DIRECTORY, ReserveMerchant(), STRANGER)


@pytest.mark.parametrize("app", [NOBODY, ABSENT])
def test_a_merchant_is_opened_by_its_creator(app: EntityId) -> None:
    books = Books()
    step = books.do(DIRECTORY, ReserveMerchant(), STRANGER)
    book = BookId(json.loads(step.reply.body)["merchant"]["id"])
    command = opening(STRANGER, EUR, PRICING, is_test=False)
    refused = books.attempt(book, command, app)
    assert not isinstance(refused, OrderEffect)
    assert refused.kind is RefusalReason.FORBIDDEN
    books.do(book, command, OPERATOR)
    assert books.documents("membership", book)[0]["id"] == STRANGER


def test_a_revoked_app_is_refused_at_once() -> None:
    shop = open_shop()
    shop.do(AddApp(STRANGER, "Second", NOW_MS))
    shop.do(RevokeApp(shop.app), STRANGER)
    assert shop.refusal(ChangeMerchant(name="x")).kind is RefusalReason.FORBIDDEN
    shop.do(RevokeApp(STRANGER), STRANGER)  # an app may revoke itself, the last one too
    assert shop.refusal(ChangeMerchant(name="x"), STRANGER).kind is RefusalReason.FORBIDDEN


@pytest.mark.parametrize("command", ALL, ids=lambda command: type(command).__name__)
@pytest.mark.parametrize("role", Role)
def test_a_role_does_what_it_may_and_nothing_else(command: Command, role: Role) -> None:
    shop = open_shop()
    app = EntityId("d" * 24)
    shop.do(AddApp(app, "Desk", NOW_MS, role))
    before = len(shop.books.log)
    allowed = role is Role.OWNER or (role is Role.REFUNDS and isinstance(command, Refund))
    assert may(shop, command, app) is allowed
    if not allowed:
        assert len(shop.books.log) == before
        assert role.value in shop.refusal(command, app).message
        shop.do(RevokeApp(app), app)  # (its own access any role may take away)


def test_a_role_holds_for_what_a_network_is_asked_first() -> None:
    shop = open_shop()
    shop.do(AddApp(STRANGER, "Desk", NOW_MS, Role.REFUNDS))
    assert may(shop, Intend(Refund(ABSENT, 1, ""), "acquirer"), STRANGER)
    assert not may(shop, Intend(Void(ABSENT, 1), "acquirer"), STRANGER)


def test_a_merchant_with_apps_has_an_owner_among_them() -> None:
    shop = open_shop()
    shop.do(AddApp(STRANGER, "Desk", NOW_MS, Role.READ_ONLY))
    for command in (RevokeApp(shop.app), ChangeRole(shop.app, Role.REFUNDS, is_app=True)):
        for app in (shop.app, OPERATOR):
            refused = shop.refusal(command, app)
            assert refused.kind is RefusalReason.CONSTRAINT
            assert "the last owner" in refused.message
    shop.do(ChangeRole(STRANGER, Role.OWNER, is_app=True))
    shop.do(ChangeRole(shop.app, Role.READ_ONLY, is_app=True), STRANGER)
    shop.do(RevokeApp(shop.app), shop.app)
    assert shop.refusal(ChangeRole(STRANGER, Role.REFUNDS, is_app=True), STRANGER).field == "role"


def test_a_role_is_asked_for_again_or_changed_by_name() -> None:
    shop = open_shop()
    for role in (Role.REFUNDS, None, Role.REFUNDS):
        shop.do(AddApp(STRANGER, "Desk", NOW_MS, role))
        shop.do(InviteUser("ann@example.com", role))
        (user,) = shop.books.documents("user", shop.book)
        members = {each["id"]: each for each in shop.books.documents("membership", shop.book)}
        assert members[STRANGER]["role"] == user["role"] == "refunds"
        assert "role" not in members[shop.app]
    assert shop.refusal(AddApp(STRANGER, "Desk", NOW_MS, Role.OWNER)).field == "role"
    assert shop.refusal(InviteUser("ANN@example.com", Role.OWNER)).field == "role"
    changed = ChangeRole(EntityId(user["id"]), Role.OWNER, is_app=False)
    assert len(shop.do(changed).events) == 1
    assert not shop.do(changed).events
    assert "role" not in shop.books.documents("user", shop.book)[0]
    for is_app in (True, False):
        missing = ChangeRole(ABSENT, Role.OWNER, is_app=is_app)
        assert shop.refusal(missing).kind is RefusalReason.NOT_FOUND


@pytest.mark.parametrize("command", ALL, ids=lambda command: type(command).__name__)
def test_a_merchant_that_is_not_open_is_not_found(command: Command) -> None:
    books = Books()
    for app in (STRANGER, NOBODY, OPERATOR):
        refused = books.attempt(BookId("b" * 24), command, app)
        assert not isinstance(refused, OrderEffect)
        assert refused.kind is RefusalReason.NOT_FOUND


@pytest.mark.parametrize(
    ("is_directory", "command"),
    [
        (True, authorise(1)),
        (True, opening(STRANGER, EUR, PRICING, is_test=True)),
        (False, CreateApp("", "digest", "ab12")),
        (False, ReserveMerchant()),
        (False, RotateKey(STRANGER, "digest", "ab12")),
    ],
)
def test_each_book_has_its_own_commands(is_directory: bool, command: Command) -> None:
    shop = open_shop()
    book = DIRECTORY if is_directory else shop.book
    refused = shop.books.attempt(book, command, OPERATOR)
    assert not isinstance(refused, OrderEffect)
    assert refused.kind is RefusalReason.FORBIDDEN
    assert refused.message == f"{type(command).__name__} is not for the book {book}"
