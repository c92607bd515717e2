"""What a partition that starts again finds of its forerunner in the memory of other partitions.

    all others are asked for a copy -> the latest -> its counters, page by page

The journal on this node's disk may be better, or of an earlier stay here:

    last written before the copy's origin began, and the copy is whole    the copy alone
    else                                                                  the larger of both counts

So never less is known than either of them knows, and a counter that was set to 0 elsewhere does not
come back from a disk that has not heard of it.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Protocol

from tollgate.actors.ratelimit.copies.messages import CopyDescription, CopyPage
from tollgate.actors.ratelimit.lending.messages import CounterColumns, CounterName

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
    of day say nothing that it does not know better."""

    counters: list[CounterColumns]
    journals_after_s: float = -inf


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
    slot: int | None = 0
    while slot is not None:
        page = holders.page(holder, partition, slot)
        if page is None:
            LOG.error("the copy of partition %d was lost while it was being read", partition)
            return FoundCopy(counters)
        counters.extend(page.counters)
        slot = page.after
    LOG.warning(
        "partition %d goes on from its copy in partition %d: %d counters",
        *(partition, holder, sum(len(keys) for _, keys, _ in counters)),
    )
    if copy.whole_since_s is None:
        return FoundCopy(counters)
    return FoundCopy(counters, copy.whole_since_s - skew_max_s)


def _is_later(copy: CopyDescription, other: CopyDescription) -> bool:
    return (copy.origin.incarnation, copy.sent_s) > (other.origin.incarnation, other.sent_s)


def larger_of_both(
    journal: Iterable[CounterColumns], copy: list[CounterColumns]
) -> Iterator[CounterColumns]:
    """The counters of a journal, in its order, and those of which a copy has more behind them."""
    if not copy:
        yield from journal
        return
    known: dict[CounterName, int] = {}
    for end_s, keys, counts in journal:
        known.update(zip(((end_s, key) for key in keys), counts, strict=True))
        yield end_s, keys, counts
    for end_s, keys, counts in copy:
        more = [
            (key, count)
            for key, count in zip(keys, counts, strict=True)
            if count > known.get((end_s, key), -1)
        ]
        if more:
            yield end_s, [key for key, _ in more], [count for _, count in more]
