"""Notices of the card network in the book: booked once, by their references; and settlements."""

import pytest

from tests.support.ledger.books import DKK, EUR, NOW_MS, Books, Shop, open_shop
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import OpenDispute, RecordSettlement, ReportFraud
from tollgate.actors.ledger.law.notices import DAY_MS, NoticeKind, notice, settled_day_id
from tollgate.actors.ledger.law.outcomes import DoneKind, Refusal, RefusalReason
from tollgate.actors.ledger.law.values import AMOUNT_MAX, OPERATOR, BookId, EntityId, Notice
from tollgate.actors.ledger.proof.table_rebuild import WRITTEN_ONCE


def told(kind: NoticeKind, content: object = "", reference: str = "R-1") -> Notice:
    return notice(kind, "acme", reference, content)


def dispute(transaction: EntityId, amount: int, content: object = "") -> OpenDispute:
    of = told(NoticeKind.DISPUTE, content)
    return OpenDispute(transaction, amount, 10, "No goods", NOW_MS, None, of)


def settlement(shop: Shop, amount: int, reference: str = "R-1", **changes: int) -> RecordSettlement:
    day = settled_day_id(shop.book, "2025-12-31", EUR, 2)
    until_ms = changes.get("until_ms", NOW_MS)
    of = told(NoticeKind.SETTLEMENT, amount, reference)
    return RecordSettlement(of, day, "2025-12-31", until_ms, EUR, 2, amount, 500)


@pytest.fixture
def shop() -> Shop:
    return open_shop(EUR)


@pytest.fixture
def captured(shop: Shop) -> EntityId:
    transaction = shop.authorised(1_000)
    shop.capture(transaction, 1_000)
    return transaction


def log(books: Books) -> list[str]:
    return [entry.hash for entry in books.log]


def refused(shop: Shop, command: object, app: EntityId = OPERATOR) -> Refusal:
    before = log(shop.books)
    step = shop.books.attempt(shop.book, command, app)  # type: ignore[arg-type]
    assert isinstance(step, Refusal), step
    assert log(shop.books) == before
    return step


def test_a_notice_is_booked_once(shop: Shop, captured: EntityId) -> None:
    fraud = ReportFraud(captured, None, 3, told(NoticeKind.FRAUD))
    for command in (dispute(captured, 400), fraud):
        assert shop.do(command, OPERATOR).reply.kind is DoneKind.MADE
        before = log(shop.books)
        again = shop.do(command, OPERATOR)
        assert (again.events, again.reply.kind, again.reply.body) == ((), DoneKind.CHANGED, b"")
        assert log(shop.books) == before


def test_another_notice_with_the_same_reference_is_refused(shop: Shop, captured: EntityId) -> None:
    shop.do(dispute(captured, 400), OPERATOR)
    found = refused(shop, dispute(captured, 401, "else"))
    assert (found.kind, found.field) == (RefusalReason.CONSTRAINT, "reference")
    other = open_shop(EUR, books=shop.books)
    paid = other.authorised(500)
    other.capture(paid, 500)
    assert refused(other, dispute(paid, 400)).field == "reference"


def test_a_refused_notice_leaves_its_reference_free(shop: Shop, captured: EntityId) -> None:
    assert refused(shop, dispute(captured, 1_001)).field == "amount"
    assert isinstance(shop.do(dispute(captured, 1_000), OPERATOR), OrderEffect)


def test_only_the_operator_tells_what_is_in_files(shop: Shop, captured: EntityId) -> None:
    for command in (
        dispute(captured, 400),
        ReportFraud(captured, None, None, told(NoticeKind.FRAUD)),
        settlement(shop, 500),
    ):
        assert refused(shop, command, shop.app).kind is RefusalReason.FORBIDDEN


def test_settlements_of_a_day_add_up_and_move_nothing(shop: Shop) -> None:
    accounts = shop.books.head(shop.book)
    assert accounts is not None
    for reference, amount in (("S-1", 700), ("S-2", -50)):
        step = shop.do(settlement(shop, amount, reference), OPERATOR)
        assert all(not entry.postings for entry in step.entries)
        assert step.head.accounts == accounts.accounts
    second, first = sorted(
        shop.books.documents("settlement", shop.book), key=lambda each: each["amount"]
    )
    assert (first["settled"], first["expected"], first["difference"]) == (700, 500, 200)
    assert (second["settled"], second["expected"], second["difference"]) == (650, 500, 150)


def test_a_settlement_of_a_day_that_is_not_over_is_refused(shop: Shop) -> None:
    command = settlement(shop, 500, until_ms=shop.books.now_ms + DAY_MS)
    assert refused(shop, command).field == "day"


def test_settlements_stay_within_what_json_holds(shop: Shop) -> None:
    assert refused(shop, settlement(shop, AMOUNT_MAX + 1)).field == "amount"
    assert refused(shop, settlement(shop, -AMOUNT_MAX)).field == "amount"
    shop.do(settlement(shop, AMOUNT_MAX), OPERATOR)
    assert refused(shop, settlement(shop, 1, "S-2")).field == "amount"


def test_ids_tell_kinds_networks_and_references_apart() -> None:
    ids = {
        notice(kind, network, reference).id
        for kind in NoticeKind
        for network, reference in (("a", "bc"), ("ab", "c"), ("", "abc"))
    }
    assert len(ids) == 9
    books = (BookId("1" * 24), BookId("2" * 24))
    assert len({settled_day_id(book, "2026-01-01", DKK, 2) for book in books}) == 2
    assert "settlement" in WRITTEN_ONCE
