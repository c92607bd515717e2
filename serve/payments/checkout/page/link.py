"""The query of a payment link, read: who is paid, how much, and where the customer goes then.

Whatever is wrong is found at once, for whoever made the link to put right. Parameters that mean
nothing here are left alone: links pass through tools that add their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from urllib.parse import parse_qsl, urlencode, urlsplit

from tollgate.serve.payments.api.bodies.constraints import plain_text
from tollgate.serve.payments.checkout.major_units import AmountFault, minor_units
from tollgate.serve.payments.reference.currencies import Currencies, CurrencyEntry

QUERY_LENGTH_MAX = 8 * 1024
FIELDS_MAX = 64
KEY_LENGTH_MAX = 256
REDIRECT_LENGTH_MAX = 2_048
TEXT_LENGTH_MAX = 300
REFERENCE_LENGTH_MAX = 200
SHOWN_LENGTH_MAX = 60
PARAMETERS = (
    *("key", "test", "currency", "value", "reference", "text", "redirect", "locale", "recurring"),
    # (the page's own: the amount was typed on it, so that another one may follow)
    "till",
)
_FLAGS = {"": False, "0": False, "n": False, "no": False, "false": False}
_FLAGS |= {"1": True, "y": True, "yes": True, "true": True}


class Fault(Enum):
    """What is wrong with a link, or with the shop it is for; also the end of its text's name."""

    QUERY_TOO_LONG = "query_too_long"
    TWICE = "twice"
    KEY_MISSING = "key_missing"
    KEY_UNKNOWN = "key_unknown"
    IS_TEST = "is_test"
    IS_LIVE = "is_live"
    CANNOT_PAY = "cannot_pay"
    FLAG = "flag"
    CURRENCY_UNKNOWN = "currency_unknown"
    CURRENCY_DEPRECATED = "currency_deprecated"
    VALUE_MALFORMED = "value_malformed"
    VALUE_TOO_FINE = "value_too_fine"
    VALUE_ZERO = "value_zero"
    VALUE_TOO_LARGE = "value_too_large"
    TEXT_TOO_LONG = "text_too_long"
    REDIRECT = "redirect"


_OF_AMOUNT = {
    AmountFault.MALFORMED: Fault.VALUE_MALFORMED,
    AmountFault.TOO_FINE: Fault.VALUE_TOO_FINE,
    AmountFault.ZERO: Fault.VALUE_ZERO,
    AmountFault.TOO_LARGE: Fault.VALUE_TOO_LARGE,
}


@dataclass(frozen=True, slots=True)
class LinkFault:
    """One thing that is wrong. `field`: the parameter; `value`: what it says, as much as can be
    shown; `currency` and `decimals`: of the amount it is about."""

    fault: Fault
    field: str = ""
    value: str = ""
    currency: str = ""
    decimals: int = 0


@dataclass(frozen=True, slots=True)
class PaymentLink:
    """A link that can be paid. `amount` None: it is to be typed first, at the till. `redirect`
    empty: the customer gets a receipt here."""

    key: str
    is_test: bool
    currency: CurrencyEntry
    amount: int | None
    reference: str
    text: str
    redirect: str
    is_recurring: bool
    is_till: bool


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """The parameters by name, each once."""

    fields: Mapping[str, str]
    faults: tuple[LinkFault, ...] = ()

    def get(self, name: str) -> str:
        return self.fields.get(name, "").strip()


def read_query(query: str) -> LinkQuery:
    """The parameters of a query; one that is there twice, or a query without an end, is a fault."""
    if len(query) > QUERY_LENGTH_MAX:
        return LinkQuery({}, (LinkFault(Fault.QUERY_TOO_LONG),))
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        return LinkQuery({}, (LinkFault(Fault.QUERY_TOO_LONG),))
    fields: dict[str, str] = {}
    faults: list[LinkFault] = []
    for name, value in pairs:
        if name in fields and name in PARAMETERS and fields[name] != value:
            faults.append(LinkFault(Fault.TWICE, name))
        fields.setdefault(name, value)
    return LinkQuery(fields, tuple(faults))


def read_link(
    query: LinkQuery, currencies: Currencies, own_currency: str
) -> PaymentLink | Sequence[LinkFault]:
    """The link of a query. `own_currency`: the shop's, where the link names none."""
    faults = list(query.faults)
    if not query.get("key"):
        faults.append(LinkFault(Fault.KEY_MISSING, "key"))

    def flag(name: str) -> bool:
        found = _FLAGS.get(query.get(name).lower())
        if found is None:
            faults.append(LinkFault(Fault.FLAG, name, _shown(query.get(name))))
        return bool(found)

    def text(name: str, length_max: int) -> str:
        found = plain_text(query.get(name), name, length_max)
        if isinstance(found, str):
            return found
        faults.append(LinkFault(Fault.TEXT_TOO_LONG, name, decimals=length_max))
        return ""

    currency = _currency(query.get("currency") or own_currency, currencies, faults)
    amount = _amount(query.get("value"), currency, faults)
    link = PaymentLink(
        key=query.get("key"),
        is_test=flag("test"),
        currency=currency or CurrencyEntry(currencies.fundable[0], 2),
        amount=amount,
        reference=text("reference", REFERENCE_LENGTH_MAX),
        text=text("text", TEXT_LENGTH_MAX),
        redirect=query.get("redirect"),
        is_recurring=flag("recurring"),
        is_till=flag("till"),
    )
    if link.redirect and not is_fit_to_return_to(link.redirect):
        faults.append(LinkFault(Fault.REDIRECT, "redirect", _shown(link.redirect)))
    return faults or link


def is_fit_to_return_to(url: str) -> bool:
    """True for an absolute address of http or https without credentials, which would hide where it
    leads."""
    if len(url) > REDIRECT_LENGTH_MAX or not url.isprintable() or "\\" in url or " " in url:
        return False
    try:
        parts = urlsplit(url)
        has_place = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_place and "@" not in parts.netloc


def query_text(fields: Mapping[str, str]) -> str:
    """The query of these parameters, those that say nothing left out."""
    return urlencode({name: value for name, value in fields.items() if value})


def _currency(code: str, currencies: Currencies, faults: list[LinkFault]) -> CurrencyEntry | None:
    found = currencies.find(code.upper())
    if found is None:
        faults.append(LinkFault(Fault.CURRENCY_UNKNOWN, "currency", _shown(code)))
    elif found.is_deprecated:
        faults.append(LinkFault(Fault.CURRENCY_DEPRECATED, "currency", found.code))
    return found


def _amount(value: str, currency: CurrencyEntry | None, faults: list[LinkFault]) -> int | None:
    if not value:
        return None
    exponent = 2 if currency is None else currency.exponent
    found = minor_units(value, exponent)
    if isinstance(found, int):
        return found
    if currency is not None or found is not AmountFault.TOO_FINE:
        code = "" if currency is None else currency.code
        faults.append(LinkFault(_OF_AMOUNT[found], "value", _shown(value), code, exponent))
    return None


def _shown(value: str) -> str:
    cleaned = plain_text(value[: 2 * SHOWN_LENGTH_MAX], "", 2 * SHOWN_LENGTH_MAX)
    text = cleaned if isinstance(cleaned, str) else ""
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}…"
