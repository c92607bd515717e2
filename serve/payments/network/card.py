"""Cards as they come in, and the little of them that goes on (part G, PCI).

A `PlainCard` holds the number and the security code, and gives neither away: there is no way to
read them, it shows as `PlainCard(…)`, and it can be neither copied nor pickled, so that it cannot
become an argument of an actor. What a ledger may keep comes from `summary`. Whoever adds a network
that needs the digits adds the way to it here, and nowhere else.
"""

import re
from calendar import timegm
from collections.abc import Mapping
from dataclasses import dataclass
from time import gmtime
from typing import NoReturn, TypeVar, final

from tollgate.actors.ledger.law.values import CardBrand, CardSummary

T = TypeVar("T")

YEAR_MAX = 2099
_NUMBER = re.compile(r"[0-9]{12,19}")
_CODE = re.compile(r"[0-9]{3,4}")
_DIGITS = re.compile(r"[0-9]{1,4}")
_BETWEEN_DIGITS = str.maketrans("", "", " -\u00a0\u202f")


@dataclass(frozen=True, slots=True)
class CardProblem:
    """A fault of card data: the processing error's code (part C), and the field."""

    code: int
    field: str


@final
class PlainCard:
    """A card as its holder gave it."""

    __slots__ = ("__code", "__number", "expiry_ms")

    def __init__(self, number: str, code: str, expiry_ms: int) -> None:
        self.__number = number
        self.__code = code
        self.expiry_ms = expiry_ms

    def __repr__(self) -> str:
        return "PlainCard(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a plain card stays in the process that read it")

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        self.__reduce__()

    def __getstate__(self) -> NoReturn:
        self.__reduce__()

    def find_in(self, table: Mapping[str, T]) -> T | None:
        """The entry of a table for the number."""
        return table.get(self.__number)

    @property
    def could_be_real(self) -> bool:
        """True if the last digit checks the others (ISO/IEC 7812), as on every real card."""
        digits = [int(each) for each in reversed(self.__number)]
        doubled = sum(sum(divmod(2 * each, 10)) for each in digits[1::2])
        return (sum(digits[::2]) + doubled) % 10 == 0

    @property
    def brand(self) -> CardBrand | None:
        """The scheme that numbers like this one belong to; None: another one."""
        if self.__number.startswith("4"):
            return CardBrand.VISA
        first = int(self.__number[:4])
        is_mastercard = 5100 <= first <= 5599 or 2221 <= first <= 2720
        return CardBrand.MASTERCARD if is_mastercard else None

    def disclosed(self) -> dict[str, object]:
        """All of the card, for the one call that asks its network for an authorisation."""
        year, month, *_ = gmtime(self.expiry_ms // 1000)
        card: dict[str, object] = {
            "number": self.__number,
            "expiry": {"month": month, "year": year},
        }
        return {**card, "code": self.__code} if self.__code else card

    def summary(self, scheme: CardBrand, network_token: str) -> CardSummary:
        """The part of the card that may be kept."""
        return CardSummary(
            bin=self.__number[:6],
            last4=self.__number[-4:],
            expiry_ms=self.expiry_ms,
            scheme=scheme,
            has_code=self.__code != "",
            network_token=network_token,
        )


def read_card(
    number: object, month: object, year: object, code: object, *, needs_code: bool = True
) -> PlainCard | CardProblem:
    """A card of the four fields of a form or a JSON body. Digits of a number may stand in groups; a
    year may have two digits. Whether the card has expired is the network's to say."""
    digits, month_text, year_text, code_text = map(_text, (number, month, year, code))
    if not digits:
        return CardProblem(17, "card.number")
    if not month_text:
        return CardProblem(18, "card.expiry.month")
    if not year_text:
        return CardProblem(19, "card.expiry.year")
    if not code_text and needs_code:
        return CardProblem(20, "card.code")
    plain = ungrouped(digits)
    if plain is None:
        return CardProblem(3, "card.number")
    expiry_ms = _expiry_ms(year_text, month_text)
    if expiry_ms is None:
        return CardProblem(5, "card.expiry")
    if code_text and not is_security_code(code_text):
        return CardProblem(4, "card.code")
    return PlainCard(plain, code_text, expiry_ms)


def ungrouped(number: str) -> str | None:
    """The digits of a card's number, which may stand in groups; None if it cannot be one."""
    digits = number.translate(_BETWEEN_DIGITS)
    return digits if _NUMBER.fullmatch(digits) else None


def is_security_code(text: str) -> bool:
    """True if a text has the form of a security code."""
    return _CODE.fullmatch(text) is not None


def end_of_month_ms(year: int, month: int) -> int:
    """The last millisecond of a month, UTC (part B, Card)."""
    following = (year + month // 12, month % 12 + 1, 1, 0, 0, 0)
    return timegm(following) * 1000 - 1


def _text(value: object) -> str:
    """Whole numbers are welcome: JSON has them, and `"07"` is as good as 7."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 10**19 else "?"
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else "?"


def _expiry_ms(year_text: str, month_text: str) -> int | None:
    if not (_DIGITS.fullmatch(year_text) and _DIGITS.fullmatch(month_text)):
        return None
    year, month = int(year_text), int(month_text)
    if len(year_text) <= 2:
        year += 2000
    if not (1 <= month <= 12 and 2000 <= year <= YEAR_MAX):
        return None
    return end_of_month_ms(year, month)
