"""Live merchants do not exchange by rates that are too old (part C, Foreign exchange)."""

import pytest

from tests.support.ledger.books import (
    CARD,
    DKK,
    EUR,
    NOW_MS,
    USD,
    Shop,
    authorise,
    open_shop,
    rate,
)
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import Capture, ChangeMerchant, OpenDispute
from tollgate.actors.ledger.law.outcomes import Refusal, RefusalReason
from tollgate.actors.ledger.law.values import OPERATOR, Currency, RateTable

DAY_MS = 86_400_000
TABLE = RateTable("exchange-rates.yaml", "2025-01-01", NOW_MS + DAY_MS)
RATE = rate(USD, EUR, 9, 10)


def captured(shop: Shop, currency: Currency, **options: object) -> OrderEffect | Refusal:
    transaction = shop.authorised(100, currency)
    command = Capture(transaction, 100, None, "", RATE if currency == USD else None, None, TABLE)
    return shop.books.attempt(shop.book, command, shop.app, **options)


@pytest.mark.parametrize("is_checked", [False, True])
def test_a_live_capture_waits_for_new_rates(is_checked: bool) -> None:
    shop = open_shop(is_test=False)
    assert isinstance(captured(shop, USD), OrderEffect)
    shop.books.now_ms = TABLE.until_ms
    refused = captured(shop, USD, is_checked=is_checked)
    assert isinstance(refused, Refusal)
    assert (refused.kind, refused.field) == (RefusalReason.UNCONVERTIBLE, "currency")
    assert refused.message == (
        "the exchange rates in exchange-rates.yaml are dated 2025-01-01, which is too old to "
        "exchange USD for EUR: the operator has to renew them"
    )
    assert isinstance(captured(shop, EUR), OrderEffect), "where nothing is exchanged, they may"


def test_a_book_that_a_clock_far_ahead_has_written_to_trades_by_the_time_that_it_is() -> None:
    shop = open_shop(is_test=False)
    original = shop.authorised(300)
    now_ms, shop.books.now_ms = shop.books.now_ms, CARD.expiry_ms + DAY_MS
    shop.do(ChangeMerchant("Shop", None, None), shop.app)
    shop.books.now_ms = now_ms
    assert isinstance(captured(shop, USD), OrderEffect)
    shop.do(authorise(1, source=original))


def test_test_merchants_exchange_by_any_rates() -> None:
    shop = open_shop()
    shop.books.now_ms = TABLE.until_ms + DAY_MS
    assert isinstance(captured(shop, USD), OrderEffect)


def test_fees_are_exchanged_by_the_newest_rates_however_old() -> None:
    shop = open_shop(DKK, is_test=False)
    shop.books.now_ms = TABLE.until_ms
    transaction = shop.authorised(10_000, DKK)
    eur = rate(EUR, DKK, 746, 100)
    shop.do(Capture(transaction, 10_000, None, "", None, eur, TABLE))
    shop.do(OpenDispute(transaction, 1_000, 1, "", NOW_MS, eur), OPERATOR)
    dispute, captured = sorted(shop.lines, key=lambda line: line["balance"])
    assert captured["fee"] == 186 + 145
    assert dispute["fee"] == 18_650
    assert dispute["balance"] == -1_000 - 18_650
    usd = shop.authorised(100, USD)
    refused = shop.refusal(Capture(usd, 100, None, "", rate(USD, DKK, 7, 1), eur, TABLE))
    assert (refused.kind, refused.field) == (RefusalReason.UNCONVERTIBLE, "currency")


def test_a_fee_without_any_rate_is_refused() -> None:
    shop = open_shop(DKK, is_test=False)
    transaction = shop.authorised(10_000, DKK)
    refused = shop.refusal(Capture(transaction, 10_000, None, "", None, None, TABLE))
    assert (refused.kind, refused.field) == (RefusalReason.UNCONVERTIBLE, "pricing.flat")


def test_who_says_so_is_kept_with_the_exchange() -> None:
    shop = open_shop(is_test=False)
    captured(shop, USD)
    assert '"dated":"2026-01-01"}' in shop.books.log[-1].event, "nothing of a table that says not"
