"""The thread that writes a partition's journal, beside the one that answers fronts."""

import logging
from collections.abc import Iterable
from threading import Event, Thread
from typing import Protocol

from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.snapshots.keeper import CounterSource, SnapshotKeeper

LOG = logging.getLogger("tollgate.ratelimit")


class KeptPartition(CounterSource, Protocol):
    """A partition whose counters are kept. Thread-safe."""

    def restore(self, counters: Iterable[CounterColumns]) -> None:
        """Take what an earlier process has left behind, in the order in which it was written."""


class SnapshotThread:
    """Has a keeper write, again and again, and everything at the end."""

    def __init__(self, keeper: SnapshotKeeper, source: CounterSource) -> None:
        self._keeper = keeper
        self._source = source
        self._is_ending = Event()
        self._is_broken = False
        self._is_on_disk = False
        self._thread = Thread(target=self._keep, name="snapshots", daemon=True)

    @classmethod
    def begin(cls, keeper: SnapshotKeeper, partition: KeptPartition) -> "SnapshotThread":
        """Give a partition what is on disk, and begin to write."""
        partition.restore(keeper.restored())
        thread = cls(keeper, partition)
        thread.start()
        return thread

    def start(self) -> None:
        """Begin to write, the first time at once."""
        self._thread.start()

    def finish(self) -> bool:
        """Write what has changed, and end. Whether it is on disk, as soon as that is known."""
        self._is_ending.set()
        self._thread.join()
        return self._is_on_disk

    def describe(self) -> dict[str, int]:
        """How the keeping goes, in the words of a partition that describes itself."""
        state = self._keeper.state
        return {
            "snapshot_age_s": int(state.age_s),
            "snapshot_bytes": state.bytes,
            "snapshot_failures": state.failures + self._is_broken,
        }

    def _keep(self) -> None:
        is_whole = False
        try:
            self._keeper.write(self._source)
            while not self._is_ending.wait(self._keeper.interval_s):
                self._keeper.write(self._source)
            self._is_on_disk = self._keeper.finish(self._source)
            is_whole = True
        finally:
            if not is_whole:
                self._is_broken = True
                LOG.critical("counters are not written to disk any more", exc_info=True)
