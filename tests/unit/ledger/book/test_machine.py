"""The machine as a whole: what is needed, refused, written, and said to have happened."""

import json

import pytest

from tests.support.ledger.books import (
    ABSENT,
    CARD,
    DECLINED,
    EUR,
    FREE,
    NOW_MS,
    Books,
    Shop,
    authorise,
    open_shop,
    opening,
)
from tollgate.actors.ledger.book.machine import OrderEffect, execute, needs, rows
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Capture,
    Command,
    DecideDispute,
    InviteUser,
    OpenDispute,
    PayOut,
    Refund,
    ReportFraud,
    RotateKey,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.outcomes import DoneKind, ErrorCode, RefusalReason
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.law.values import (
    OPERATOR,
    CardBrand,
    CardSummary,
    EntityId,
    ProcessingError,
)
from tollgate.actors.ledger.law.webhook_law import AddWebhook


@pytest.fixture
def shop() -> Shop:
    return open_shop(pricing=FREE)


def test_what_a_command_needs(shop: Shop) -> None:
    transaction = shop.captured(300)
    dispute = shop.disputed(transaction, 100)
    assert needs(InviteUser("ann@example.com"), {}) == frozenset()
    assert needs(authorise(1), {}) == frozenset()
    assert needs(authorise(1, source=transaction), {}) == {transaction}
    assert needs(Void(transaction, 1), {}) == {transaction}
    assert needs(Void(transaction, 1), {transaction: None}) == frozenset()
    assert needs(RotateKey(ABSENT, "", ""), {}) == {ABSENT}
    decide = DecideDispute(dispute, is_won=True)
    assert needs(decide, {}) == {dispute}
    assert needs(decide, {dispute: None}) == frozenset()
    assert needs(decide, {dispute: shop.books.entity(dispute)}) == {transaction}


def test_the_same_order_gives_the_same_step(shop: Shop) -> None:
    transaction = shop.authorised(300)
    order = shop.books.order(shop.book, Void(transaction, 300), shop.app)
    entities = {transaction: shop.books.entity(transaction)}
    head = shop.books.head(shop.book)
    first, second = (execute(head, entities, order, NOW_MS) for _ in range(2))
    assert isinstance(first, OrderEffect)
    assert first == second
    assert entities == {transaction: shop.books.entity(transaction)}
    assert head == shop.books.head(shop.book)


def test_what_a_commit_writes(shop: Shop) -> None:
    transaction = shop.authorised(300)
    command = Capture(transaction, 100, EUR, "", None, None)
    order = shop.books.order(
        shop.book, command, shop.app, idempotency_key="key", fingerprint="print"
    )
    entities = {transaction: shop.books.entity(transaction)}
    head = shop.books.head(shop.book)
    step = execute(head, entities, order, NOW_MS)
    assert isinstance(step, OrderEffect)
    commit = rows(order, step)
    (entry,) = commit.entries
    assert head is not None
    assert (entry.book, entry.seq, entry.at_ms) == (shop.book, head.seq + 1, head.at_ms + 1)
    assert (entry.kind, entry.operation) == ("transaction.captured", order.operation)
    assert json.loads(entry.origin) == {
        "app": shop.app,
        "key_last4": "ab12",
        "address": "192.0.2.1",
        "request_id": order.origin.request_id,
        "idempotency_key": "key",
    }
    assert [row.kind for row in commit.entities] == ["transaction", "line", "merchant", "event"]
    assert [row.transaction for row in commit.entities] == [None, transaction, None, None]
    assert [row.is_test for row in commit.entities] == [True, True, True, None]
    assert [row.is_successful for row in commit.entities] == [True, None, None, None]
    (head_row,) = commit.heads
    assert (head_row.seq, head_row.hash) == (entry.seq, entry.hash)
    (operation,) = commit.operations
    assert (operation.operation, operation.app, operation.book) == (
        order.operation,
        shop.app,
        shop.book,
    )
    assert (operation.key, operation.fingerprint) == ("key", "print")
    assert (operation.done, operation.body, operation.at_ms) == (
        201,
        step.reply.body,
        entry.at_ms,
    )


def test_what_was_so_already_writes_its_operation_only(shop: Shop) -> None:
    shop.do(InviteUser("ann@example.com"))
    order = shop.books.order(shop.book, InviteUser("ann@example.com"), shop.app)
    step = execute(shop.books.head(shop.book), {}, order, NOW_MS + 1_000)
    assert isinstance(step, OrderEffect)
    commit = rows(order, step)
    (operation,) = commit.operations
    assert commit == Commit(operations=[operation])
    assert (operation.done, operation.body) == (DoneKind.MADE, b'{"isMember":true}')


def test_a_reply_is_the_next_read(shop: Shop) -> None:
    transaction = shop.authorised(300)
    for command in (
        Capture(transaction, 200, None, "", None, None),
        Refund(transaction, 50, ""),
        Void(transaction, 100),
    ):
        step = shop.do(command)
        assert step.reply.kind == DoneKind.MADE
        (row,) = (row for row in shop.books.tables.values() if row.id == transaction)
        assert step.reply.body.decode() == f'{{"transaction":{row.document}}}'


