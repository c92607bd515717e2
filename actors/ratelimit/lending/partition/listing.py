"""Pages of the counters that a partition owns, slot by slot, for operators.

A slot that is too large for one page is gone through by the hashes of its keys: each page shows a
part of all hashes, the smaller the more counters there are. A key keeps its hash, so a counter that
stays is on exactly one page, whatever comes and goes meanwhile; and no page copies a slot or puts
it in order, for hits wait until it is made.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tollgate.actors.ratelimit.counting.counter_row import CounterRow
from tollgate.actors.ratelimit.lending.messages import CounterName
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.slot_table import Names
from tollgate.actors.ratelimit.lending.terms import SLOTS, slot_of

LOOKED_AT_MAX = 1_024
"""A page looks at about so many counters at most. Of the others of a slot it only sees the hash."""
HASHES = 1 << 16
SALT = hash(b"counters") % (1 << 62)
"""Another process hashes otherwise, and begins the slot again that it is asked to go on with."""


class Place(NamedTuple):
    """Before the counters of `slot` whose hashes are not below `first`, under `salt`."""

    slot: int
    first: int
    salt: int


class NamesPage(NamedTuple):
    """`after`: where the next page goes on; None: there is none. A page may be empty, and others
    follow."""

    names: list[CounterName]
    after: Place | None


def page_of(names_of: Callable[[int], Names], after: Place | None) -> NamesPage:
    """The counters after a place (None: from the first). `names_of`: those of a slot."""
    begin, first = (0, 0) if after is None else (after.slot, after.first)
    if after is not None and after.salt != SALT:
        first = 0
    found: list[CounterName] = []
    for slot in range(begin, SLOTS):
        windows = names_of(slot)
        size = sum(len(keys) for _, keys in windows)
        if not first and len(found) + size <= LOOKED_AT_MAX:
            found += [(end_s, key) for end_s, keys in windows for key in keys]
            continue
        if found:
            return NamesPage(found, Place(slot, 0, SALT))
        end = first + max(1, HASHES * LOOKED_AT_MAX // max(size, LOOKED_AT_MAX))
        found = [
            (end_s, key)
            for end_s, keys in windows
            for key in keys
            if first <= hash(key) % HASHES < end
        ]
        after = Place(slot, end, SALT) if end < HASHES else Place(slot + 1, 0, SALT)
        return NamesPage(found, after if after.slot < SLOTS else None)
    return NamesPage(found, None)


class Listing:
    """The counters of one partition that lends."""

    def __init__(self, counters: LentCounters) -> None:
        self._counters = counters

    def page(self, after: Place | None, wall_s: float) -> NamesPage:
        """The live counters after a place (None: from the first)."""
        return page_of(lambda slot: self._names(slot, wall_s), after)

    def rows(self, names: Iterable[CounterName]) -> list[CounterRow]:
        """Counters as they are, but for those that are not there any more."""
        rows = (self._row(*name) for name in names)
        return [row for row in rows if row is not None]

    def find(self, keys: Iterable[bytes], wall_s: float) -> list[CounterRow]:
        """The live counters of these keys, in all their windows."""
        ends_s = [end_s for end_s in self._counters.table.ends_s if end_s > wall_s]
        return self.rows((end_s, key) for key in keys for end_s in ends_s)

    def _names(self, slot: int, wall_s: float) -> Names:
        names = self._counters.names(slot)
        return [(end_s, keys) for end_s, keys in names if end_s > wall_s]

    def _row(self, end_s: int, key: bytes) -> CounterRow | None:
        number = slot_of(key)
        if not self._counters.has(number, end_s, key):
            return None
        slot = self._counters.slots[number]
        loans = slot.loans.get((end_s, key), {})
        limit = max((loan.limit for loan in loans.values()), default=None)
        hits = self._counters.known(end_s, key)
        return CounterRow(end_s, key, hits, limit, slot.holder, len(loans))
