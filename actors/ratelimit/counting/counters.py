"""The counters of one partition: a pure table, fed batches and the time.

    hit(+a)   count += a, and the counter comes to be if it was not there
    hit(0)    looks, and leaves no trace
    hit(-a)   gives back: count = max(0, count - a); a missing one stays missing (part A, Refunds)

Every operation answers with the count after it. Counters live in the table of their window's end;
a window that has ended goes as a whole. Memory is bounded: when the table is full, windows that
have ended go first, then the oldest counters of the window that ends soonest. Freeing is spread
over calls, because dropping a million counters at once would stall the decisions behind it.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

COUNTERS_MAX = 1_000_000
EXPIRY_GRACE_S = 2  # fronts' clocks may lag behind the fastest one by this much
FREED_PER_CALL_MAX = 4_096
EVICTED_AT_ONCE = 1_024


class Hits(NamedTuple):
    """Operations on counters of windows that end together: `keys` and `addends` side by side."""

    end_s: int
    keys: list[bytes]
    addends: list[int]


class LimitedHits(NamedTuple):
    """`Hits` with a column more: the limit that each operation is judged by. Operations with
    different limits are never added up into one."""

    end_s: int
    keys: list[bytes]
    addends: list[int]
    limits: list[int]


class Conditional(NamedTuple):
    """One request's counters under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT (B9), side by side.

    A limit of None: counted in any case, and no reason to hold the others back.
    """

    end_s: list[int]
    keys: list[bytes]
    addends: list[int]
    limits: list[int | None]


def conditional_addends(counts: Mapping[bytes, int], request: Conditional) -> list[int]:
    """The addends to count of one request (B9): if any counter would exceed its limit, those that
    would are counted and the others keep their count. `counts`: by key, before the request."""
    counts = dict(counts)
    chosen = []
    has_excess = False
    for key, addend, limit in zip(request.keys, request.addends, request.limits, strict=True):
        if limit is None:
            # What is given back makes room for the hits behind it.
            counts[key] = max(0, counts[key] + addend)
            chosen.append(addend)
        elif counts[key] + addend > limit:
            has_excess = True
            chosen.append(addend)
        else:
            chosen.append(0)
    return chosen if has_excess else request.addends


class CounterTable:
    """Counts by window end and key. Not thread-safe: it has one owner."""

    def __init__(self, counters_max: int = COUNTERS_MAX) -> None:
        assert counters_max > 0, "a table holds at least one counter"
        self._counters_max = counters_max
        self._windows: dict[int, dict[bytes, int]] = {}
        self._ended: list[dict[bytes, int]] = []
        self._size = 0  # live and ended counters that are still in memory
        self._now_s = 0
        self.evicted = 0

    def __len__(self) -> int:
        return self._size

    def hit(self, batch: Sequence[Hits], now_s: int) -> list[list[int]]:
        """Apply all operations in order; the counts after each, in the shape of the batch."""
        self._advance(now_s)
        return [self._hit_window(end_s, keys, addends) for end_s, keys, addends in batch]

    def hit_conditionally(self, requests: Sequence[Conditional], now_s: int) -> list[list[int]]:
        """B9 per request, one after another (see `conditional_addends`). Counts after
        per request."""
        self._advance(now_s)
        return [self._hit_request(request) for request in requests]

    def _hit_request(self, request: Conditional) -> list[int]:
        counts = {
            key: self._windows.get(end_s, {}).get(key, 0)
            for end_s, key in zip(request.end_s, request.keys, strict=True)
        }
        addends = conditional_addends(counts, request)
        return [
            self._hit_window(end_s, [key], [addend])[0]
            for end_s, key, addend in zip(request.end_s, request.keys, addends, strict=True)
        ]

    def _hit_window(self, end_s: int, keys: list[bytes], addends: list[int]) -> list[int]:
        window = self._windows.get(end_s)
        if window is None:
            window = self._windows[end_s] = {}
        counts = []
        before_size = len(window)
        room = self._counters_max - self._size
        for key, addend in zip(keys, addends, strict=True):
            count = window.get(key)
            if count is None:
                if addend <= 0:
                    counts.append(0)
                    continue
                if len(window) - before_size >= room:
                    self._size += len(window) - before_size
                    self._make_room()
                    before_size = len(window)
                    room = self._counters_max - self._size
                count = 0
            count += addend
            if count < 0:
                count = 0
            if addend:
                window[key] = count
            counts.append(count)
        self._size += len(window) - before_size
        return counts

    def _advance(self, now_s: int) -> None:
        """Set ended windows aside and free some of what was set aside earlier."""
        if now_s != self._now_s:
            # Not only when time goes on: a front whose clock ran ahead must not stop the sweeping.
            self._now_s = now_s
            for end_s in [end for end in self._windows if end + EXPIRY_GRACE_S <= now_s]:
                self._ended.append(self._windows.pop(end_s))
        if self._ended:
            self._free(FREED_PER_CALL_MAX)

    def _free(self, counters: int) -> None:
        while self._ended and counters > 0:
            ended = self._ended[-1]
            for _ in range(min(counters, len(ended))):
                ended.popitem()
                self._size -= 1
                counters -= 1
            if not ended:
                self._ended.pop()

    def _make_room(self) -> None:
        """Free at least one place: from ended windows, else from the window that ends soonest."""
        if self._ended:
            self._free(EVICTED_AT_ONCE)
        if self._size < self._counters_max:
            return
        window = self._windows[min(end for end, counters in self._windows.items() if counters)]
        oldest = list(islice(window, min(EVICTED_AT_ONCE, max(1, self._counters_max // 8))))
        for key in oldest:
            del window[key]
        self._size -= len(oldest)
        self.evicted += len(oldest)


class Unreachable(Exception):  # noqa: N818 - it is a state of a partition, handed around as a value
    """A partition did not answer in time, or at all. The text is the caller's error message."""


PartitionCounts = Sequence[Sequence[int | Unreachable]] | Unreachable
"""Counts in the shape of what was asked; for a single counter, or for the partition as a whole, the
reason why there is none."""


class CounterStore(Protocol):
    """The way of a decision to counters, wherever they live. Both calls answer per partition, in
    the shape of what was asked.

    They block, no longer than the store's deadline, and never raise: a partition that cannot be
    reached, and a counter that could not be counted, stand in the answer as `Unreachable`.
    """

    @property
    def partitions(self) -> int: ...

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> Mapping[int, PartitionCounts]: ...

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> Mapping[int, PartitionCounts]: ...


class LocalCounters:
    """Counter tables in this process's own memory, one per partition: the same counts and the same
    routing as the partition actors, minus Ray. Not thread-safe.

    It serves a process that counts for itself alone, commands, benchmarks and tests.
    """

    def __init__(self, partitions: int = 1, counters_max: int = COUNTERS_MAX) -> None:
        self.tables = [CounterTable(counters_max) for _ in range(partitions)]

    @property
    def partitions(self) -> int:
        return len(self.tables)

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> dict[int, list[list[int]]]:
        return {
            partition: self.tables[partition].hit([Hits(*hits[:3]) for hits in batch], now_s)
            for partition, batch in batches.items()
        }

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> dict[int, list[list[int]]]:
        return {
            partition: self.tables[partition].hit_conditionally(batch, now_s)
            for partition, batch in batches.items()
        }
