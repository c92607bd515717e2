"""The operator prices a merchant: what comes later costs that, what was booked stays (part C)."""

import pytest

from tests.support.ledger.books import DKK, EUR, NOW_MS, Shop, open_shop
from tollgate.actors.ledger.law.commands import OpenDispute, PriceMerchant
from tollgate.actors.ledger.law.outcomes import RefusalReason
from tollgate.actors.ledger.law.values import AMOUNT_MAX, OPERATOR, Price


def fees(shop: Shop) -> list[int]:
    """Of all lines, in their order."""
    lines = sorted(shop.books.documents("line", shop.book), key=lambda line: str(line["id"]))
    return [line["fee"] for line in lines]


def test_later_captures_and_disputes_cost_what_was_set() -> None:
    shop = open_shop(EUR, is_test=False)
    transaction = shop.authorised(30_000)
    shop.capture(transaction, 10_000)
    step = shop.do(PriceMerchant(20_000, 7, 99), OPERATOR)
    assert all(not entry.postings for entry in step.entries)
    shop.capture(transaction, 10_000)
    shop.do(OpenDispute(transaction, 10, 1, "", NOW_MS, None), OPERATOR)
    assert fees(shop) == [25 + 145, 7 + 200, 99]
    (merchant,) = shop.books.documents("merchant", shop.book)
    assert merchant["pricing"] == {
        "rate": 0.02,
        "flat": {"currency": "EUR", "amount": 7},
        "dispute": {"currency": "EUR", "amount": 99},
    }


def test_fees_are_in_the_funding_currency_so_that_none_is_converted() -> None:
    shop = open_shop(DKK)  # (whose fees are in EUR)
    shop.do(PriceMerchant(0, 7, 99), OPERATOR)
    head = shop.books.head(shop.book)
    assert head is not None
    assert head.merchant is not None
    assert head.merchant.pricing.flat == Price(DKK, 7, head.merchant.exponent)
    transaction = shop.authorised(1_000, DKK)
    shop.capture(transaction, 1_000)
    assert fees(shop) == [7]


def test_the_same_fees_again_change_nothing() -> None:
    shop = open_shop(EUR)
    assert len(shop.do(PriceMerchant(1, 2, 3), OPERATOR).events) == 1
    assert not shop.do(PriceMerchant(1, 2, 3), OPERATOR).events


def test_an_app_does_not_price_its_merchant() -> None:
    for is_test in (True, False):
        shop = open_shop(EUR, is_test=is_test)
        assert shop.refusal(PriceMerchant(0, 0, 0)).kind is RefusalReason.FORBIDDEN


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (PriceMerchant(-1, 0, 0), "ratePpm"),
        (PriceMerchant(1_000_001, 0, 0), "ratePpm"),
        (PriceMerchant(0, -1, 0), "flat"),
        (PriceMerchant(0, 0, AMOUNT_MAX + 1), "dispute"),
    ],
)
def test_fees_have_bounds(command: PriceMerchant, field: str) -> None:
    shop = open_shop(EUR)
    before = len(shop.books.log)
    assert shop.refusal(command, OPERATOR).field == field
    assert len(shop.books.log) == before
