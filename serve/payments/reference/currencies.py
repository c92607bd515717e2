"""The table of currencies: their decimals, and those that can fund a merchant (part C)."""

from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.actors.ledger.law.values import Currency
from tollgate.serve.payments.reference.data_file import DataNode

EXPONENT_MAX = 4
CODE_LENGTH = 3


@dataclass(frozen=True, slots=True)
class CurrencyEntry:
    """One currency. `exponent`: decimals of its major unit. `is_deprecated`: refused for anything
    new."""

    code: Currency
    exponent: int
    is_fundable: bool = False
    is_deprecated: bool = False


@dataclass(frozen=True, slots=True)
class Currencies:
    """The currencies by code."""

    version: int
    by_code: Mapping[str, CurrencyEntry]

    def find(self, code: str) -> CurrencyEntry | None:
        """The currency of a code in capitals; None when it is unknown."""
        return self.by_code.get(code)

    def exponent(self, code: Currency) -> int:
        """The decimals of a known currency's major unit."""
        return self.by_code[code].exponent

    @property
    def fundable(self) -> tuple[Currency, ...]:
        """The currencies that an account can be kept in, in alphabetical order."""
        return tuple(sorted(each.code for each in self.by_code.values() if each.is_fundable))


def read_currencies(root: DataNode) -> Currencies:
    """The table of `currencies.yaml`. Raises DataFileError."""
    fields = root.fields(("version", "currencies"))
    table = {code: _facts(code, node) for code, node in fields["currencies"].pairs()}
    currencies = Currencies(fields["version"].integer(), table)
    if not currencies.fundable:
        fields["currencies"].refuse("none is fundable, so that no merchant could be opened")
    return currencies


def _facts(code: str, node: DataNode) -> CurrencyEntry:
    if len(code) != CODE_LENGTH or not (code.isascii() and code.isalpha() and code.isupper()):
        node.refuse("is not three capital letters")
    fields = node.fields(("exponent",), ("fundable", "deprecated"))
    exponent = fields["exponent"].integer()
    if not 0 <= exponent <= EXPONENT_MAX:
        fields["exponent"].refuse(f"is not between 0 and {EXPONENT_MAX}")
    facts = CurrencyEntry(
        Currency(code), exponent, fields.is_set("fundable"), fields.is_set("deprecated")
    )
    if facts.is_fundable and facts.is_deprecated:
        node.refuse("is fundable and deprecated at once")
    return facts
