"""The tables of part C from text: what is read, and the one line for what cannot be."""

from collections.abc import Callable
from fractions import Fraction

import pytest

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Advice, Currency, Rate
from tollgate.serve.payments.reference.currencies import Currencies, read_currencies
from tollgate.serve.payments.reference.data_file import DataFileError, DataNode, read_data_text
from tollgate.serve.payments.reference.exchange_rates import TableOfRates, read_exchange_rates
from tollgate.serve.payments.reference.processing_errors import read_processing_errors
from tollgate.serve.payments.reference.tables import read_countries, read_iban_lengths, read_pricing

CURRENCIES = """version: 1
currencies:
  EUR: {exponent: 2, fundable: true}
  DKK: {exponent: 2, fundable: true}
  JPY: {exponent: 0}
  BHD: {exponent: 3}
  HRK: {exponent: 2, deprecated: true}
"""
RATES = """version: 1
base: EUR
tables:
  - dated: 2025-01-01
    rates: {DKK: "7.5", JPY: "160", BHD: 0.4}
  - dated: 2025-02-01
    rates: {DKK: "7.4"}
"""
ERRORS = """version: 1
advice: {retry_after_hours: 24, attempts_max: 5, never: Do not., later: Wait.}
errors:
  6: {message: Card expired, client: true, recurring: true, retry: never, text: It has expired.}
  12: {message: Generic, client: true, merchant: true, text: It failed.}
"""
JANUARY_MS = 1_736_000_000_000
FEBRUARY_MS = 1_739_000_000_000
BEFORE_MS = 1_700_000_000_000


def root(text: str) -> DataNode:
    return read_data_text("table.yaml", text.encode())


def currencies() -> Currencies:
    return read_currencies(root(CURRENCIES))


def rates() -> TableOfRates:
    return read_exchange_rates(root(RATES), currencies())


def rate(source: str, target: str, at_ms: int) -> Rate | None:
    return rates().rate(Currency(source), Currency(target), at_ms)


def test_a_currency_is_found_with_its_exponent() -> None:
    table = currencies()
    assert table.fundable == ("DKK", "EUR")
    found = table.find("BHD")
    assert found is not None
    assert (found.exponent, found.is_fundable, found.is_deprecated) == (3, False, False)
    assert table.find("XXX") is None


@pytest.mark.parametrize(
    ("source", "target", "worth"),
    [
        ("EUR", "DKK", Fraction("7.5")),
        ("DKK", "EUR", 1 / Fraction("7.5")),
        ("EUR", "JPY", Fraction(160, 100)),
        ("JPY", "EUR", Fraction(100, 160)),
        ("JPY", "BHD", Fraction("0.4") / 160 * 1000),
        ("BHD", "DKK", Fraction("7.5") / Fraction("0.4") * 100 / 1000),
        ("DKK", "DKK", Fraction(1)),
    ],
)
def test_a_rate_is_between_minor_units(source: str, target: str, worth: Fraction) -> None:
    found = rate(source, target, JANUARY_MS)
    assert found is not None
    assert (found.source, found.target, found.dated) == (source, target, "2025-01-01")
    assert (found.numerator, found.denominator) == (worth.numerator, worth.denominator)


def test_the_newest_table_that_is_not_of_the_future_holds() -> None:
    february = rate("EUR", "DKK", FEBRUARY_MS)
    assert february is not None
    assert Fraction(february.numerator, february.denominator) == Fraction("7.4")
    assert february.dated == "2025-02-01"
    assert rate("EUR", "JPY", FEBRUARY_MS) is None, "tables are not mixed"
    assert rate("EUR", "DKK", BEFORE_MS) is None
    assert rate("EUR", "HRK", JANUARY_MS) is None


def test_a_currency_is_worth_itself_without_any_table() -> None:
    assert rate("HRK", "HRK", BEFORE_MS) == Rate(Currency("HRK"), Currency("HRK"), 1, 1, "")


def test_the_numbers_of_a_rate_can_be_calculated_with() -> None:
    odd = RATES.replace('"7.5"', "999999.999999999").replace("0.4", "0.400000000001")
    table = read_exchange_rates(root(odd), currencies())
    exact = Fraction("999999.999999999") / Fraction("0.400000000001") * 100 / 1000
    for source, target, worth in (("BHD", "DKK", exact), ("DKK", "BHD", 1 / exact)):
        found = table.rate(Currency(source), Currency(target), JANUARY_MS)
        assert found is not None
        assert 0 < found.numerator <= AMOUNT_MAX
        assert 0 < found.denominator <= AMOUNT_MAX
        error = abs(Fraction(found.numerator, found.denominator) / worth - 1)
        assert error < Fraction(1, 10**15)


def test_a_rate_beyond_all_numbers_is_none() -> None:
    absurd = RATES.replace('"7.5"', "999999999999").replace("0.4", "0.000000000001")
    table = read_exchange_rates(root(absurd), currencies())
    assert table.rate(Currency("BHD"), Currency("DKK"), JANUARY_MS) is None
    assert table.rate(Currency("DKK"), Currency("BHD"), JANUARY_MS) is None
    assert table.rate(Currency("EUR"), Currency("DKK"), JANUARY_MS) is not None


def test_errors_and_their_advice() -> None:
    table = read_processing_errors(root(ERRORS), frozenset({6, 12}))
    assert table.error(6).message == "Card expired"
    assert (table.error(6).is_client, table.error(6).is_merchant) == (True, False)
    assert table.error(6).text == "It has expired."
    assert table.error(6).advice == Advice(0, 0, "Do not.")
    assert table.error(12).advice == Advice(24, 5, "Wait.")
    assert (table[6].is_usual_for_recurring, table[12].is_usual_for_recurring) == (True, False)


