"""Imports in the books: another command, with an id that was given."""

from dataclasses import replace

import pytest

from tests.support.ledger.books import CARD, EUR, FREE, NOW_MS, Books
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Capture,
    CreateApp,
    Import,
    OpenMerchant,
    PayOut,
    Refund,
    SaveCard,
)
from tollgate.actors.ledger.law.outcomes import Refusal, RefusalReason
from tollgate.actors.ledger.law.values import DIRECTORY, OPERATOR, BookId, EntityId

APP = EntityId("555eca95ed59804d2cf12b11")
BOOK = BookId("55006bdfe0308c4cbfdbd0e1")
TRANSACTION = EntityId("560fd96b7973ff3d2362a78c")
LINE = EntityId("560fd97a7973ff3d2362a78d")
SECOND_LINE = EntityId("560fd97a7973ff3d2362a78e")
CARD_ID = EntityId("560fdc007973ff3d2362a793")
OPENING = OpenMerchant(
    public_key="public",
    name="",
    currency=EUR,
    is_test=True,
    email="shop@example.com",
    website="example.com",
    descriptor="Shop",
    company_country="DK",
    company_number="",
    iban="",
    pricing=FREE,
    creator=APP,
    creator_name="",
    creator_created_ms=NOW_MS,
)
AUTHORISE = Authorise(EUR, 2, 1_000, CARD, "", "", None)
CAPTURE = Capture(TRANSACTION, 400, None, "", None, None)


def books(*, is_test: bool = True) -> Books:
    found = Books()
    found.do(BOOK, replace(OPENING, is_test=is_test), OPERATOR)
    return found


def with_transaction() -> Books:
    found = books()
    found.do(BOOK, Import(AUTHORISE, TRANSACTION), OPERATOR)
    return found


def refusal(found: object) -> Refusal:
    assert isinstance(found, Refusal), found
    return found


def test_an_app_gets_the_id_that_it_has() -> None:
    found = Books()
    step = found.do(DIRECTORY, Import(CreateApp("Shop", "digest", "2923"), APP), OPERATOR)
    assert ("app", DIRECTORY, APP) in found.tables
    assert found.live_keys["digest"].app == APP
    assert b'"id":"555eca95ed59804d2cf12b11"' in step.reply.body


def test_what_a_merchant_has_gets_the_ids_that_it_has() -> None:
    found = with_transaction()
    found.do(BOOK, Import(CAPTURE, LINE), OPERATOR)
    found.do(BOOK, Import(Refund(TRANSACTION, 100, ""), SECOND_LINE), OPERATOR)
    found.do(BOOK, Import(SaveCard(TRANSACTION, ""), CARD_ID), OPERATOR)
    found.do(BOOK, Import(PayOut(300, ""), EntityId("560fdd007973ff3d2362a794")), OPERATOR)
    kinds = {entity: kind for kind, _, entity in found.tables}
    assert kinds[TRANSACTION] == "transaction"
    assert kinds[LINE] == kinds[SECOND_LINE] == "line"
    assert kinds[CARD_ID] == "card"
    head = found.head(BOOK)
    assert head is not None
    assert head.accounts["merchant:EUR"] == 0


def test_the_trail_names_the_given_line_and_the_reply_the_given_id() -> None:
    found = with_transaction()
    step = found.do(BOOK, Import(CAPTURE, LINE), OPERATOR)
    assert f'"lineId":"{LINE}"'.encode() in step.reply.body
    assert f'"id":"{TRANSACTION}"'.encode() in step.reply.body


def test_events_keep_ids_of_the_books_own_which_rise() -> None:
    found = with_transaction()
    found.do(BOOK, Import(CAPTURE, LINE), OPERATOR)
    found.do(BOOK, AUTHORISE, OPERATOR)
    events = sorted(entity for kind, _, entity in found.tables if kind == "event")
    assert len(events) == 4
    assert all(event > LINE for event in events)
    transactions = [entity for kind, _, entity in found.tables if kind == "transaction"]
    assert min(transactions) == TRANSACTION, "new ones come after imported ones"


@pytest.mark.parametrize("app", [APP, EntityId("")])
def test_nobody_but_the_operator_imports(app: EntityId) -> None:
    found = books()
    before = found.head(BOOK)
    refused = refusal(found.attempt(BOOK, Import(AUTHORISE, TRANSACTION), app))
    assert refused.kind is RefusalReason.FORBIDDEN
    assert found.head(BOOK) == before


def test_nothing_is_imported_into_a_live_merchants_book() -> None:
    found = books(is_test=False)
    refused = refusal(found.attempt(BOOK, Import(AUTHORISE, TRANSACTION), OPERATOR))
    assert refused.kind is RefusalReason.FORBIDDEN
    assert len(found.log) == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (TRANSACTION, "there is an entity"),
        (EntityId("560FD96B7973FF3D2362A78C"), "no id"),
        (EntityId("560fd96b"), "no id"),
        (EntityId("ffffffff7973ff3d2362a78c"), "of the future"),
    ],
)
def test_an_id_that_cannot_be_given_is_refused(given: EntityId, why: str) -> None:
    found = with_transaction()
    entries = len(found.log)
    refused = refusal(found.attempt(BOOK, Import(AUTHORISE, given), OPERATOR))
    assert refused.kind is RefusalReason.CONSTRAINT
    assert refused.field == "id"
    assert why in refused.message
    assert len(found.log) == entries


@pytest.mark.parametrize("what", ["a line", "an event", "the merchant"])
def test_an_id_that_is_only_read_is_taken_too(what: str) -> None:
    found = with_transaction()
    found.do(BOOK, Import(CAPTURE, LINE), OPERATOR)
    event = next(entity for kind, _, entity in found.tables if kind == "event")
    given = {"a line": LINE, "an event": event, "the merchant": EntityId(BOOK)}[what]
    for command in (CAPTURE, Refund(TRANSACTION, 10, ""), PayOut(10, "")):
        refused = refusal(found.attempt(BOOK, Import(command, given), OPERATOR))
        assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "id")
    (line,) = found.documents("line", BOOK)
    assert line["balance"] == found.document("merchant", BOOK)["balance"] == 400


def test_what_the_law_refuses_is_refused_in_an_import_too() -> None:
    found = with_transaction()
    too_much = replace(CAPTURE, amount=1_001)
    refused = refusal(found.attempt(BOOK, Import(too_much, LINE), OPERATOR))
    assert refused.field == "amount"
    for command in (AUTHORISE, CreateApp("", "digest", "2923")):
        other = DIRECTORY if command is AUTHORISE else BOOK
        refused = refusal(found.attempt(other, Import(command, CARD_ID), OPERATOR))
        assert refused.kind is RefusalReason.FORBIDDEN
