"""Counters as operators see them: a row each, and what became of one that was to be reset."""

from typing import Any, NamedTuple


class CounterRow(NamedTuple):
    """`hits`: as far as fronts have reported. `limit`: the one that it was lent under, if it is.
    `holder`: the front that has its slot whole; `loans`: fronts with a loan of it."""

    end_s: int
    key: bytes
    hits: int
    limit: int | None = None
    holder: str | None = None
    loans: int = 0


class RowsPage(NamedTuple):
    """`after`: where the next page goes on, in words of the partition's own; None: there is none. A
    page may be empty, and others follow. Counters that are used meanwhile may be missed."""

    rows: list[CounterRow]
    after: Any


class CounterReset(NamedTuple):
    """The counter as it was. `failure`: the reason why it is not 0 now."""

    row: CounterRow
    failure: str | None
