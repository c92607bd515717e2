"""What money moves on which accounts, with and without a foreign currency."""

import pytest

from tests.support.ledger.books import (
    DKK,
    EUR,
    FREE,
    JPY,
    NOW_MS,
    PRICING,
    USD,
    Shop,
    authorise,
    open_shop,
    rate,
)
from tollgate.actors.ledger.law.commands import (
    Capture,
    DecideDispute,
    OpenDispute,
    PayOut,
    Refund,
    Void,
)
from tollgate.actors.ledger.law.outcomes import ErrorCode, RefusalReason
from tollgate.actors.ledger.law.rows import Posting
from tollgate.actors.ledger.law.values import AMOUNT_MAX, OPERATOR, Price, Pricing, Rate

USD_IN_EUR = rate(USD, EUR, 92, 100)
EUR_IN_DKK = rate(EUR, DKK, 746, 100)
JPY_IN_DKK = rate(JPY, DKK, 455, 100)


def legs(shop: Shop) -> list[tuple[str, str, int]]:
    """The postings of the last entry."""
    postings: tuple[Posting, ...] = shop.books.log[-1].postings
    return [(posting.account, posting.currency, posting.amount) for posting in postings]


def test_in_one_currency() -> None:
    shop = open_shop()
    transaction = shop.authorised(10_000)
    assert legs(shop) == []
    shop.capture(transaction, 10_000)
    assert legs(shop) == [
        ("clearing", "EUR", -10_000),
        ("merchant", "EUR", 9_830),
        ("fees", "EUR", 25 + 145),
    ]
    shop.do(Refund(transaction, 4_000, ""))
    assert legs(shop) == [("clearing", "EUR", 4_000), ("merchant", "EUR", -4_000)]
    opened = shop.disputed(transaction, 1_000)
    assert legs(shop) == [
        ("clearing", "EUR", 1_000),
        ("merchant", "EUR", -3_500),
        ("fees", "EUR", 2_500),
    ]
    shop.do(DecideDispute(opened, is_won=True))
    assert legs(shop) == [("clearing", "EUR", -1_000), ("merchant", "EUR", 1_000)]
    shop.do(PayOut(3_000, ""))
    assert legs(shop) == [("merchant", "EUR", -3_000), ("paid_out", "EUR", 3_000)]
    assert shop.balance == 9_830 - 4_000 - 3_500 + 1_000 - 3_000


def test_in_two_currencies_and_fees_in_a_third() -> None:
    shop = open_shop(DKK, Pricing(14_500, Price(EUR, 25), Price(EUR, 2_500)))
    transaction = shop.authorised(1_000, JPY)
    shop.do(Capture(transaction, 1_000, None, "", JPY_IN_DKK, EUR_IN_DKK))
    # 1,000 yen are 45.50 kroner; of the fees, 0.25 euros are 1.865 kroner, to the even 1.86, and
    # 1.45 % are 0.66
    fee = 186 + 66
    assert legs(shop) == [
        ("clearing", "JPY", -1_000),
        ("fx", "JPY", 1_000),
        ("fx", "DKK", -4_550),
        ("merchant", "DKK", 4_550 - fee),
        ("fees", "DKK", fee),
    ]
    shop.do(Refund(transaction, 300, ""))
    assert legs(shop) == [
        ("clearing", "JPY", 300),
        ("fx", "JPY", -300),
        ("fx", "DKK", 1_365),
        ("merchant", "DKK", -1_365),
    ]
    shop.do(OpenDispute(transaction, 700, 1, "", NOW_MS, EUR_IN_DKK), OPERATOR)
    assert legs(shop)[-1] == ("fees", "DKK", 18_650)
    assert shop.balance == -fee - 18_650


@pytest.mark.parametrize(("is_won", "given_back"), [(True, 1_000), (False, 0)])
def test_only_a_won_dispute_books_again(is_won: bool, given_back: int) -> None:
    shop = open_shop()
    opened = shop.disputed(shop.captured(1_000), 1_000)
    before = shop.balance
    shop.do(DecideDispute(opened, is_won))
    assert bool(legs(shop)) is is_won
    assert shop.balance == before + given_back
    assert shop.lines[-1]["balance"] == given_back