def read_errors(node: DataNode) -> object:
    return read_processing_errors(node, frozenset({6}))


def read_rates(node: DataNode) -> object:
    return read_exchange_rates(node, currencies())


def read_fees(node: DataNode) -> object:
    return read_pricing(node, currencies())


Read = Callable[[DataNode], object]
FEES = "version: 1\nrate_ppm: 5\nflat: {currency: EUR, amount: 1}\ndispute: "
BAD: list[tuple[Read, str, str]] = [
    (read_currencies, "", "table.yaml: is empty"),
    (read_currencies, "a: [", "table.yaml:2: "),
    (read_currencies, "- 1", "table.yaml:1: is not a mapping"),
    (read_currencies, "version: 1", "table.yaml:1: currencies is missing"),
    (read_currencies, f"{CURRENCIES}---\na: 1", "table.yaml:1: holds more than one document"),
    (read_currencies, f"{CURRENCIES}more: 1", "table.yaml:8: more: is unknown; known here: "),
    (read_currencies, f"{CURRENCIES}  EUR: {{exponent: 2}}", "table.yaml:3: currencies.EUR: is th"),
    (
        read_currencies,
        f"{CURRENCIES}  eur: {{exponent: 2}}",
        "table.yaml:8: currencies.eur: is not",
    ),
    (
        read_currencies,
        f"{CURRENCIES}  USD: {{exponent: 9}}",
        "8: currencies.USD.exponent: is not b",
    ),
    (read_currencies, f"{CURRENCIES}  USD: {{exponent: '2'}}", "is not a whole number"),
    (read_currencies, f"{CURRENCIES}  USD: {{exponent: 2.0}}", "is not a whole number"),
    (
        read_currencies,
        f"{CURRENCIES}  USD: {{}}",
        "table.yaml:8: currencies.USD: exponent is missi",
    ),
    (
        read_currencies,
        f"{CURRENCIES}  USD: {{exponent: 2, fundable: 1}}",
        "USD.fundable: is neither true nor false",
    ),
    (
        read_currencies,
        f"{CURRENCIES}  USD: {{exponent: 2, fundable: true, deprecated: true}}",
        "is fundable and deprecated",
    ),
    (read_currencies, "version: 1\ncurrencies: {}", "none is fundable"),
    (read_rates, RATES.replace("base: EUR", "base: XYZ"), "2: base: 'XYZ' is not a known currency"),
    (read_rates, RATES.replace('"7.4"', '"-1"'), "7: tables[1].rates.DKK: '-1' is not a positive"),
    (read_rates, RATES.replace('"7.4"', "0"), "'0' is not a positive decimal"),
    (read_rates, RATES.replace('"7.4"', "1e3"), "'1e3' is not a positive decimal"),
    (read_rates, RATES.replace('"7.4"', "{}"), "rates.DKK: is not a text"),
    (read_rates, RATES.replace("{DKK", "{EUR: 1, DKK"), "rates.EUR: is the base"),
    (read_rates, RATES.replace("-02-", "-01-"), "tables[1]: there is a table dated 2025-01-01"),
    (read_rates, RATES.replace("2025-02-01", "2025-02-30"), "is not a day of the calendar"),
    (read_rates, RATES.replace("2025-02-01", "soon"), "'soon' is not a date"),
    (read_rates, "version: 1\nbase: EUR\ntables: []", "table.yaml:3: tables: holds no table"),
    (read_errors, ERRORS.replace("6:", "7:"), "table.yaml:4: errors: code 6 is missing"),
    (read_errors, ERRORS.replace("12:", "xii:"), "errors.xii: is not a code"),
    (read_errors, ERRORS.replace("24", "0"), "advice.retry_after_hours: is not at least 1"),
    (read_errors, ERRORS.replace("retry: never", "retry: no"), "'no' is neither never nor later"),
    (read_errors, ERRORS.replace("client: true, merchant: true, ", ""), "is nobody's fault"),
    (read_countries, "version: 1\ncountries: [DK, DK]", "2: countries[1]: DK is there twice"),
    (read_countries, "version: 1\ncountries: [dk]", "countries[0]: 'dk' is not two capital"),
    (read_countries, "version: 1\ncountries: []", "holds no country"),
    (read_iban_lengths, "version: 1\nlengths: {DK: 3}", "lengths.DK: is not between 5 and 34"),
    (read_iban_lengths, "version: 1\nlengths: {D: 18}", "lengths.D: 'D' is not two capital"),
    (read_fees, f"{FEES}{{currency: HRK, amount: 1}}", "'HRK' is not a currency of today"),
    (read_fees, f"{FEES}{{currency: EUR, amount: -1}}", "dispute.amount: is not between 0"),
    (read_fees, FEES.replace("5", "1000001") + "{}", "rate_ppm: is not between 0 and 1000000"),
]


@pytest.mark.parametrize(("read", "text", "line"), BAD)
def test_a_bad_table_is_refused_in_one_line(read: Read, text: str, line: str) -> None:
    with pytest.raises(DataFileError) as caught:
        read(root(text))
    assert line in str(caught.value)
    assert str(caught.value).startswith("table.yaml:")
    assert "\n" not in str(caught.value)


def test_the_country_no_is_a_text() -> None:
    assert read_countries(root("version: 1\ncountries: [NO, DK]")) == {"NO", "DK"}
    assert read_iban_lengths(root("version: 1\nlengths: {NO: 15}")) == {"NO": 15}


def test_fees_are_read_exactly() -> None:
    pricing = read_fees(root(f"{FEES}{{currency: DKK, amount: 7}}"))
    assert "Pricing(rate_ppm=5" in repr(pricing)
