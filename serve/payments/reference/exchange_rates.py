"""Exchange rates between minor units, as whole numbers (part C, Foreign exchange).

A table says what one major unit of its base buys: r(S) of the source, r(T) of the target. So one
minor unit of S, with its exponent e(S), is worth

    r(T) / r(S) * 10^e(T) / 10^e(S)    minor units of T

which is kept as a fraction in lowest terms, of numbers up to 2^53-1; a longer one is the nearest of
these. Nothing is a float, and no amount is rounded here: the ledger does that, once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Protocol

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency, Rate
from tollgate.serve.payments.reference.currencies import Currencies
from tollgate.serve.payments.reference.data_file import DataNode

_RATE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ExchangeRates(Protocol):
    """The port to a source of rates."""

    def rate(self, source: Currency, target: Currency, at_ms: int) -> Rate | None:
        """The rate that holds at that time; None when there is none. A currency is worth itself."""


@dataclass(frozen=True, slots=True)
class DatedRates:
    """The prices of one major unit of the base from the day `dated` on, UTC."""

    dated: str
    from_ms: int
    per_base: Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class TableOfRates:
    """Exchange rates from dated tables, newest first: the first that is not dated later holds."""

    currencies: Currencies
    tables: Sequence[DatedRates]
    # Of each table and pair of currencies once: fractions are slow.
    _found: dict[tuple[str, Currency, Currency], Rate | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    def rate(self, source: Currency, target: Currency, at_ms: int) -> Rate | None:
        table = next((each for each in self.tables if each.from_ms <= at_ms), None)
        if source == target:
            return Rate(source, target, 1, 1, table.dated if table else "")
        if table is None or not (source in table.per_base and target in table.per_base):
            return None
        place = (table.dated, source, target)
        if place not in self._found:
            self._found[place] = self._rate(table, source, target)
        return self._found[place]

    def _rate(self, table: DatedRates, source: Currency, target: Currency) -> Rate | None:
        worth = (table.per_base[target] * self._minor_per_major(target)) / (
            table.per_base[source] * self._minor_per_major(source)
        )
        if max(worth, 1 / worth) > AMOUNT_MAX // 2:
            return None
        worth = worth.limit_denominator(int(AMOUNT_MAX / (worth + 1)))
        return Rate(
            source,
            target,
            worth.numerator,
            worth.denominator,
            table.dated,
            self.currencies.exponent(source),
            self.currencies.exponent(target),
        )

    def _minor_per_major(self, code: Currency) -> int:
        return int(10 ** self.currencies.exponent(code))


def read_exchange_rates(root: DataNode, currencies: Currencies) -> TableOfRates:
    """The tables of `exchange-rates.yaml`. Raises DataFileError."""
    fields = root.fields(("version", "base", "tables"))
    fields["version"].integer()
    base = _known(fields["base"].text(), fields["base"], currencies)
    tables: dict[str, DatedRates] = {}
    for node in fields["tables"].items():
        table = _table(node, base, currencies)
        if table.dated in tables:
            node.refuse(f"there is a table dated {table.dated} already")
        tables[table.dated] = table
    if not tables:
        fields["tables"].refuse("holds no table")
    return TableOfRates(currencies, [tables[dated] for dated in sorted(tables, reverse=True)])


def _table(node: DataNode, base: str, currencies: Currencies) -> DatedRates:
    fields = node.fields(("dated", "rates"))
    per_base = {base: Fraction(1)}
    for code, rate in fields["rates"].pairs():
        if _known(code, rate, currencies) == base:
            rate.refuse("is the base, which is worth 1 of itself")
        text = rate.text()
        if not _RATE.fullmatch(text) or not (worth := Fraction(text)):
            rate.refuse(f'{text!r} is not a positive decimal number such as "7.4690"')
        per_base[code] = worth
    dated = fields["dated"].text()
    return DatedRates(dated, _start_of_day_ms(dated, fields["dated"]), per_base)


def _known(code: str, node: DataNode, currencies: Currencies) -> str:
    if currencies.find(code) is None:
        node.refuse(f"{code!r} is not a known currency")
    return code


def _start_of_day_ms(text: str, node: DataNode) -> int:
    if not _DATE.fullmatch(text):
        node.refuse(f"{text!r} is not a date such as 2025-01-01")
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        node.refuse(f"{text!r} is not a day of the calendar")
    return int(day.timestamp()) * 1000
