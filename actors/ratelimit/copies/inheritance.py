"""What a partition that starts again finds of its forerunner in the memory of other partitions.

    all others are asked for a copy -> the latest -> its counters, page by page

The journal on this node's disk may be better, or of an earlier stay here:

    last written before the copy's origin began, and the copy is whole    the copy alone
    both of one process, and all that one of them has is in the other     the latter
    a counter that was reset since one of them was told of it             the other
    else                                                                  the larger of both counts

So never less is known than either of them knows, and a counter that was set to 0, or of which hits
were given back, does not come back from where that was not heard of.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Protocol

from tollgate.actors.ratelimit.copies.messages import CopyDescription, CopyPage
from tollgate.actors.ratelimit.lending.messages import CounterColumns, CounterName
from tollgate.actors.ratelimit.lending.partition.slot_table import side_by_side
from tollgate.actors.ratelimit.snapshots.restoration import JournalLeft

LOG = logging.getLogger("tollgate.counters")


class CopyHolders(Protocol):
    """The other partitions, as a new process sees them. Each question has an end."""

    def descriptions(self, partition: int) -> Iterator[tuple[int, CopyDescription]]:
        """(holder, copy) of all that there are of a partition, as the answers come."""

    def page(self, holder: int, partition: int, first_slot: int) -> CopyPage | None:
        """Counters of a copy, from a slot on; None: the holder does not answer."""


@dataclass(frozen=True, slots=True)
class FoundCopy:
    """Counters of a copy. `journals_after_s`: journals that nobody has written to after that time
    of day say nothing that it does not know better. `description`: of the copy, if it was read to
    its end; `resets`: with epochs in the place of counts."""

    counters: list[CounterColumns]
    journals_after_s: float = -inf
    description: CopyDescription | None = None
    resets: Sequence[CounterColumns] = ()


class Later(Enum):
    """The one of the two, if any, that knows all that the other knows."""

    JOURNAL = "journal"
    COPY = "copy"
    NEITHER = "neither"


def found_copy(
    holders: CopyHolders, partition: int, incarnation: int, skew_max_s: float
) -> FoundCopy:
    """The best copy there is of a partition, for a process of this incarnation. `skew_max_s`: how
    far clocks of nodes may be apart."""
    best: tuple[int, CopyDescription] | None = None
    for holder, copy in holders.descriptions(partition):
        if copy.origin.incarnation < incarnation and (best is None or _is_later(copy, best[1])):
            best = holder, copy
        if copy.origin.incarnation == incarnation - 1 and copy.whole_since_s is not None:
            break  # (nobody has a better one)
    if best is None:
        return FoundCopy([])
    holder, copy = best
    counters: list[CounterColumns] = []
    resets: Sequence[CounterColumns] = ()
    slot: int | None = 0
    while slot is not None:
        page = holders.page(holder, partition, slot)
        if page is None:
            LOG.error("the copy of partition %d was lost while it was being read", partition)
            return FoundCopy(counters)
        counters.extend(page.counters)
        resets = page.resets
        slot = page.after
    LOG.warning(
        "partition %d goes on from its copy in partition %d: %d counters",
        *(partition, holder, sum(len(keys) for _, keys, _ in counters)),
    )
    since_s = -inf if copy.whole_since_s is None else copy.whole_since_s - skew_max_s
    return FoundCopy(counters, since_s, copy, resets)


def _is_later(copy: CopyDescription, other: CopyDescription) -> bool:
    return (copy.origin.incarnation, copy.sent_s) > (other.origin.incarnation, other.sent_s)


def later_of(left: JournalLeft, copy: CopyDescription | None) -> Later:
    """The one that knows more, of a journal and a copy that one process was writing to."""
    if copy is None or not left.id or left.id != copy.origin.journal:
        return Later.NEITHER
    if left.mark is not None and left.mark >= copy.last_change:
        return Later.JOURNAL
    if left.mark is not None and copy.mark is not None and not left.is_behind:
        return Later.COPY if copy.mark >= left.mark else Later.NEITHER
    return Later.NEITHER


class Inheritance:
    """A journal and a copy of one partition, put together."""

    def __init__(self, copy: FoundCopy) -> None:
        self._copy = copy
        self._resets: dict[CounterName, int] = dict(_named(copy.resets))
        self._journal_resets: dict[CounterName, int] = {}

    def counters(
        self, journal: Iterable[CounterColumns], left: Callable[[], JournalLeft]
    ) -> Iterator[CounterColumns]:
        """The counters of the journal, in its order, and those of which the copy is to be believed
        behind them. `left`: of the journal, once it has been read."""
        known: dict[CounterName, int] = {}
        for columns in journal:
            if self._copy.counters:
                known.update(_named([columns]))
            yield columns
        said = left()
        self._journal_resets = said.resets
        later = later_of(said, self._copy.description)
        for end_s, keys, counts in self._copy.counters:
            names = ((end_s, key) for key in keys)
            better = [
                (key, count)
                for name, key, count in zip(names, keys, counts, strict=True)
                if self._is_better(name, count, known.get(name), later)
            ]
            if better:
                yield end_s, [key for key, _ in better], [count for _, count in better]

    @property
    def resets(self) -> list[CounterColumns]:
        """Those that either knows of, once the counters have been read."""
        both = dict(self._resets)
        for counter, epoch in self._journal_resets.items():
            both[counter] = max(epoch, both.get(counter, 0))
        return side_by_side(both)

    def _is_better(self, counter: CounterName, count: int, known: int | None, later: Later) -> bool:
        """Whether the copy's count is to be believed, and not what the journal says."""
        if known is None or later is Later.COPY:
            return count != known
        own, others = self._resets.get(counter, 0), self._journal_resets.get(counter, 0)
        if later is Later.JOURNAL or own < others:
            return False
        return own > others or count > known


def _named(columns: Iterable[CounterColumns]) -> Iterator[tuple[CounterName, int]]:
    for end_s, keys, numbers in columns:
        yield from zip(((end_s, key) for key in keys), numbers, strict=True)
