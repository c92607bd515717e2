"""Pages of the counters that a partition owns, in the order of their slots, for operators."""

from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import NamedTuple

from tollgate.actors.ratelimit.counting.counter_row import CounterRow
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.lending.partition.loans import Slot
from tollgate.actors.ratelimit.lending.terms import SLOTS, slot_of

SCANNED_MAX = 1_024
"""A page looks at no more counters than these, and those of one slot: hits wait meanwhile."""

Place = tuple[int, int, bytes]
"""(slot, end_s, key)"""


class CounterPage(NamedTuple):
    """`after`: where the next page goes on; None: there is none. A page may be short, or empty, and
    others follow."""

    rows: list[CounterRow]
    after: Place | None


def page_of(
    slots: list[Slot],
    columns_of: Callable[[int], list[CounterColumns]],
    after: Place | None,
    rows_max: int,
    *,
    wall_s: float,
    prefix: bytes,
) -> CounterPage:
    """Up to so many live counters after a place, whose keys begin with `prefix`."""
    rows: list[CounterRow] = []
    last = after
    scanned = 0
    for number in range(0 if after is None else after[0], SLOTS):
        if scanned >= SCANNED_MAX:
            return CounterPage(rows, (number, 0, b""))
        columns = columns_of(number)
        scanned += sum(len(keys) for _, keys, _ in columns)
        begin = after[1:] if after is not None and after[0] == number else (0, b"")
        found = (
            (end_s, key, count)
            for end_s, keys, counts in columns
            if end_s > wall_s and end_s >= begin[0]
            for key, count in zip(keys, counts, strict=True)
            if key.startswith(prefix) and (end_s > begin[0] or key > begin[1])
        )
        for end_s, key, count in nsmallest(rows_max - len(rows) + 1, found):
            if len(rows) >= rows_max:
                return CounterPage(rows, last)
            rows.append(_row(slots[number], end_s, key, count))
            last = (number, end_s, key)
    return CounterPage(rows, None)


def _row(slot: Slot, end_s: int, key: bytes, count: int) -> CounterRow:
    loans = slot.loans.get((end_s, key), {})
    limit = max((loan.limit for loan in loans.values()), default=None)
    return CounterRow(end_s, key, count, limit, slot.holder, len(loans))


def rows_of(
    slots: list[Slot],
    columns_of: Callable[[int], list[CounterColumns]],
    keys: Sequence[bytes],
    *,
    wall_s: float,
) -> list[CounterRow]:
    """The live counters of these keys, in all their windows."""
    return [
        _row(slots[slot_of(key)], end_s, key, counts[names.index(key)])
        for key in keys
        for end_s, names, counts in columns_of(slot_of(key))
        if end_s > wall_s and key in names
    ]