def test_what_is_made_is_answered_with_201(shop: Shop) -> None:
    transaction = shop.captured(300)
    disputed = OpenDispute(transaction, 100, 4837, "No authorisation", NOW_MS, None)
    dispute = max(shop.do(disputed, OPERATOR).entities)
    commands: list[tuple[Command, str]] = [
        (authorise(300), "transaction"),
        (SaveCard(transaction, ""), "card"),
        (OpenDispute(transaction, 1, 4837, "", NOW_MS, None), "dispute"),
        (DecideDispute(dispute, is_won=True), "dispute"),
        (ReportFraud(transaction, None, None), "fraud"),
        (PayOut(1, ""), "line"),
        (AddWebhook("https://hooks.example", "sealed"), "webhook"),
    ]
    for command, name in commands:
        reply = shop.do(command, OPERATOR).reply
        assert (reply.kind, reply.is_replay) == (DoneKind.MADE, False)
        assert json.loads(reply.body).keys() == {name}


def test_an_opened_merchant_is_answered_with_its_document() -> None:
    shop = open_shop()
    books = Books()
    step = books.do(shop.book, opening(shop.app, EUR, FREE, is_test=True), shop.app)
    assert step.reply.kind == DoneKind.MADE
    document = books.document("merchant", shop.book)
    assert json.loads(step.reply.body) == {"merchant": document}


def test_a_checked_order_has_lost_a_race(shop: Shop) -> None:
    transaction = shop.authorised(300)
    command = Capture(transaction, 300, None, "", None, None)
    shop.do(command, is_checked=True)
    assert shop.refusal(command).kind is RefusalReason.CONSTRAINT
    lost = shop.refusal(command, is_checked=True)
    assert lost.kind is RefusalReason.LOST_RACE
    assert lost.message == "300 is more than the 0 that may still be captured"
    absent = Capture(ABSENT, 300, None, "", None, None)
    assert shop.refusal(absent, is_checked=True).kind is RefusalReason.NOT_FOUND


@pytest.mark.parametrize(
    ("later_ms", "amount", "key", "is_suspected"),
    [
        (2, 100, "", True),
        (60_000, 100, "", True),
        (60_001, 100, "", False),
        (2, 99, "", False),
        (2, 100, "another key", False),
    ],
)
def test_an_equal_capture_soon_after_is_suspected(
    shop: Shop, later_ms: int, amount: int, key: str, is_suspected: bool
) -> None:
    transaction = shop.authorised(300)
    shop.capture(transaction, 100)
    shop.do(Void(transaction, 1))
    shop.books.now_ms = shop.transaction(transaction).trail[0].at_ms + later_ms
    command = Capture(transaction, amount, None, "", None, None)
    step = shop.do(command, idempotency_key=key)
    assert shop.transaction(transaction).captured == 100 + amount
    assert shop.event_types()[-1] == (
        "transaction.possible_duplicate" if is_suspected else "transaction.captured"
    )
    if is_suspected:
        first, second = step.entries
        assert (first.seq + 1, first.at_ms + 1) == (second.seq, second.at_ms)
        earlier, later = shop.lines
        assert shop.books.documents("event")[-1]["data"] == {
            "transactionId": transaction,
            "lineId": later["id"],
            "earlierLineId": earlier["id"],
            "currency": "EUR",
            "amount": 100,
        }


def test_equal_captures_of_two_transactions_are_not_suspected(shop: Shop) -> None:
    for transaction in (shop.authorised(100), shop.authorised(100)):
        shop.capture(transaction, 100)
    assert "transaction.possible_duplicate" not in shop.event_types()


def test_one_event_per_change_in_order(shop: Shop) -> None:
    transaction = shop.authorised(300)
    shop.capture(transaction, 200)
    shop.do(Void(transaction, 100))
    assert shop.event_types() == [
        "merchant.opened",
        "transaction.created",
        "transaction.captured",
        "transaction.voided",
    ]
    events = shop.books.documents("event", shop.book)
    assert [event["seq"] for event in events] == [1, 2, 3, 4]


def test_a_recurring_transaction_from_a_transaction_and_from_a_card(shop: Shop) -> None:
    original = shop.authorised(300)
    (card, *_) = shop.do(SaveCard(original, "of Ann")).entities
    for source, is_source_card in ((original, False), (card, True)):
        command = authorise(500, source=source, is_source_card=is_source_card)
        step = shop.do(command)
        (transaction,) = step.entities
        assert json.loads(step.reply.body) == {"transaction": {"id": transaction}}
        assert shop.books.document("transaction", transaction)["recurring"] is True
        assert shop.transaction(transaction).source == source
    assert shop.books.document("transaction", original)["recurring"] is False


