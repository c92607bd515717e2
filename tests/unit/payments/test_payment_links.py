"""Amounts in major units, and the queries of payment links."""

from typing import Any

import pytest

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency
from tollgate.serve.payments.checkout.major_units import (
    AmountFault,
    major_text,
    minor_units,
    typed_decimal,
)
from tollgate.serve.payments.checkout.page.link import (
    Fault,
    PaymentLink,
    is_fit_to_return_to,
    query_text,
    read_link,
    read_query,
)
from tollgate.serve.payments.reference.currencies import Currencies, CurrencyEntry

CURRENCIES = Currencies(
    1,
    {
        code: CurrencyEntry(
            Currency(code), exponent, is_fundable=code == "EUR", is_deprecated=code == "HRK"
        )
        for code, exponent in (("EUR", 2), ("JPY", 0), ("KWD", 3), ("HRK", 2))
    },
)


@pytest.mark.parametrize(
    ("text", "exponent", "amount"),
    [
        ("12.50", 2, 1250),
        ("12.5", 2, 1250),
        ("12", 2, 1200),
        ("12.", 2, 1200),
        (".5", 2, 50),
        ("0.01", 2, 1),
        ("12.500", 2, 1250),
        ("1.005", 3, 1005),
        ("100", 0, 100),
        ("100.0", 0, 100),
        ("007", 2, 700),
        # (as floats these are 1.1499999999999999 and 4.3499999999999996)
        ("1.15", 2, 115),
        ("4.35", 2, 435),
        ("90071992547409.91", 2, AMOUNT_MAX),
        ("90071992547409.92", 2, AmountFault.TOO_LARGE),
        ("0.00", 2, AmountFault.ZERO),
        ("12.505", 2, AmountFault.TOO_FINE),
        ("1.5", 0, AmountFault.TOO_FINE),
        ("3.3000000000000003", 2, AmountFault.TOO_FINE),
        ("", 2, AmountFault.MALFORMED),
        (".", 2, AmountFault.MALFORMED),
        ("12,50", 2, AmountFault.MALFORMED),
        ("-1", 2, AmountFault.MALFORMED),
        ("+1", 2, AmountFault.MALFORMED),
        ("1e3", 2, AmountFault.MALFORMED),
        ("1 000", 2, AmountFault.MALFORMED),
        ("١٢", 2, AmountFault.MALFORMED),
        ("9" * 41, 2, AmountFault.MALFORMED),
    ],
)
def test_a_decimal_is_an_amount_or_says_why_not(
    text: str, exponent: int, amount: int | AmountFault
) -> None:
    assert minor_units(text, exponent) == amount


@pytest.mark.parametrize("exponent", [0, 2, 3])
@pytest.mark.parametrize("amount", [1, 9, 10, 99, 100, 1_005, 123_456_789, AMOUNT_MAX])
def test_amounts_come_back(amount: int, exponent: int) -> None:
    assert minor_units(major_text(amount, exponent), exponent) == amount


@pytest.mark.parametrize(
    ("typed", "mark", "decimal"),
    [
        ("12", ",", "12"),
        ("12,50", ",", "12.50"),
        ("12.50", ",", "12.50"),
        ("12,5", ".", "12.5"),
        ("1.250,00", ",", "1250.00"),
        ("1,250.00", ".", "1250.00"),
        ("1.250", ",", "1250"),
        ("1,250", ".", "1250"),
        ("1.250", ".", "1.250"),
        ("1,250", ",", "1.250"),
        ("1.250.000", ",", "1250000"),
        ("1 250,50", ",", "1250.50"),
        ("1\u202f250,50", ",", "1250.50"),
        ("1’250.50", ".", "1250.50"),
    ],
)
def test_a_typed_amount_is_read_as_its_writer_means_it(typed: str, mark: str, decimal: str) -> None:
    assert typed_decimal(typed, mark) == decimal


@pytest.mark.parametrize("typed", ["1,2,3", "12.50.0", "1.25,00", "1,250.00.0", "0.125.000", "abc"])
def test_what_can_be_meant_in_two_ways_is_no_amount(typed: str) -> None:
    assert minor_units(typed_decimal(typed, ","), 2) is AmountFault.MALFORMED


