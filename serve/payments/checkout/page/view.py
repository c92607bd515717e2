"""The contents of the page as plain values; the templates and the script only lay them out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tollgate.serve.payments.checkout.major_units import major_text
from tollgate.serve.payments.checkout.page.language import PageLanguage
from tollgate.serve.payments.checkout.page.link import Fault, LinkFault, PaymentLink
from tollgate.serve.payments.reference.currencies import CurrencyEntry

# (one line, not two: the blanks do not break)
TEST_CARD = "4100\u00a00000\u00a00000\u00a00000"
# An amount to show how amounts are written.
EXAMPLE = "1250"
# The texts that the script says, by the beginnings of their names.
_SCRIPTS_TEXTS = (
    *("form.", "field.", "progress.", "refused.", "unknown.", "done.", "elsewhere."),
    "till.another",
)


@dataclass(frozen=True, slots=True)
class OutcomeChoice:
    """Something to try on the page of a test merchant: its text, and the `test` object for it."""

    name: str
    test: str


def _outcome(name: str, test: dict[str, object]) -> OutcomeChoice:
    return OutcomeChoice(name, json.dumps(test, separators=(",", ":")))


_QUIET = {"challenge": False}
_CARD_OUTCOMES = {
    "test.disabled": {"status": "disabled"},
    "test.expired": {"status": "expired"},
    "test.code": {"code": "invalid"},
    "test.unsupported": {"scheme": "unsupported"},
}


def outcomes(currency: CurrencyEntry) -> Sequence[OutcomeChoice]:
    """What can be tried; the first is the usual course."""
    nothing = {"currency": currency.code, "exponent": 0, "value": 0}
    return (
        _outcome("test.success", {"tds": _QUIET}),
        _outcome("test.tds_challenge", {"tds": {"challenge": True}}),
        _outcome("test.tds_attempted", {"tds": {**_QUIET, "status": "attempted"}}),
        _outcome("test.tds_unavailable", {"tds": {**_QUIET, "status": "unavailable"}}),
        _outcome("test.tds_rejected", {"tds": {**_QUIET, "status": "rejected"}}),
        _outcome("test.funds", {"card": {"balance": nothing}, "tds": _QUIET}),
        _outcome("test.limit", {"card": {"limit": nothing}, "tds": _QUIET}),
        *(_outcome(name, {"card": card, "tds": _QUIET}) for name, card in _CARD_OUTCOMES.items()),
    )


@dataclass(frozen=True, slots=True)
class PayView:
    """The page that takes a card. `script`: what its script works with, as JSON; `host`: where the
    customer may go back to, empty without a `redirect`."""

    shop: str
    amount: str
    text: str
    host: str
    redirect: str
    is_test: bool
    is_recurring: bool
    outcomes: Sequence[OutcomeChoice]
    test_card: str
    another: str
    script: str


@dataclass(frozen=True, slots=True)
class TillView:
    """The page that asks for the amount. `fields`: the link's other parameters, which go along."""

    shop: str
    currency: str
    example: str
    is_test: bool
    fields: Sequence[tuple[str, str]]
    typed: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FaultView:
    """The page that says what is wrong with a link."""

    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class AwayView:
    """The page for a moment at which there is no answer."""

    told: str
    seconds: int


def pay_view(
    link: PaymentLink, amount: int, shop: str, api: str, another: str, language: PageLanguage
) -> PayView:
    """The page for a link and its amount. `api`: the address of the payments API; `another`: that
    of the till, empty for a link whose amount is fixed."""
    host = host_of(link.redirect)
    amount_text = language.amount(amount, link.currency)
    values = {"shop": shop, "amount": amount_text, "host": host, "number": TEST_CARD}
    script = {
        "api": api,
        "key": link.key,
        "isTest": link.is_test,
        "isRecurring": link.is_recurring,
        "amount": {
            "currency": link.currency.code,
            "exponent": link.currency.exponent,
            "value": amount,
        },
        "text": link.text,
        "reference": link.reference,
        "redirect": link.redirect,
        "another": another,
        "language": language.tag,
        "texts": {
            name: _filled(text, values)
            for name, text in language.texts.items()
            if name.startswith(_SCRIPTS_TEXTS)
        },
    }
    return PayView(
        shop=shop,
        amount=amount_text,
        text=link.text,
        host=host,
        redirect=link.redirect,
        is_test=link.is_test,
        is_recurring=link.is_recurring,
        outcomes=outcomes(link.currency) if link.is_test else (),
        test_card=TEST_CARD,
        another=another,
        script=json.dumps(script, ensure_ascii=False, separators=(",", ":")),
    )


def till_view(
    link: PaymentLink,
    shop: str,
    fields: Sequence[tuple[str, str]],
    language: PageLanguage,
    typed: str = "",
    problem: str = "",
) -> TillView:
    """The page that asks for an amount; `problem`: what is wrong with the one that was typed."""
    return TillView(
        shop=shop,
        currency=link.currency.code,
        example=typed_example(link.currency, language),
        is_test=link.is_test,
        fields=fields,
        typed=typed,
        problem=problem,
    )


def fault_view(faults: Sequence[LinkFault], language: PageLanguage) -> FaultView:
    """The page for a link that does not work."""
    return FaultView(tuple(fault_text(each, language) for each in faults))


def fault_text(fault: LinkFault, language: PageLanguage) -> str:
    """A fault in words."""
    exponent = fault.decimals if fault.fault is Fault.VALUE_MALFORMED else 0
    return language.text(
        f"fault.{fault.fault.value}",
        field=fault.field,
        value=fault.value,
        currency=fault.currency,
        decimals=fault.decimals,
        example=major_text(int(EXAMPLE), exponent),
    )


def typed_example(currency: CurrencyEntry, language: PageLanguage) -> str:
    """An amount as one would type it."""
    return major_text(int(EXAMPLE), currency.exponent).replace(".", language.decimal_mark)


def host_of(redirect: str) -> str:
    """The name that people know an address by."""
    return urlsplit(redirect).netloc if redirect else ""


def _filled(text: str, values: dict[str, str]) -> str:
    """The text with what is known here; the script puts in the rest."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
