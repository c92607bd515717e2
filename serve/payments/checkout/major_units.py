"""Amounts as people write them, in major units, to minor units and back, without floats.

    a link's value      "12.5"        a point and no groups, whoever made the link
    a typed amount      "1.250,00"    as its writer's locale has it, or nearly so

Digits that are finer than the currency are refused, not rounded: what is shown is what is paid.
"""

import re
from enum import Enum

from tollgate.actors.ledger.law.values import AMOUNT_MAX

# What anybody writes: the largest amount, with groups and the most decimals.
LENGTH_MAX = 40
_DECIMAL = re.compile(r"([0-9]+)(?:\.([0-9]*))?|\.([0-9]+)")
_GROUPERS = re.compile(r"[\s'’\u00a0\u202f]")
_MARKS = re.compile(r"[.,]")
_DIGITS_OF_A_GROUP = 3
# Is no amount.
_NEITHER = "?"


class AmountFault(Enum):
    """The reasons why a text is no amount."""

    MALFORMED = "malformed"
    TOO_FINE = "too_fine"
    ZERO = "zero"
    TOO_LARGE = "too_large"


def minor_units(text: str, exponent: int) -> int | AmountFault:
    """The amount of a decimal with a point, in a currency with so many decimals."""
    found = _DECIMAL.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if found is None:
        return AmountFault.MALFORMED
    whole, part, bare_part = found.groups(default="")
    decimals = (part or bare_part).rstrip("0")
    if len(decimals) > exponent:
        return AmountFault.TOO_FINE
    amount = int((whole + decimals.ljust(exponent, "0")) or "0")
    if amount > AMOUNT_MAX:
        return AmountFault.TOO_LARGE
    return amount or AmountFault.ZERO


def major_text(amount: int, exponent: int) -> str:
    """The decimal with a point that `minor_units` reads."""
    digits = str(amount).rjust(exponent + 1, "0")
    return f"{digits[:-exponent]}.{digits[-exponent:]}" if exponent else digits


def typed_decimal(text: str, decimal_mark: str) -> str:
    """A typed amount as a decimal with a point, or as something that is none. Of two kinds of
    marks the last one begins the decimals. So does a mark that stands alone (many telephones offer
    only a point), unless it parts three digits and is not the mark of the writer's locale."""
    text = _GROUPERS.sub("", text)
    marks = _MARKS.findall(text)
    if not marks:
        return text
    mark = marks[-1]
    whole, _, part = text.rpartition(mark)
    if len(set(marks)) == 1:
        is_group = len(marks) > 1 or (mark != decimal_mark and len(part) == _DIGITS_OF_A_GROUP)
        return _ungrouped(text, mark) if is_group else f"{whole}.{part}"
    other = "," if mark == "." else "."
    return _NEITHER if mark in whole else f"{_ungrouped(whole, other)}.{part}"


def _ungrouped(text: str, mark: str) -> str:
    """The digits without marks, where those stand before groups of three."""
    first, *others = text.split(mark)
    is_grouped = first not in ("", "0") and all(len(each) == _DIGITS_OF_A_GROUP for each in others)
    return "".join((first, *others)) if is_grouped else _NEITHER
