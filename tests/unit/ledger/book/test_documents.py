"""The documents of the wire, whole."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.ledger.books import (
    CARD,
    DECLINED,
    DKK,
    EUR,
    FREE,
    NOW_MS,
    PRICING,
    USD,
    Books,
    Shop,
    authorise,
    open_shop,
    opening,
    rate,
)
from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Capture,
    DecideDispute,
    OpenDispute,
    PayOut,
    Refund,
    ReportFraud,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.values import (
    OPERATOR,
    Advice,
    CardBrand,
    CardSummary,
    EntityId,
    Price,
    Pricing,
    ProcessingError,
)

CREATED = "2026-01-01T00:00:00.000Z"
CARD_DOCUMENT = {
    "bin": "410000",
    "last4": "0000",
    "expiry": "2029-12-31T23:59:59.999Z",
    "scheme": "visa",
}


@pytest.fixture
def shop() -> Shop:
    return open_shop()


def after(shop: Shop, milliseconds: int) -> str:
    return moment(shop.books.now_ms + milliseconds)


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (1_772_271_000_000, "2026-02-28T09:30:00.000Z"),
        (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
    ],
)
def test_moments_are_written_in_milliseconds(at_ms: int, expected: str) -> None:
    assert moment(at_ms) == expected


def test_a_merchant_s_document_is_whole() -> None:
    shop = open_shop(DKK)
    document = shop.books.document("merchant", shop.book)
    assert document == {
        "id": shop.book,
        "key": "key-of-the-shop",
        "currency": "DKK",
        "test": True,
        "email": "shop@example.com",
        "website": "shop.example",
        "descriptor": "SHOP",
        "company": {"country": "DK"},
        "bank": {},
        "created": CREATED,
        "balance": 0,
        "claim": {
            "canChargeCard": True,
            "canSaveCard": True,
            "canTransferToCard": False,
            "canCapture": True,
            "canRefund": True,
            "canVoid": True,
        },
        "pricing": {
            "rate": 0.0145,
            "flat": {"currency": "EUR", "amount": 25},
            "dispute": {"currency": "EUR", "amount": 2_500},
        },
        "tds": {"mode": "attempt"},
    }


def test_a_merchant_with_all_there_is() -> None:
    shop = open_shop()
    books = Books()
    command = opening(shop.app, EUR, PRICING, is_test=False)
    whole = type(command)(
        **{
            **{name: getattr(command, name) for name in command.__dataclass_fields__},
            "name": "Søstrene “S”",
            "company_number": "12345678",
            "iban": "DK5000400440116243",
        }
    )
    step = books.do(shop.book, whole, shop.app)
    document = books.document("merchant", shop.book)
    assert json.loads(step.reply.body) == {"merchant": document}
    assert document["name"] == "Søstrene “S”"
    assert "Søstrene “S”".replace("“", "“").encode() in step.reply.body
    assert document["company"] == {"country": "DK", "number": "12345678"}
    assert document["bank"] == {"iban": "DK5000400440116243"}
    assert document["test"] is False
    (row,) = (row for row in books.tables.values() if row.kind == "merchant")
    assert row.public_key == "key-of-the-shop"


def test_a_transaction_and_its_trail(shop: Shop) -> None:
    command = Authorise(EUR, 2, 10_000, CARD, "", '{"order":"Ø 17","n":[1,{}]}', None, "full")
    (transaction,) = shop.do(command, EntityId("")).entities
    shop.do(Capture(transaction, 8_000, EUR, "FIRST", None, None))
    shop.do(Refund(transaction, 1_000, ""))
    shop.do(Void(transaction, 500))
    won = shop.disputed(transaction, 300)
    shop.do(DecideDispute(won, is_won=True))
    lost = shop.disputed(transaction, 200)
    shop.do(DecideDispute(lost, is_won=False))
    lines = [line["id"] for line in shop.lines]
    assert shop.books.document("transaction", transaction) == {
        "id": transaction,
        "merchantId": shop.book,
        "test": True,
        "created": after(shop, 1),
        "currency": "EUR",
        "amount": 10_000,
        "descriptor": "SHOP",
        "pendingAmount": 1_500,
        "capturedAmount": 8_000,
        "refundedAmount": 1_000,
        "voidedAmount": 500,
        "disputedAmount": 200,
        "card": {**CARD_DOCUMENT, "code": {"present": True}},
        "tds": "full",
        "custom": {"order": "Ø 17", "n": [1, {}]},
        "recurring": False,
        "successful": True,
        "error": False,
        "trail": [
            {
                "capture": True,
                "created": after(shop, 2),
                "amount": 8_000,
                "balance": 8_000 - 25 - 116,
                "fee": {"flat": 25, "rate": 116},
                "descriptor": "FIRST",
                "lineId": lines[0],
            },
            entry(shop, 3, 1_000, -1_000, lines[1], refund=True),
            entry(shop, 4, 500, 0, None, void=True),
            {
                **entry(shop, 5, 300, -300 - 2_500, lines[2], dispute={"id": won}),
                "fee": {"flat": 2_500, "rate": 0},
            },
            entry(shop, 6, 300, 300, lines[3], dispute={"id": won, "won": True}),
            {
                **entry(shop, 7, 200, -200 - 2_500, lines[4], dispute={"id": lost}),
                "fee": {"flat": 2_500, "rate": 0},
            },
            entry(shop, 8, 200, 0, lines[5], dispute={"id": lost, "lost": True}),
        ],
    }


def entry(
    shop: Shop, milliseconds: int, amount: int, balance: int, line: str | None, **kind: Any
) -> dict[str, Any]:
    """A trail entry with the transaction's descriptor and without a fee."""
    return {
        **kind,
        "created": after(shop, milliseconds),
        "amount": amount,
        "balance": balance,
        "fee": {"flat": 0, "rate": 0},
        "descriptor": "SHOP",
        **({} if line is None else {"lineId": line}),
    }


