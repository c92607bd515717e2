"""The one rounding, and what is made of it."""

from fractions import Fraction

import pytest

from tests.support.ledger.books import DKK, EUR, FREE, JPY, KWD, PRICING, USD, rate
from tollgate.actors.ledger.law.money import (
    HALF_EVEN,
    Fee,
    convert,
    divide_half_even,
    is_rate_of,
    rate_fee,
)
from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency, Pricing, Rate


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "remainder"),
    [
        (0, 1, 0, 0),
        (1, 2, 0, 1),  # a half, to the even 0
        (3, 2, 2, -1),  # a half, to the even 2
        (5, 2, 2, 1),
        (7, 2, 4, -1),
        (1, 3, 0, 1),
        (2, 3, 1, -1),
        (49, 100, 0, 49),
        (51, 100, 1, -49),
        (10**30 + 1, 2 * 10**30, 1, 1 - 10**30),  # just above a half, beyond any float
        (10**30 - 1, 2 * 10**30, 0, 10**30 - 1),
    ],
)
def test_halves_go_to_the_even_neighbour(
    dividend: int, divisor: int, quotient: int, remainder: int
) -> None:
    assert divide_half_even(dividend, divisor) == (quotient, remainder)


def test_what_is_below_zero_is_no_amount() -> None:
    with pytest.raises(AssertionError, match="not negative"):
        divide_half_even(-1, 2)


@pytest.mark.parametrize(
    ("amount", "of", "converted", "remainder"),
    [
        (1_000, rate(USD, EUR, 92, 100), 920, 0),
        (1, rate(USD, EUR, 1, 2), 0, 1),
        (3, rate(USD, EUR, 1, 2), 2, -1),
        # exponent 0 to 2: 1 yen is 0.6 cents; exponent 3 to 2: 1 fils is 0.3 cents
        (1_000, rate(JPY, EUR, 6, 10), 600, 0),
        (1_005, rate(KWD, EUR, 3, 10), 302, -5),
        (999, rate(EUR, JPY, 5, 3), 1_665, 0),
        (AMOUNT_MAX, rate(KWD, DKK, 22, 10), 19_815_838_360_430_180, 2),
    ],
)
def test_a_conversion_tells_how_it_was_rounded(
    amount: int, of: Rate, converted: int, remainder: int
) -> None:
    how = convert(amount, of)
    assert (how.amount, how.remainder) == (converted, remainder)
    assert (how.rate, how.rounding) == (of, HALF_EVEN)
    exact = Fraction(amount * of.numerator, of.denominator)
    assert converted + Fraction(remainder, of.denominator) == exact


@pytest.mark.parametrize(
    ("captured", "ppm", "fee"),
    [(0, 14_500, 0), (1_000, 14_500, 14), (1_035, 14_500, 15), (100, 15_000, 2), (100, 25_000, 2)],
)
def test_the_rate_fee_is_rounded_once(captured: int, ppm: int, fee: int) -> None:
    assert rate_fee(captured, Pricing(ppm, PRICING.flat, PRICING.dispute)) == fee


def test_a_fee_is_the_sum_of_its_parts() -> None:
    assert Fee(25, 14).total == 39
    assert rate_fee(10**9, FREE) == 0


@pytest.mark.parametrize(
    ("of", "source", "target", "is_one"),
    [
        (rate(USD, EUR, 92, 100), USD, EUR, True),
        (rate(USD, EUR, 92, 100), EUR, USD, False),
        (rate(USD, EUR, 92, 100), USD, DKK, False),
        (rate(USD, EUR, 0, 100), USD, EUR, False),
        (rate(USD, EUR, 92, 0), USD, EUR, False),
        (rate(USD, EUR, -92, -100), USD, EUR, False),
        (rate(USD, EUR, 1, 1), USD, EUR, True),
        (rate(USD, EUR, AMOUNT_MAX, AMOUNT_MAX), USD, EUR, True),
        (rate(USD, EUR, AMOUNT_MAX + 1, 1), USD, EUR, False),
        (rate(USD, EUR, 1, AMOUNT_MAX + 1), USD, EUR, False),
    ],
)
def test_a_rate_leads_from_one_currency_to_the_other(
    of: Rate, source: Currency, target: Currency, is_one: bool
) -> None:
    assert is_rate_of(of, source, target) is is_one
