"""Exponents of currencies, stamped on amounts, so that a later table reinterprets none (M9).

An amount of minor units means something only with its currency's exponent: 1450000 ISK was 14,500
krónur while ISK had two decimals. Transactions, prices and merchants carry the exponent of the day
they were made on; a rate says for which exponents its fraction was made, and is restated for those
of the amounts at hand before it converts any:

    1 minor unit of S at exponent s, in minor units of T at exponent t
    = rate * 10^(e(S) - s) * 10^(t - e(T))      e: the rate's own exponents

What was stored before prices and merchants were stamped has the exponents that every table had
until then (`FIRST`); it is read so for ever.
"""

from dataclasses import replace
from fractions import Fraction

from msgspec import UNSET, UnsetType

from tollgate.actors.ledger.law.values import Currency, Rate

Exponent = int | UnsetType

_WITHOUT_DECIMALS = "BIF BYR CLP DJF GNF JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_WITH_THREE = "BHD IQD JOD KWD OMR TND"
FIRST = dict.fromkeys(_WITHOUT_DECIMALS.split(), 0) | dict.fromkeys(_WITH_THREE.split(), 3)
_FIRST_OF_OTHERS = 2


def stamped_exponent(currency: Currency, exponent: Exponent) -> int:
    """The exponent of an amount that may be older than stamps."""
    return FIRST.get(currency, _FIRST_OF_OTHERS) if exponent is UNSET else exponent


def posted_exponent(currency: Currency, exponent: int) -> Exponent:
    """An exponent to be written with amounts that are posted; not set where it is the first one, as
    which amounts without any are read."""
    return UNSET if exponent == stamped_exponent(currency, UNSET) else exponent


def posted_currency(currency: Currency, exponent: Exponent) -> Currency:
    """The unit of a posting: two exponents of one currency are two units, whose amounts nobody may
    add up. `ISK` is in the first exponent, `ISK/0` in another one."""
    return currency if exponent is UNSET else Currency(f"{currency}/{exponent}")


def restated(rate: Rate, source_exponent: int, target_exponent: int) -> Rate:
    """The rate for amounts with these exponents. One that does not say for which it was made is
    taken for one of these."""
    ours = 0 if rate.source_exponent is UNSET else rate.source_exponent - source_exponent
    theirs = 0 if rate.target_exponent is UNSET else target_exponent - rate.target_exponent
    if not ours and not theirs:
        return rate
    worth = Fraction(rate.numerator, rate.denominator) * Fraction(10) ** (ours + theirs)
    return replace(
        rate,
        numerator=worth.numerator,
        denominator=worth.denominator,
        source_exponent=source_exponent,
        target_exponent=target_exponent,
    )


def same_currency(currency: Currency, source_exponent: int, target_exponent: int) -> Rate:
    """The rate between two exponents of one currency."""
    worth = Fraction(10) ** (target_exponent - source_exponent)
    return Rate(
        source=currency,
        target=currency,
        numerator=worth.numerator,
        denominator=worth.denominator,
        dated="",
        source_exponent=source_exponent,
        target_exponent=target_exponent,
    )
