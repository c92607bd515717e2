"""Exchanges, calculated again by fractions of Python's own: between which units, and to how much.

A unit is a currency with its exponent (M9). What was stored without an exponent has the first one
of its currency: that table alone is shared with what wrote the books.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from tollgate.actors.ledger.law.exponents import FIRST

Event = Mapping[str, Any]
Unit = tuple[str, int]
_FIRST_OF_OTHERS = 2


def unit_of(fields: Event, currency: str = "currency", exponent: str = "exponent") -> Unit:
    """The unit of an amount that is stored with these fields."""
    code = fields[currency]
    return code, fields.get(exponent, FIRST.get(code, _FIRST_OF_OTHERS))


def named(unit: Unit) -> str:
    """A unit, for users: its exponent is told where it is not the first one."""
    code, exponent = unit
    return code if unit == unit_of({"currency": code}) else f"{code}/{exponent}"


def rate_of(exchange: Event | None) -> Fraction:
    """The rate that was booked; one, where nothing was exchanged."""
    if exchange is None:
        return Fraction(1)
    return Fraction(exchange["rate"]["numerator"], exchange["rate"]["denominator"])


def exchanged(amount: int, exchange: Event | None) -> int:
    """The amount by the rate that was booked, half to even; itself where none was needed."""
    return round(amount * rate_of(exchange))


def exchange_faults(
    what: str, amount: int, source: Unit, target: Unit, exchange: Event | None
) -> Iterator[str]:
    """Says where an exchange is missing, is one of other units, or adds up to something else (M4,
    M5). What its result must be is for the caller to compare."""
    if exchange is None:
        if amount and source != target:
            yield f"{what} is in {named(source)} and was not exchanged for {named(target)} (M4)"
        return
    rate = exchange["rate"]
    units = [
        (rate[end], rate.get(f"{end}_exponent", unit[1]))
        for end, unit in (("source", source), ("target", target))
    ]
    is_fixed = source[0] == target[0]
    if units != [source, target] or (
        is_fixed and rate_of(exchange) != Fraction(10) ** (target[1] - source[1])
    ):
        yield (
            f"{what} is exchanged by a rate from {named(units[0])} to {named(units[1])}, and not "
            f"from {named(source)} to {named(target)} (M4)"
        )
    rest = amount * rate["numerator"] - exchange["amount"] * rate["denominator"]
    if (exchange["amount"], exchange["remainder"]) != (exchanged(amount, exchange), rest):
        yield f"{what} is exchanged for {exchange['amount']}, which its rate does not make (M5)"
