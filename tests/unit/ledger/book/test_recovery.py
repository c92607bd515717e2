"""An app whose key was lost or stolen is its owner's again (part D, Recovery)."""

import pytest

from tests.support.ledger.books import Books, Shop, open_shop
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import CreateApp, RecoverApp, RotateKey
from tollgate.actors.ledger.law.outcomes import Refusal, RefusalReason
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, OPERATOR, EntityId


@pytest.fixture
def shop() -> Shop:
    return open_shop()


def recovery(app: EntityId, presented: str, digest: str = "new", code: str = "") -> RecoverApp:
    return RecoverApp(app, presented, digest, digest[-4:], code)


def attempt(books: Books, command: RecoverApp, by: EntityId = NOBODY) -> OrderEffect | Refusal:
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
