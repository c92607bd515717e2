"""The languages of the page, and amounts and times as their readers write them.

A link's `locale` chooses, then what the browser asks for, then English. The words are those of
the language alone (`locales/`), amounts are those of the whole locale, by CLDR: `de_CH` has German
words and Swiss figures. All 211 locales of these languages take 25 MB, which is their bound.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files

from babel import Locale, UnknownLocaleError
from babel.numbers import get_decimal_symbol, parse_pattern

from tollgate.serve.payments.reference.currencies import CurrencyEntry

LANGUAGES = ("en", "da", "de", "fr", "es")
DEFAULT = "en"
# A currency without a symbol stands apart from its figures.
_LETTER_BY_DIGIT = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
ACCEPTED_MAX = 20
LOCALES_MAX = 256
NAME_LENGTH_MAX = 40
_NAME = re.compile(r"([a-z]{2,3})(?:[_-]([a-z]{4}))?(?:[_-]([a-z]{2}|[0-9]{3}))?(?:[_.@-].*)?")


@dataclass(frozen=True, slots=True)
class PageLanguage:
    """Words, and the locale of the figures."""

    code: str
    locale: Locale
    texts: Mapping[str, str]

    @property
    def tag(self) -> str:
        """As HTML and browsers' formats have it: `de-CH`."""
        return str(self.locale).replace("_", "-")

    @property
    def decimal_mark(self) -> str:
        return str(get_decimal_symbol(self.locale))

    def text(self, name: str, **values: object) -> str:
        """The text of this name with its values put in."""
        return self.texts[name].format_map(values)

    def amount(self, amount: int, currency: CurrencyEntry) -> str:
        """Minor units with the currency's symbol. The decimals are those that the amount is in,
        which for some currencies are not those that CLDR shows."""
        standard = self.locale.currency_formats["standard"].pattern
        pattern = parse_pattern(standard)
        pattern.frac_prec = (currency.exponent, currency.exponent)
        major = Decimal(amount).scaleb(-currency.exponent)
        code = currency.code
        shown = str(pattern.apply(major, self.locale, currency=code, currency_digits=False))
        return _LETTER_BY_DIGIT.sub("\u00a0", shown)


def language_of(wanted: str, accepted: str = "") -> PageLanguage:
    """The language of a link's `locale`, or of an Accept-Language header."""
    return _language(wanted) or _accepted(accepted) or _known(DEFAULT, "", "")


def _accepted(header: str) -> PageLanguage | None:
    ranked: list[tuple[float, int, str]] = []
    for place, each in enumerate(header.split(",", ACCEPTED_MAX)[:ACCEPTED_MAX]):
        name, _, weight = each.partition(";")
        quality = weight.strip().removeprefix("q=") or "1"
        if re.fullmatch(r"[01](\.[0-9]{0,3})?", quality) and float(quality) > 0:
            ranked.append((-float(quality), place, name.strip()))
    found = (_language(name) for _, _, name in sorted(ranked))
    return next((each for each in found if each is not None), None)


def _language(name: str) -> PageLanguage | None:
    parts = _NAME.fullmatch(name.lower()) if len(name) <= NAME_LENGTH_MAX else None
    if parts is None or parts[1] not in LANGUAGES:
        return None
    return _known(parts[1], parts[2] or "", parts[3] or "")


@lru_cache(LOCALES_MAX)
def _known(code: str, script: str, territory: str) -> PageLanguage:
    try:
        locale = Locale(code, territory.upper() or None, script.title() or None)
    except UnknownLocaleError:
        locale = Locale(code)
    return PageLanguage(code, locale, _texts(code))


@cache
def _texts(code: str) -> Mapping[str, str]:
    file = files("tollgate.serve.payments.checkout.page").joinpath("locales", f"{code}.json")
    texts: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return texts