def test_a_failed_attempt(shop: Shop) -> None:
    card = CardSummary("420000", "1111", CARD.expiry_ms, CardBrand.MASTERCARD, has_code=False)
    (transaction,) = shop.do(authorise(700, error=DECLINED, card=card)).entities
    document = shop.books.document("transaction", transaction)
    assert document["successful"] is False
    assert document["error"] == {
        "code": 8,
        "message": "Declined by the cardholder's bank",
        "client": True,
        "merchant": False,
    }
    assert document["card"]["scheme"] == "mastercard"
    assert document["card"]["code"] == {"present": False}
    assert document["trail"] == []
    assert document["amount"] == 700
    states = ("pending", "captured", "refunded", "voided", "disputed")
    assert [document[f"{state}Amount"] for state in states] == [0] * 5
    assert not {"tds", "custom", "advice"} & document.keys()


def test_a_server_is_advised_whether_to_try_again(shop: Shop) -> None:
    later = ProcessingError(7, "Insufficient funds", True, False, "", Advice(24, 2, "Later."))
    never = ProcessingError(10, "Card rejected", True, False, "", Advice(0, 0, "Never."))
    source = shop.authorised(300)

    def advice(error: ProcessingError | None) -> Any:
        step = shop.do(authorise(1, source=source, error=error))
        (transaction,) = step.entities.keys() - {source}
        return shop.books.document("transaction", transaction).get("advice")

    first = advice(later)
    assert first == {"retry": True, "attempts": 1, "text": "Later.", "after": first["after"]}
    assert first["after"] == after(shop, 24 * 3_600_000 + 2)
    assert advice(later) == {"retry": False, "attempts": 2, "text": "Later."}
    assert advice(None) is None
    assert advice(later)["attempts"] == 1
    assert advice(never) == {"retry": False, "attempts": 2, "text": "Never."}


def test_every_kind_of_line_has_its_document(shop: Shop) -> None:
    transaction = shop.captured(10_000)
    shop.do(Refund(transaction, 1_000, ""))
    opened = shop.disputed(transaction, 100)
    shop.do(DecideDispute(opened, is_won=True))
    opened = shop.disputed(transaction, 100)
    shop.do(DecideDispute(opened, is_won=False))
    shop.do(PayOut(50, "January"))
    shop.do(PayOut(51, ""))
    ids = [line.pop("id") for line in shop.lines]
    assert len(set(ids)) == 8

    def line(milliseconds: int, balance: int, amount: int, **more: Any) -> dict[str, Any]:
        return {
            "merchantId": shop.book,
            "test": True,
            "created": after(shop, milliseconds),
            "balance": balance,
            "fee": 0,
            "amount": {"currency": "EUR", "amount": amount},
            **more,
        }

    of = {"transactionId": transaction}
    lines = [{name: value for name, value in each.items() if name != "id"} for each in shop.lines]
    assert lines == [
        line(2, 10_000 - 170, 10_000, capture=True, **of) | {"fee": 170},
        line(3, -1_000, 1_000, refund=True, **of),
        line(4, -2_600, 100, dispute=True, **of) | {"fee": 2_500},
        line(5, 100, 100, dispute=True, won=True, **of),
        line(6, -2_600, 100, dispute=True, **of) | {"fee": 2_500},
        line(7, 0, 100, dispute=True, lost=True, **of),
        line(8, -50, 50, payout=True, description="January"),
        line(9, -51, 51, payout=True),
    ]


