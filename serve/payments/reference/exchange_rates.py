"""Exchange rates between minor units, as whole numbers (part C, Foreign exchange).

A table says what one major unit of its base buys: r(S) of the source, r(T) of the target. So one
minor unit of S, with its exponent e(S), is worth

    r(T) / r(S) * 10^e(T) / 10^e(S)    minor units of T

which is kept as a fraction in lowest terms, of numbers up to 2^53-1; a longer one is the nearest of
these. Nothing is a float, and no amount is rounded here: the ledger does that, once.

The file is read again when it has changed (`reload`), in every process for itself. No two of them
have to agree: the rate of an exchange is looked up once, goes to the book with the command, and is
kept with the entry.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from msgspec import UNSET, UnsetType

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency, Rate, RateTable
from tollgate.serve.payments.reference.currencies import Currencies
from tollgate.serve.payments.reference.data_file import DataFileError, DataNode, read_data_file

LOG = logging.getLogger("tollgate.payments")
# What is shown of their age.
RATES_AGE = "payments.exchange_rates.age_seconds"
_RATE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class ExchangeRates(Protocol):
    """A source of rates."""

    def rate(self, source: Currency, target: Currency, at_ms: int) -> Rate | None:
        """The rate that holds at that time; None when there is none. A currency is worth itself."""

    def table(self, at_ms: int, age_max_ms: int) -> RateTable:
        """The table that `rate` looks into at that time, and until when it is young enough."""

    def reload(self) -> None:
        """Takes over what has changed at the source."""


def rates_age_s(rates: ExchangeRates, at_ms: int) -> float:
    """The age of the table that holds at that time, in seconds, from the beginning of its day;
    without one the time since 1970."""
    return (at_ms - rates.table(at_ms, age_max_ms=0).until_ms) / 1_000


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
    file: str = ""
    provider: str | UnsetType = UNSET
    # Of each table and pair of currencies once: fractions are slow.
    _found: dict[tuple[str, Currency, Currency], Rate | None] = field(
        default_factory=dict, repr=False, compare=False
    )

    def table(self, at_ms: int, age_max_ms: int) -> RateTable:
        found = self._table(at_ms)
        if found is None:
            return RateTable(self.file, "", 0)
        return RateTable(self.file, found.dated, found.from_ms + age_max_ms)

    def _table(self, at_ms: int) -> DatedRates | None:
        return next((each for each in self.tables if each.from_ms <= at_ms), None)

    def rate(self, source: Currency, target: Currency, at_ms: int) -> Rate | None:
        table = self._table(at_ms)
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
            self.provider,
        )

    def _minor_per_major(self, code: Currency) -> int:
        return int(10 ** self.currencies.exponent(code))


def read_exchange_rates(root: DataNode, currencies: Currencies) -> TableOfRates:
    """The tables of `exchange-rates.yaml`. Raises DataFileError."""
    fields = root.fields(("version", "base", "tables"), ("provider",))
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
    newest_first = [tables[dated] for dated in sorted(tables, reverse=True)]
    name = root.file.rpartition("/")[2]
    return TableOfRates(currencies, newest_first, name, fields.text("provider") or UNSET)


class RateFile:
    """ExchangeRates from a file, as it is now or, while it cannot be read, as it was."""

    def __init__(self, path: Path, currencies: Currencies) -> None:
        """Raises DataFileError."""
        self._path = path
        self._currencies = currencies
        self._mark = self._marked()
        self._rates = self._read()

    def rate(self, source: Currency, target: Currency, at_ms: int) -> Rate | None:
        return self._rates.rate(source, target, at_ms)

    def table(self, at_ms: int, age_max_ms: int) -> RateTable:
        return self._rates.table(at_ms, age_max_ms)

    def reload(self) -> None:
        """Reads the file if it has changed. One that cannot be read is a line in the log, and
        changes nothing."""
        mark = self._marked()
        if mark == self._mark:
            return
        self._mark = mark
        try:
            self._rates = self._read()
        except DataFileError as error:
            LOG.error("%s; the exchange rates stay as they were", error)
            return
        LOG.info("%s: read again", self._path)

    def _read(self) -> TableOfRates:
        return read_exchange_rates(read_data_file(self._path), self._currencies)

    def _marked(self) -> tuple[int, int, int] | None:
        """Differs when the file does; None without one."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


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
