"""What of a partition outlives its process: the journal on this node's disk, and the copy on
another node.

    begin: what both know of the forerunner -> the partition opens -> both are kept    finish
"""

import logging
from collections.abc import Iterable
from threading import Event
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.copies.copier import Copier, CopyThread, Neighbours
from tollgate.actors.ratelimit.copies.feed import CopyFeed, CopySource
from tollgate.actors.ratelimit.copies.inheritance import (
    CopyHolders,
    FoundCopy,
    Inheritance,
    found_copy,
)
from tollgate.actors.ratelimit.copies.messages import CopyOrigin
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.snapshots.keeper import CounterSource, SnapshotKeeper
from tollgate.actors.ratelimit.snapshots.snapshot_thread import KeptPartition, SnapshotThread

LOG = logging.getLogger("tollgate.counters")
BEGUN_WITHIN_S = 30.0


class SurvivingPartition(KeptPartition, CounterSource, CopySource, Protocol):
    """A partition that may be kept both ways. Thread-safe."""

    def restore_resets(self, resets: Iterable[CounterColumns]) -> None:
        """Take the resets that earlier processes have done, behind the counters."""

    def open(self) -> None:
        """Let fronts in: what is to be restored is there."""


class OtherPartitions(Neighbours, CopyHolders, Protocol):
    """The other partitions, in both of their roles."""


class Survival:
    """Of one process of a partition. `keeper` None: there is no journal. `others` None: there is
    no other partition, so no copy."""

    def __init__(
        self,
        partition: SurvivingPartition,
        origin: CopyOrigin,
        terms: Terms,
        clock: Clock,
        keeper: SnapshotKeeper | None,
        others: OtherPartitions | None,
        shelf: CopyShelf,
    ) -> None:
        self._partition = partition
        self._origin = origin
        self._terms = terms
        self._keeper = keeper
        self._others = others
        self._snapshots: SnapshotThread | None = None
        self._copier: Copier | None = None
        self._copies: CopyThread | None = None
        if others is not None:
            self._copier = Copier(CopyFeed(partition, origin, clock), shelf, others, clock)
            self._copies = CopyThread(self._copier)
        self._has_begun = Event()

    def begin(self) -> None:
        """Give the partition what there is, and begin to keep it. The first process of all finds no
        copy, and asks nobody."""
        copy = FoundCopy([])
        if self._others is not None and self._origin.incarnation > 1:
            own = self._origin
            skew_max_s = self._terms.skew_max_s
            copy = found_copy(self._others, own.partition, own.incarnation, skew_max_s)
        if self._keeper is None:
            self._partition.restore(copy.counters)
            self._partition.restore_resets(copy.resets)
        else:
            self._inherit(copy, self._keeper)
            self._snapshots = SnapshotThread(self._keeper, self._partition)
            self._snapshots.start()
        self._partition.open()
        if self._copies is not None:
            self._copies.start()
        self._has_begun.set()

    def _inherit(self, copy: FoundCopy, keeper: SnapshotKeeper) -> None:
        inheritance = Inheritance(copy)
        journal = keeper.restored(copy.journals_after_s)
        self._partition.restore(inheritance.counters(journal, lambda: keeper.left))
        self._partition.restore_resets(inheritance.resets)

    def describe(self) -> dict[str, int]:
        """How both are kept, in the words of a partition that describes itself."""
        journal = {} if self._snapshots is None else self._snapshots.describe()
        return journal | ({} if self._copier is None else self._copier.describe())

    def finish(self) -> bool:
        """Whether all that was counted is on disk, if it is kept there at all, as soon as that is
        known."""
        if not self._has_begun.wait(BEGUN_WITHIN_S):
            return False
        if self._copies is not None:
            self._copies.finish()
        return self._snapshots is None or self._snapshots.finish()