def link_of(**fields: str) -> Any:
    return read_link(read_query(query_text({"key": "k", **fields})), CURRENCIES, "EUR")


def test_all_of_a_link_is_read() -> None:
    link = link_of(
        test="1",
        currency="jpy",
        value="1200",
        reference="order 7",
        text="Two\ncoffees \u202e",
        redirect="https://shop.example/thanks?order=7#top",
        locale="en_US",
        recurring="y",
        utm_source="mail",
    )
    assert isinstance(link, PaymentLink)
    assert (link.is_test, link.is_recurring, link.is_till) == (True, True, False)
    assert (link.currency.code, link.amount, link.reference) == ("JPY", 1200, "order 7")
    assert link.text == "Twocoffees"
    assert link.redirect == "https://shop.example/thanks?order=7#top"


def test_without_a_currency_it_is_the_merchants_and_without_a_value_the_till() -> None:
    link = link_of()
    assert isinstance(link, PaymentLink)
    assert (link.currency.code, link.amount) == ("EUR", None)


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        ({"value": "1,50"}, [Fault.VALUE_MALFORMED]),
        ({"value": "0"}, [Fault.VALUE_ZERO]),
        ({"value": "1.505"}, [Fault.VALUE_TOO_FINE]),
        ({"value": "1.5", "currency": "JPY"}, [Fault.VALUE_TOO_FINE]),
        ({"value": "9" * 20}, [Fault.VALUE_TOO_LARGE]),
        ({"currency": "EURO", "value": "x"}, [Fault.CURRENCY_UNKNOWN, Fault.VALUE_MALFORMED]),
        ({"currency": "HRK"}, [Fault.CURRENCY_DEPRECATED]),
        ({"test": "2"}, [Fault.FLAG]),
        ({"recurring": "maybe"}, [Fault.FLAG]),
        ({"text": "x" * 301}, [Fault.TEXT_TOO_LONG]),
        ({"reference": "x" * 2_000}, [Fault.TEXT_TOO_LONG]),
        ({"redirect": "javascript:alert(1)"}, [Fault.REDIRECT]),
        ({"key": ""}, [Fault.KEY_MISSING]),
    ],
)
def test_all_that_is_wrong_with_a_link_is_said(fields: dict[str, str], faults: list[Fault]) -> None:
    found = link_of(**fields)
    assert not isinstance(found, PaymentLink)
    assert [each.fault for each in found] == faults


def test_a_parameter_that_is_there_twice_is_refused_unless_it_says_the_same() -> None:
    twice = read_link(read_query("key=k&value=1&value=2"), CURRENCIES, "EUR")
    assert not isinstance(twice, PaymentLink)
    assert [(each.fault, each.field) for each in twice] == [(Fault.TWICE, "value")]
    same = read_link(read_query("key=k&value=1&value=1&x=1&x=2"), CURRENCIES, "EUR")
    assert isinstance(same, PaymentLink)


@pytest.mark.parametrize(
    "query", ["key=k&text=" + "x" * 9_000, "&".join(f"a{n}=1" for n in range(65))]
)
def test_a_query_has_an_end(query: str) -> None:
    assert [each.fault for each in read_query(query).faults] == [Fault.QUERY_TOO_LONG]


@pytest.mark.parametrize(
    ("url", "is_fit"),
    [
        ("https://shop.example/thanks?a=1", True),
        ("http://localhost:3000", True),
        ("https://[2001:db8::1]/x", True),
        ("https://bücher.example/", True),
        ("ftp://shop.example", False),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//shop.example", False),
        ("/thanks", False),
        ("https://", False),
        ("https:shop.example", False),
        ("https://shop.example@evil.example/", False),
        ("https://shop.example\\@evil.example/", False),
        ("https://shop.example/\n", False),
        (" https://shop.example", False),
        ("https://shop.example:99999/", False),
        ("https://[::1", False),
        ("https://shop.example/" + "x" * 2_048, False),
    ],
)
def test_customers_are_sent_to_addresses_of_the_web_alone(url: str, is_fit: bool) -> None:
    assert is_fit_to_return_to(url) is is_fit
