"""Part C as data: what `configs/payments` holds, read once and never changed afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency, Price, Pricing
from tollgate.serve.payments.reference.currencies import Currencies, read_currencies
from tollgate.serve.payments.reference.data_file import DataNode, read_data_file
from tollgate.serve.payments.reference.exchange_rates import ExchangeRates, RateFile
from tollgate.serve.payments.reference.processing_errors import (
    ProcessingErrors,
    read_processing_errors,
)

CURRENCIES_FILE = "currencies.yaml"
RATES_FILE = "exchange-rates.yaml"
IBAN_LENGTH_MIN = 5
IBAN_LENGTH_MAX = 34  # ISO 13616
PPM = 1_000_000
# Every code of part C: code may name any of them.
ERROR_CODES = frozenset((*range(1, 23), *range(25, 32)))


@dataclass(frozen=True, slots=True)
class ReferenceData:
    """All tables. `iban_lengths`: by country. `pricing`: of a merchant without an agreement."""

    currencies: Currencies
    rates: ExchangeRates
    errors: ProcessingErrors
    countries: frozenset[str]
    iban_lengths: Mapping[str, int]
    pricing: Pricing


def load_reference(folder: Path) -> ReferenceData:
    """The tables of the folder `configs/payments`. Raises DataFileError: one line, with file and
    line, for the first thing that is wrong."""
    currencies = read_currencies(read_data_file(folder / CURRENCIES_FILE))
    errors = read_data_file(folder / "processing-errors.yaml")
    return ReferenceData(
        currencies=currencies,
        rates=RateFile(folder / RATES_FILE, currencies),
        errors=read_processing_errors(errors, ERROR_CODES),
        countries=read_countries(read_data_file(folder / "countries.yaml")),
        iban_lengths=read_iban_lengths(read_data_file(folder / "iban-lengths.yaml")),
        pricing=read_pricing(read_data_file(folder / "fees.yaml"), currencies),
    )


def read_countries(root: DataNode) -> frozenset[str]:
    """The codes of `countries.yaml`. Raises DataFileError."""
    fields = root.fields(("version", "countries"))
    fields["version"].integer()
    found: set[str] = set()
    for node in fields["countries"].items():
        code = node.text()
        _check_country(code, node)
        if code in found:
            node.refuse(f"{code} is there twice")
        found.add(code)
    if not found:
        fields["countries"].refuse("holds no country")
    return frozenset(found)


def read_iban_lengths(root: DataNode) -> Mapping[str, int]:
    """The table of `iban-lengths.yaml`. Raises DataFileError."""
    fields = root.fields(("version", "lengths"))
    fields["version"].integer()
    lengths: dict[str, int] = {}
    for code, node in fields["lengths"].pairs():
        _check_country(code, node)
        lengths[code] = node.integer()
        if not IBAN_LENGTH_MIN <= lengths[code] <= IBAN_LENGTH_MAX:
            node.refuse(f"is not between {IBAN_LENGTH_MIN} and {IBAN_LENGTH_MAX}")
    return lengths


def read_pricing(root: DataNode, currencies: Currencies) -> Pricing:
    """The fees of `fees.yaml`. Raises DataFileError."""
    fields = root.fields(("version", "rate_ppm", "flat", "dispute"))
    fields["version"].integer()
    rate_ppm = fields["rate_ppm"].integer()
    if not 0 <= rate_ppm <= PPM:
        fields["rate_ppm"].refuse(f"is not between 0 and {PPM}")
    return Pricing(
        rate_ppm, _price(fields["flat"], currencies), _price(fields["dispute"], currencies)
    )


def _price(node: DataNode, currencies: Currencies) -> Price:
    fields = node.fields(("currency", "amount"))
    code, amount = fields.text("currency"), fields["amount"].integer()
    facts = currencies.find(code)
    if facts is None or facts.is_deprecated:
        fields["currency"].refuse(f"{code!r} is not a currency of today")
    if not 0 <= amount <= AMOUNT_MAX:
        fields["amount"].refuse("is not between 0 and 2^53-1")
    return Price(Currency(code), amount, facts.exponent)


def _check_country(code: str, node: DataNode) -> None:
    if len(code) != 2 or not (code.isascii() and code.isalpha() and code.isupper()):
        node.refuse(f"{code!r} is not two capital letters")