@pytest.mark.parametrize(("is_source_card", "field"), [(False, "transactionId"), (True, "cardId")])
def test_a_source_is_of_this_merchant(shop: Shop, is_source_card: bool, field: str) -> None:
    other = open_shop(books=shop.books)
    transaction = other.authorised(300)
    (card, *_) = other.do(SaveCard(transaction, "")).entities
    mine = shop.authorised(300)
    for source in (transaction, card, ABSENT, mine if is_source_card else ABSENT):
        refused = shop.refusal(authorise(1, source=source, is_source_card=is_source_card))
        assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, field)
        assert "is not one of this merchant's" in refused.message


def test_a_failed_transaction_is_no_source(shop: Shop) -> None:
    failed = shop.authorised(300, error=DECLINED)
    refused = shop.refusal(authorise(1, source=failed))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "transactionId")
    assert "was not successful" in refused.message
    refused = shop.refusal(SaveCard(failed, ""))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "transactionId")
    assert shop.refusal(SaveCard(ABSENT, "")).field == "transactionId"


def test_a_source_is_charged_with_its_own_card(shop: Shop) -> None:
    other = CardSummary("420000", "1111", CARD.expiry_ms, CardBrand.MASTERCARD, has_code=False)
    refused = shop.refusal(authorise(1, source=shop.authorised(300), card=other))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "transactionId")


def test_an_expired_card_is_not_charged_again(shop: Shop) -> None:
    original = shop.authorised(300)
    shop.books.now_ms = CARD.expiry_ms
    shop.do(authorise(1, source=original))
    shop.books.now_ms += 1
    refused = shop.refusal(authorise(1, source=original))
    assert (refused.kind, refused.code) == (RefusalReason.PROCESSING, ErrorCode.CARD_EXPIRED)
    expired = ProcessingError(6, "Card expired", True, False)
    assert (
        shop.do(authorise(1, source=original, error=expired)).reply.kind == DoneKind.ATTEMPT_FAILED
    )


def test_a_failed_attempt_is_stored_and_answered_with_its_error(shop: Shop) -> None:
    error = ProcessingError(8, "Declined", True, False, text="Ask your bank.")
    step = shop.do(authorise(300, error=error), shop.app)
    (transaction,) = step.entities
    assert step.reply.kind == DoneKind.ATTEMPT_FAILED
    assert json.loads(step.reply.body) == {
        "code": 8,
        "message": "Declined",
        "text": "Ask your bank.",
        "client": True,
        "merchant": False,
        "response": {"transaction": {"id": transaction}},
    }
    (row,) = (row for row in shop.books.tables.values() if row.id == transaction)
    assert row.is_successful is False


def test_a_text_that_is_missing_is_the_message(shop: Shop) -> None:
    step = shop.do(authorise(300, error=DECLINED))
    assert json.loads(step.reply.body)["text"] == DECLINED.message


@pytest.mark.parametrize("reason", [None, 0, 8])
def test_a_fraud_has_a_reason_of_the_table(shop: Shop, reason: int | None) -> None:
    transaction = shop.authorised(300)
    step = shop.do(ReportFraud(transaction, None, reason), OPERATOR)
    document = json.loads(step.reply.body)["fraud"]
    assert document == shop.books.document("fraud", document["id"])
    for wrong in (-1, 9):
        refused = shop.refusal(ReportFraud(transaction, None, wrong))
        assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "reason")
    assert shop.refusal(ReportFraud(ABSENT, None, None)).kind is RefusalReason.NOT_FOUND


def test_an_order_goes_to_its_own_book(shop: Shop) -> None:
    other = open_shop(books=shop.books)
    order = shop.books.order(other.book, InviteUser("ann@example.com"), shop.app)
    with pytest.raises(AssertionError, match="its own book"):
        execute(shop.books.head(shop.book), {}, order, NOW_MS)


def test_a_descriptor_falls_back_to_the_transactions_and_the_merchants(shop: Shop) -> None:
    own = Authorise(EUR, 2, 300, CARD, "OWN", "", None)
    ids: list[EntityId] = []
    for command in (authorise(300), own):
        (transaction,) = shop.do(command, shop.app).entities
        ids.append(transaction)
        shop.do(Capture(transaction, 100, None, "", None, None))
        shop.do(Capture(transaction, 101, None, "CAPTURE", None, None))
        shop.do(Refund(transaction, 1, ""))
        shop.do(Refund(transaction, 1, "REFUND"))
        shop.do(Void(transaction, 1))
    for transaction, fallback in zip(ids, ("SHOP", "OWN"), strict=True):
        assert shop.transaction(transaction).descriptor == fallback
        assert [action.descriptor for action in shop.transaction(transaction).trail] == [
            fallback,
            "CAPTURE",
            fallback,
            "REFUND",
            fallback,
        ]


def test_orders_of_different_books_do_not_meet() -> None:
    def run(order_of_books: str) -> list[object]:
        shop = open_shop()
        shops = {"a": shop, "b": open_shop(books=shop.books)}
        shop.books.operations = 1_000
        for name in order_of_books:
            shops[name].books.operations = 2_000  # operation ids are part of what is hashed
            transaction = shops[name].authorised(100)
            shops[name].capture(transaction, 60)
        return [shop.books.head(each.book) for each in shops.values()]

    assert run("aabb") == run("abab") == run("bbaa")
