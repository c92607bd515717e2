"""Journals of counters for tests: a partition's counters as plain dicts, and journals in memory."""

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from threading import Lock

from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress
from tollgate.actors.ratelimit.snapshots.frames import (
    MAGIC,
    Ending,
    Frame,
    FrameReader,
    FrameWriter,
)
from tollgate.actors.ratelimit.snapshots.records import counters_of

Counts = dict[tuple[int, bytes], int]


def columns(counts: Counts) -> list[CounterColumns]:
    """Counters side by side, by window."""
    by_end: dict[int, CounterColumns] = {}
    for (end_s, key), count in counts.items():
        _, keys, values = by_end.setdefault(end_s, (end_s, [], []))
        keys.append(key)
        values.append(count)
    return list(by_end.values())


def counts_of(counters: Iterable[CounterColumns]) -> Counts:
    """The last word on each counter."""
    return {
        (end_s, key): count
        for end_s, keys, counts in counters
        for key, count in zip(keys, counts, strict=True)
    }


def file_of(frames: Iterable[Frame]) -> bytes:
    writer = FrameWriter()
    return MAGIC + b"".join(map(writer.encoded, frames))


def read_back(data: bytes) -> tuple[list[Frame], Ending | None, int]:
    """The frames of a file, why there are no more, and where the last one ends."""
    reader = FrameReader(BytesIO(data))
    return list(reader), reader.ending, reader.end


def counts_in(frames: Sequence[Frame]) -> Counts:
    return counts_of(each for frame in frames for each in counters_of(frame))


class DictSource:
    """A partition's counters in a dict. `changed` hands out what was set since. Thread-safe."""

    def __init__(self) -> None:
        self.counts: Counts = {}
        self.changes = 0
        self._changed: dict[tuple[int, bytes], None] = {}
        self._lock = Lock()

    def set(self, end_s: int, key: bytes, count: int) -> None:
        with self._lock:
            self.counts[end_s, key] = count
            self._changed[end_s, key] = None
            self.changes += 1

    def restore(self, counters: Iterable[CounterColumns]) -> None:
        """Take what is there already; that changes nothing."""
        self.counts.update(counts_of(counters))

    def changed(self, counters_max: int) -> list[CounterColumns]:
        with self._lock:
            found = list(islice(self._changed, counters_max))
            for counter in found:
                del self._changed[counter]
            return columns({counter: self.counts[counter] for counter in found})

    def progress(self, after_reset: int) -> Progress:
        """How far `changed` has got; resets are kept elsewhere."""
        with self._lock:
            return Progress(self.changes, None if self._changed else self.changes)

    def everything(self) -> Iterator[list[CounterColumns]]:
        with self._lock:
            names = list(self.counts)
        for name in names:
            yield columns({name: self.counts[name]})
