"""The thread that writes a partition's journal, beside the one that answers fronts."""

from threading import Event, Thread

from tollgate.actors.ratelimit.snapshots.keeper import CounterSource, SnapshotKeeper, SnapshotState


class SnapshotThread:
    """Has a keeper write every `interval_s`, and everything at the end. `source` is thread-safe."""

    def __init__(self, keeper: SnapshotKeeper, source: CounterSource, interval_s: float) -> None:
        self._keeper = keeper
        self._source = source
        self._interval_s = interval_s
        self._is_ending = Event()
        self._thread = Thread(target=self._keep, name="snapshots", daemon=True)

    @property
    def state(self) -> SnapshotState:
        return self._keeper.state

    def start(self) -> None:
        """Begin to write, the first time at once."""
        self._thread.start()

    def finish(self) -> None:
        """Write what has changed, and end; returns when it is on disk, or could not be written."""
        self._is_ending.set()
        self._thread.join()

    def _keep(self) -> None:
        self._keeper.write(self._source)
        while not self._is_ending.wait(self._interval_s):
            self._keeper.write(self._source)
        self._keeper.finish(self._source)