def test_a_line_in_another_currency_keeps_its_conversion() -> None:
    shop = open_shop(pricing=Pricing(0, Price(DKK, 200), Price(EUR, 0)))
    transaction = shop.authorised(1_005, USD)
    flat = rate(DKK, EUR, 134, 1_000)
    shop.do(Capture(transaction, 1_005, None, "", rate(USD, EUR, 925, 1_000), flat))
    (line,) = shop.lines
    assert line["balance"] == 930 - 27  # 929.625 and 26.8
    assert line["amount"] == {"currency": "USD", "amount": 1_005}
    assert line["exchange"] == {
        "from": "USD",
        "to": "EUR",
        "numerator": 925,
        "denominator": 1_000,
        "dated": "2026-01-01",
        "amount": 930,
        "remainder": -375,
        "rounding": "half-even/1",
    }


def test_a_card_s_document_has_notes_if_it_has_any(shop: Shop) -> None:
    transaction = shop.authorised(300)
    documents = []
    for notes in ("Ann's", ""):
        (card,) = shop.do(SaveCard(transaction, notes)).entities
        documents.append(shop.books.document("card", card))
        assert documents[-1].pop("id") == card
    assert documents == [
        {
            "merchantId": shop.book,
            "created": after(shop, milliseconds),
            **CARD_DOCUMENT,
            "notes": notes,
            "deleted": None,
        }
        for milliseconds, notes in ((2, "Ann's"), (3, None))
    ]


@pytest.mark.parametrize(("is_won", "outcome"), [(True, {"won": True}), (False, {"lost": True})])
def test_a_dispute_s_document_is_whole(shop: Shop, is_won: bool, outcome: dict[str, bool]) -> None:
    transaction = shop.captured(300)
    command = OpenDispute(transaction, 200, 4837, "No authorisation", NOW_MS + 500, None)
    step = shop.do(command, OPERATOR)
    document = json.loads(step.reply.body)["dispute"]
    assert document == {
        "id": document["id"],
        "merchantId": shop.book,
        "transactionId": transaction,
        "created": after(shop, 3),
        "amount": 200,
        "reason": {"code": 4837, "title": "No authorisation"},
        "due": "2026-01-01T00:00:00.500Z",
    }
    step = shop.do(DecideDispute(document["id"], is_won))
    decided = shop.books.document("dispute", document["id"])
    assert json.loads(step.reply.body)["dispute"] == decided == document | outcome


def test_a_fraud_report_s_document_has_what_was_told(shop: Shop) -> None:
    transaction = shop.authorised(300)
    shop.do(ReportFraud(transaction, NOW_MS + 7, 3))
    shop.do(ReportFraud(transaction, None, None))
    first, second = shop.books.documents("fraud", shop.book)
    plain = {"merchantId": shop.book, "transactionId": transaction}
    assert first == {
        **plain,
        "id": first["id"],
        "created": after(shop, 2),
        "reported": "2026-01-01T00:00:00.007Z",
        "reason": 3,
    }
    assert second == {**plain, "id": second["id"], "created": after(shop, 3)}


def test_an_event_s_document_is_whole(shop: Shop) -> None:
    transaction = shop.captured(1_000)
    (line,) = shop.lines
    event = shop.books.documents("event", shop.book)[-1]
    assert event == {
        "id": event["id"],
        "seq": 3,
        "type": "transaction.captured",
        "created": after(shop, 2),
        "data": {
            "transactionId": transaction,
            "lineId": line["id"],
            "currency": "EUR",
            "amount": 1_000,
            "balance": 961,
            "fee": 39,
        },
    }
    assert event["id"] > line["id"] > transaction


def test_documents_are_compact_and_not_escaped() -> None:
    shop = open_shop(pricing=FREE)
    command = Authorise(EUR, 2, 1, CARD, "", '{"é":1}', None)
    (transaction,) = shop.do(command, shop.app).entities
    (row,) = (row for row in shop.books.tables.values() if row.id == transaction)
    compact = json.dumps(json.loads(row.document), ensure_ascii=False, separators=(",", ":"))
    assert row.document == compact


def test_an_entity_is_what_its_row_keeps(shop: Shop) -> None:
    transaction = shop.captured(300)
    kept = shop.transaction(transaction)
    assert kept == shop.transaction(transaction)
    assert kept != replace(kept, exponent=3)
    assert kept.exponent == 2
