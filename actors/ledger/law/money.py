"""Money is integers of minor units. This is the only place where any of it is rounded (M5).

    conversion   converted = amount × numerator / denominator    of a `Rate`, minor to minor unit
    rate fee     fee = converted × rate_ppm / 1,000,000          of the captured amount (M3)

Each rounds once, from the exact fraction, half to even: `HALF_EVEN` names the law and its version,
and stands with every conversion that was booked. Amounts here are never negative, nor are fees;
signs belong to accounts. A law that changes gets a new name, and what was booked keeps the old one.
"""

from msgspec import Struct

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency, Pricing, Rate

HALF_EVEN = "half-even/1"
_PPM = 1_000_000


class Fee(Struct, frozen=True):
    """The fee that the merchant pays for a move, in minor units of the funding currency."""

    flat: int = 0
    rate: int = 0

    @property
    def total(self) -> int:
        return self.flat + self.rate


NO_FEE = Fee()


class Exchange(Struct, frozen=True):
    """A conversion as it was booked: the exact result was `amount` + `remainder` / denominator."""

    amount: int
    rate: Rate
    remainder: int
    rounding: str = HALF_EVEN


def convert(amount: int, rate: Rate) -> Exchange:
    """`amount` minor units of the rate's source in those of its target."""
    converted, remainder = divide_half_even(amount * rate.numerator, rate.denominator)
    return Exchange(converted, rate, remainder)


def converted(amount: int, rate: Rate | None) -> int:
    """The same without its remainder; without a rate the currencies are one."""
    if rate is None:
        return amount
    return divide_half_even(amount * rate.numerator, rate.denominator)[0]


def rate_fee(captured: int, pricing: Pricing) -> int:
    """The proportional part of a capture's fee; both in the funding currency."""
    return divide_half_even(captured * pricing.rate_ppm, _PPM)[0]


def divide_half_even(dividend: int, divisor: int) -> tuple[int, int]:
    """(quotient, remainder) of a number that is not negative: the nearest quotient, the even one
    of two, so that |remainder| <= divisor / 2."""
    assert dividend >= 0 < divisor, "only amounts are rounded, and they are not negative"
    quotient, remainder = divmod(dividend, divisor)
    if 2 * remainder + (quotient & 1) > divisor:
        return quotient + 1, remainder - divisor
    return quotient, remainder


def is_rate_of(rate: Rate, source: Currency, target: Currency) -> bool:
    """Tells whether a rate leads from one currency to the other and can be calculated with."""
    return (
        (rate.source, rate.target) == (source, target)
        and 0 < rate.numerator <= AMOUNT_MAX
        and 0 < rate.denominator <= AMOUNT_MAX
    )