def test_a_refund_converts_at_the_rates_of_its_captures_the_oldest_first() -> None:
    shop = open_shop(pricing=FREE)
    transaction = shop.authorised(3_000, USD)
    for amount, percent in ((1_000, 90), (1_000, 95), (1_000, 100)):
        shop.capture(transaction, amount, rate(USD, EUR, percent, 100))
    assert shop.balance == 900 + 950 + 1_000
    shop.do(Refund(transaction, 1_500, ""))
    assert shop.lines[-1]["balance"] == -(900 + 475)
    shop.do(Refund(transaction, 1_500, ""))
    assert shop.lines[-1]["balance"] == -(475 + 1_000)
    assert shop.balance == 0


def test_a_void_moves_no_money() -> None:
    shop = open_shop()
    transaction = shop.authorised(1_000)
    shop.do(Void(transaction, 1_000))
    assert (legs(shop), shop.lines, shop.balance) == ([], [], 0)


@pytest.mark.parametrize(
    "wrong", [None, rate(EUR, USD, 1, 1), rate(USD, DKK, 1, 1), rate(USD, EUR, 1, 0)]
)
def test_without_its_rate_nothing_is_converted(wrong: Rate | None) -> None:
    shop = open_shop()
    refused = shop.refusal(Capture(shop.authorised(10, USD), 10, None, "", wrong, None))
    assert (refused.kind, refused.field) == (RefusalReason.UNCONVERTIBLE, "currency")
    assert refused.code == ErrorCode.INVALID_CURRENCY
    assert refused.message == "there is no exchange rate from USD to EUR"


def test_without_their_rates_no_fees_are_taken() -> None:
    shop = open_shop(DKK, PRICING)
    transaction = shop.authorised(1_000, DKK)
    refused = shop.refusal(Capture(transaction, 10, None, "", None, None))
    assert refused.message == "there is no exchange rate from EUR to DKK"
    shop.do(Capture(transaction, 10, None, "", None, EUR_IN_DKK))
    refused = shop.refusal(OpenDispute(transaction, 10, 1, "", NOW_MS, None), OPERATOR)
    assert refused.message == "there is no exchange rate from EUR to DKK"


def test_a_fee_of_nothing_needs_no_rate() -> None:
    shop = open_shop(DKK, FREE)
    transaction = shop.authorised(1_000, DKK)
    shop.do(Capture(transaction, 10, None, "", None, None))
    shop.do(OpenDispute(transaction, 10, 1, "", NOW_MS, None), OPERATOR)
    assert shop.balance == 0


def test_at_most_the_balance_is_paid_out() -> None:
    shop = open_shop(pricing=FREE)
    assert "more than the 0 that are on the balance" in shop.refusal(PayOut(1, "")).message
    shop.captured(500)
    assert shop.refusal(PayOut(501, "")).code == ErrorCode.AMOUNT_TOO_HIGH
    assert shop.refusal(PayOut(0, "")).code == ErrorCode.INVALID_AMOUNT
    shop.do(PayOut(500, ""))
    assert shop.balance == 0


def test_a_negative_balance_pays_nothing_out() -> None:
    shop = open_shop()
    shop.disputed(shop.captured(500), 500)
    assert shop.balance < 0
    assert "more than the 0 that" in shop.refusal(PayOut(1, "")).message


def test_a_book_holds_no_more_than_json_can_say() -> None:
    shop = open_shop(pricing=FREE)
    shop.captured(AMOUNT_MAX - 1)
    shop.captured(1)
    refused = shop.refusal(Capture(shop.authorised(1), 1, None, "", None, None))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "amount")
    assert str(AMOUNT_MAX) in refused.message
    assert shop.balance == AMOUNT_MAX


def test_a_conversion_gives_no_more_than_json_can_say() -> None:
    shop = open_shop(pricing=FREE)
    transaction = shop.authorised(AMOUNT_MAX, USD)
    huge = rate(USD, EUR, AMOUNT_MAX, 1)
    assert str(AMOUNT_MAX) in shop.refusal(Capture(transaction, 2, None, "", huge, None)).message
    shop.do(Capture(transaction, 1, None, "", huge, None))
    assert shop.balance == AMOUNT_MAX


@pytest.mark.parametrize("amount", [0, -1, AMOUNT_MAX + 1])
def test_what_is_no_amount_is_not_authorised(amount: int) -> None:
    shop = open_shop()
    refused = shop.refusal(authorise(amount))
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, "amount")
