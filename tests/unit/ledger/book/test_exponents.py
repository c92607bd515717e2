"""A currency's exponent changes, and no stored amount is reinterpreted (M9)."""

import json
import pickle
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from msgspec import UNSET, structs

from tests.support.ledger import books
from tests.support.ledger.books import EUR, FREE, Shop, authorise, open_shop
from tollgate.actors.ledger.book import case
from tollgate.actors.ledger.book.head import head_of_row, row_of_head
from tollgate.actors.ledger.law.commands import Authorise, Capture, PayOut, Refund
from tollgate.actors.ledger.law.values import (
    OPERATOR,
    CardBrand,
    CardSummary,
    Currency,
    Price,
    Rate,
)
from tollgate.actors.ledger.proof.findings import unbalanced

ISK = Currency("ISK")
books_opening = books.opening
CARD = CardSummary("410000", "0000", 4_102_444_799_999, CardBrand.VISA, True)
# 145 ISK are 1 EUR; of the table of the day on which ISK has no decimals any more.
TODAY = Rate(ISK, EUR, 100, 145, "2026-01-01", source_exponent=0, target_exponent=2)


def krona(amount: int, exponent: int) -> Authorise:
    return Authorise(ISK, exponent, amount, CARD, "", "", None)


def captured(shop: Shop, amount: int, exponent: int, rate: Rate | None) -> str:
    (transaction,) = shop.do(krona(amount, exponent)).entities
    shop.do(Capture(transaction, amount, ISK, "", rate, None))
    return transaction


def assert_balanced(shop: Shop) -> None:
    head = shop.books.head(shop.book)
    assert head is not None
    accounts = tuple((*name.split(":"), amount) for name, amount in head.accounts.items())
    assert unbalanced(accounts) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(("amount", "exponent"), [(1_450_000, 2), (14_500, 0), (14_500_000, 3)])
def test_an_amount_is_converted_by_the_exponent_that_it_was_made_with(
    amount: int, exponent: int
) -> None:
    """14,500 ISK are 100.00 EUR, whatever the table says today."""
    shop = open_shop(pricing=FREE)
    captured(shop, amount, exponent, TODAY)
    assert shop.balance == 10_000
    assert_balanced(shop)


def test_a_merchant_counts_in_the_exponent_that_it_was_opened_with() -> None:
    shop = open_shop(pricing=FREE)
    captured(shop, 14_500, 0, Rate(ISK, EUR, 1_000, 145, "2026-01-01", 0, 3))
    assert shop.balance == 10_000


def test_a_currency_is_converted_to_itself_when_its_exponent_has_changed() -> None:
    """A merchant funded in a currency of two decimals takes an amount that has none."""
    shop = open_shop(pricing=FREE)
    transaction = next(iter(shop.do(replace(authorise(7), exponent=0)).entities))
    shop.do(Capture(transaction, 7, EUR, "", None, None))
    assert shop.balance == 700
    assert_balanced(shop)
    shop.do(Refund(transaction, 3, ""))
    assert shop.balance == 400
    shop.do(Refund(transaction, 4, ""))
    assert shop.balance == 0
    assert_balanced(shop)


def test_amounts_of_two_exponents_are_on_two_accounts() -> None:
    """14,500 ISK twice: before and after the krona lost its decimals."""
    shop = open_shop(pricing=FREE)
    captured(shop, 1_450_000, 2, TODAY)
    assert "exponent" not in json.loads(shop.books.log[-1].event)["sum"], "the first is not said"
    transaction = captured(shop, 14_500, 0, TODAY)
    assert sums_of(shop) == {
        "clearing:ISK": -1_450_000,
        "fx:ISK": 1_450_000,
        "clearing:ISK/0": -14_500,
        "fx:ISK/0": 14_500,
        "fx:EUR": -20_000,
        "merchant:EUR": 20_000,
    }
    assert_balanced(shop)
    shop.do(Refund(transaction, 14_500, ""))
    assert sums_of(shop).keys() == {"clearing:ISK", "fx:ISK", "fx:EUR", "merchant:EUR"}


def test_a_merchant_is_paid_out_in_the_unit_that_it_counts_in() -> None:
    """And has one balance, though a part of it is older than the name of that unit."""
    with patch.object(books, "opening", in_tenths):
        shop = open_shop(pricing=FREE)
    transaction = next(iter(shop.do(replace(authorise(70), exponent=1)).entities))
    with patch.object(case, "posted_exponent", lambda *_: UNSET):
        shop.do(Capture(transaction, 30, EUR, "", None, None))
    shop.do(Capture(transaction, 40, EUR, "", None, None))
    assert sums_of(shop)["merchant:EUR"] == 30
    assert sums_of(shop)["merchant:EUR/1"] == 40
    assert shop.balance == 70
    shop.do(PayOut(60, ""), OPERATOR)
    assert shop.balance == 10
    assert sums_of(shop)["paid_out:EUR/1"] == 60
    assert_balanced(shop)


def in_tenths(*given: Any, **options: Any) -> Any:
    return replace(books_opening(*given, **options), exponent=1)


def sums_of(shop: Shop) -> dict[str, int]:
    head = shop.books.head(shop.book)
    assert head is not None
    return {name: amount for name, amount in head.accounts.items() if amount}


def test_a_flat_fee_is_that_of_its_own_exponent() -> None:
    pricing = replace(FREE, flat=Price(EUR, 250, exponent=3))
    shop = open_shop(pricing=pricing)
    transaction = shop.authorised(1_000)
    shop.do(Capture(transaction, 1_000, EUR, "", None, None))
    assert shop.balance == 1_000 - 25


def test_what_is_older_than_stamps_is_stored_as_it_was() -> None:
    shop = open_shop(pricing=FREE)
    head = shop.books.head(shop.book)
    assert head is not None
    assert head.merchant is not None
    assert head.merchant.exponent is UNSET
    assert head.merchant.funding_exponent == 2
    row = row_of_head(head)
    assert "exponent" not in row.state
    assert row_of_head(head_of_row(row)) == row
    stamped = structs.replace(head, merchant=structs.replace(head.merchant, exponent=3))
    assert head_of_row(row_of_head(stamped)) == stamped
    # (and a command travels to its shard as it is)
    assert pickle.loads(pickle.dumps(Price(EUR, 1))).exponent is UNSET
