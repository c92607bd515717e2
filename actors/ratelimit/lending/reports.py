"""What a front has counted of its loans, and how much of that it has said to its partition.

    counted at home -> said in an item (Spent, Surrender, Return) -> taken

Counts are said as they are; what each item says for the first time is remembered until it is taken.
Should the partition take the front for lost, it goes on from what it has taken. The rest was within
its loans, and is told as soon as the two hear each other: as hits to be added (Unheard).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf

from tollgate.actors.ratelimit.lending.home_counters import HomeCounters
from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.messages import (
    CounterColumns,
    CounterName,
    FrontItem,
    PartitionItem,
    Return,
    Spent,
    Surrender,
    Unheard,
)
from tollgate.actors.ratelimit.lending.notes import Notes
from tollgate.actors.ratelimit.lending.terms import Terms

Stream = ItemStream[PartitionItem, FrontItem]


class Reports:
    """Of one front to one partition. At most `unacknowledged_max` items wait to be taken."""

    def __init__(self, terms: Terms, stream: Stream, home: HomeCounters, notes: Notes) -> None:
        self._terms = terms
        self._home = home
        self._notes = notes
        self._report_at_s = -inf
        # By item: the hits that it says for the first time, in the shape of a report.
        self._said: dict[int, Spent] = {}
        self.begin(stream)

    def begin(self, stream: Stream) -> None:
        """A new lease: nothing is said yet."""
        self._stream = stream
        self._report_item = 0
        self._said.clear()

    def report(self, now_s: float) -> None:
        """Say what has changed, when the report before has arrived."""
        taken = self._stream.acknowledged
        while self._said and (oldest := next(iter(self._said))) <= taken:
            del self._said[oldest]
        if now_s < self._report_at_s or taken < self._report_item:
            return
        if not (self._home.has_changed or self._notes.changed):
            return
        counters, hits = self._home.report(self._terms.reported_max)
        quotas, more = self._notes.report(self._terms.reported_max)
        if counters or quotas:
            self._report_item = self._say(Spent(counters, quotas), Spent(hits, more))
            self._report_at_s = now_s + self._terms.report_every_s

    def surrender(self, counters: Iterable[CounterName]) -> dict[CounterName, int]:
        """End the loans of these counters, as far as there are any: what was spent of each."""
        spent: dict[CounterName, int] = {}
        hits: list[tuple[CounterName, int]] = []
        for counter in counters:
            unsaid = self._notes.unsaid(counter)
            count = self._notes.end_loan(counter)
            if count is not None:
                spent[counter] = count
                hits.append((counter, unsaid))
        if spent:
            self._say(Surrender(list(spent.items())), Spent([], hits))
        return spent

    def give_slot(self, slot: int) -> None:
        """Give a slot back, if it is here."""
        if self._home.epoch(slot):
            changed, hits = self.keep_slot(slot)
            self._say(Return(slot, changed), Spent(hits, []))

    def keep_slot(self, slot: int) -> tuple[list[CounterColumns], list[CounterColumns]]:
        """A slot is not here any more: keep its counts as notes. What has changed of it, and the
        hits that were not said."""
        epoch = self._home.epoch(slot)
        changed, hits, everything = self._home.give_slot(slot)
        for end_s, keys, counts in everything:
            for key, count in zip(keys, counts, strict=True):
                self._notes.keep_whole((end_s, key), count, epoch)
        return changed, hits

    def _say(self, item: Spent | Surrender | Return, hits: Spent) -> int:
        number = self._stream.put(item)
        self._said[number] = hits
        return number

    # What was not heard

    def end_all(self, taken: int) -> list[Unheard]:
        """Every loan is over. What of them the partition has not heard, if it has taken no more
        than `taken` items."""
        hits: Counter[CounterName] = Counter()
        for number, said in self._said.items():
            if number > taken:
                _add(hits, said)
        for slot in self._home.slots():
            _add(hits, Spent(self.keep_slot(slot)[1], []))
        for counter, _ in self._notes.loans():
            hits[counter] += self._notes.unsaid(counter)
        self._notes.end_all()
        return list(_unheard(hits, self._terms.reported_max))


def _add(hits: Counter[CounterName], said: Spent) -> None:
    for end_s, keys, numbers in said.counters:
        for key, number in zip(keys, numbers, strict=True):
            hits[end_s, key] += number
    for counter, number in said.quotas:
        hits[counter] += number


def _unheard(hits: Counter[CounterName], counters_max: int) -> Iterator[Unheard]:
    names = sorted(counter for counter, number in hits.items() if number)
    for first in range(0, len(names), counters_max):
        columns: dict[int, CounterColumns] = {}
        for end_s, key in names[first : first + counters_max]:
            _, keys, numbers = columns.setdefault(end_s, (end_s, [], []))
            keys.append(key)
            numbers.append(hits[end_s, key])
        yield Unheard(list(columns.values()))
