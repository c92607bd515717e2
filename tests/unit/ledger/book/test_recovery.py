"""An app whose key was lost or stolen is its owner's again (part D, Recovery)."""

import pytest

from tests.support.ledger.books import Books, Shop, open_shop
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import (
    Command,
    CreateApp,
    RecoverApp,
    ReplaceRecoveryCode,
    RotateKey,
)
from tollgate.actors.ledger.law.outcomes import Refusal, RefusalReason
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, OPERATOR, EntityId

DAY_MS = 86_400_000


@pytest.fixture
def shop() -> Shop:
    return open_shop()


@pytest.fixture
def books() -> Books:
    return Books()


def recovery(app: EntityId, presented: str, digest: str = "new", code: str = "") -> RecoverApp:
    return RecoverApp(app, presented, digest, digest[-4:], code)


def attempt(books: Books, command: Command, by: EntityId = NOBODY) -> OrderEffect | Refusal:
    return books.attempt(DIRECTORY, command, by)


def test_a_thief_who_rotates_twice_is_locked_out_again(shop: Shop) -> None:
    for number in (1, 2):
        rotation = RotateKey(shop.app, f"thief-{number}", "ab12")
        shop.books.do(DIRECTORY, rotation, shop.app)
    assert set(shop.books.live_keys) == {"thief-1", "thief-2"}
    made = attempt(shop.books, recovery(shop.app, "recovery", "owner"))
    assert isinstance(made, OrderEffect)
    assert set(shop.books.live_keys) == {"owner"}
    # The code is what it was: a reply that is lost locks nobody out.
    assert isinstance(attempt(shop.books, recovery(shop.app, "recovery", "again")), OrderEffect)
    assert set(shop.books.live_keys) == {"again"}


@pytest.mark.parametrize("presented", ["", "guess", "digest-0"])
@pytest.mark.parametrize("by", [NOBODY, EntityId("a" * 24)])
def test_it_takes_the_code(shop: Shop, presented: str, by: EntityId) -> None:
    keys = set(shop.books.live_keys)
    refused = attempt(shop.books, recovery(shop.app, presented), by)
    unknown = attempt(shop.books, recovery(EntityId("f" * 24), presented), by)
    assert isinstance(refused, Refusal)
    assert refused.kind is RefusalReason.FORBIDDEN
    assert refused == unknown, "nobody learns which apps there are"
    assert set(shop.books.live_keys) == keys


def test_the_key_is_no_way_to_another_code(shop: Shop) -> None:
    refused = attempt(shop.books, recovery(shop.app, "", code="thief's"), shop.app)
    assert isinstance(refused, Refusal)


def replacement(app: EntityId, presented: str = "recovery", key: str = "first") -> Command:
    return ReplaceRecoveryCode(app, presented, key, "second code")


@pytest.fixture
def app(books: Books) -> EntityId:
    """With the code `recovery`; it is a minute old."""
    created = books.do(DIRECTORY, CreateApp("", "first", "ab12", "recovery")).entities
    books.now_ms += 60_000
    return next(iter(created))


def test_the_code_is_replaced_by_the_code_and_a_key(books: Books, app: EntityId) -> None:
    made = attempt(books, replacement(app), app)
    assert isinstance(made, OrderEffect)
    document = books.tables["app", DIRECTORY, app].document
    assert made.reply.body == f'{{"app":{document}}}'.encode()
    refused = attempt(books, recovery(app, "recovery"))
    assert isinstance(refused, Refusal), "the code before opens nothing"
    assert isinstance(attempt(books, recovery(app, "second code")), OrderEffect)


@pytest.mark.parametrize("presented", ["", "guess", "first"])
def test_a_stolen_key_is_no_way_to_the_code(books: Books, app: EntityId, presented: str) -> None:
    books.now_ms += 10 * DAY_MS
    refused = attempt(books, replacement(app, presented), app)
    assert isinstance(refused, Refusal)
    assert refused.message == "this is not the recovery code of this app"


@pytest.mark.parametrize("by", [NOBODY, EntityId("a" * 24)])
def test_a_code_takes_a_key_of_its_app(books: Books, app: EntityId, by: EntityId) -> None:
    refused = attempt(books, replacement(app), by)
    assert isinstance(refused, Refusal)
    assert refused.kind is RefusalReason.FORBIDDEN


def test_who_found_the_code_cannot_lock_the_owner_out_in_a_day(books: Books, app: EntityId) -> None:
    books.now_ms += 10 * DAY_MS
    assert isinstance(attempt(books, recovery(app, "recovery", "thief")), OrderEffect)
    for _ in range(2):
        refused = attempt(books, replacement(app, key="thief"), app)
        assert isinstance(refused, Refusal)
        assert "younger than a day" in refused.message
        books.now_ms += DAY_MS - 10_000
        # The owner's own key has ended, and they take the way back.
        assert isinstance(attempt(books, recovery(app, "recovery", "owner")), OrderEffect)
        refused = attempt(books, replacement(app, key="thief"), app)
        assert isinstance(refused, Refusal)
        assert refused.message == "the key was ended meanwhile"
        assert isinstance(attempt(books, recovery(app, "recovery", "thief")), OrderEffect)
    books.now_ms += DAY_MS + 1_000
    assert isinstance(attempt(books, replacement(app, key="thief"), app), OrderEffect)


def test_a_clock_far_ahead_makes_no_key_older(books: Books, app: EntityId) -> None:
    assert isinstance(attempt(books, recovery(app, "recovery", "thief")), OrderEffect)
    books.now_ms += 365 * DAY_MS
    books.do(DIRECTORY, CreateApp("", "of another app", "ab12"))
    books.now_ms -= 365 * DAY_MS
    refused = attempt(books, replacement(app, key="thief"), app)
    assert isinstance(refused, Refusal)
    assert "younger than a day" in refused.message
    books.now_ms += DAY_MS
    assert isinstance(attempt(books, replacement(app, key="thief"), app), OrderEffect)


def test_without_a_code_there_is_none_to_replace(books: Books) -> None:
    (app,) = books.do(DIRECTORY, CreateApp("", "first", "ab12")).entities
    refused = attempt(books, replacement(app, ""), app)
    assert isinstance(refused, Refusal)
    assert refused.message == "this app has no recovery code: the operator makes one"


def test_an_app_without_a_code_has_the_operator() -> None:
    books = Books()
    (app,) = books.do(DIRECTORY, CreateApp("", "lost", "ab12")).entities
    refused = attempt(books, recovery(app, ""))
    assert isinstance(refused, Refusal)
    made = attempt(books, recovery(app, "", "issued", "code"), OPERATOR)
    assert isinstance(made, OrderEffect)
    assert set(books.live_keys) == {"issued"}
    assert books.log[-1].origin.startswith('{"app":"operator"')
    assert isinstance(attempt(books, recovery(app, "code", "own")), OrderEffect)
    absent = attempt(books, recovery(EntityId("f" * 24), "", "x"), OPERATOR)
    assert isinstance(absent, Refusal)
    assert absent.kind is RefusalReason.NOT_FOUND


def test_the_operators_code_takes_the_place_of_the_one_before(shop: Shop) -> None:
    made = attempt(shop.books, recovery(shop.app, "", "issued", "other"), OPERATOR)
    assert isinstance(made, OrderEffect)
    assert isinstance(attempt(shop.books, recovery(shop.app, "recovery")), Refusal)
    assert isinstance(attempt(shop.books, recovery(shop.app, "other")), OrderEffect)
