"""A currency's exponent changes, and no stored amount is reinterpreted (M9)."""

import pickle
from dataclasses import replace

import pytest
from msgspec import UNSET, structs

from tests.support.ledger.books import EUR, FREE, Shop, authorise, open_shop
from tollgate.actors.ledger.book.head import head_of_row, row_of_head
from tollgate.actors.ledger.law.commands import Authorise, Capture, Refund
from tollgate.actors.ledger.law.values import CardBrand, CardSummary, Currency, Price, Rate
from tollgate.actors.ledger.proof.findings import unbalanced

ISK = Currency("ISK")
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
