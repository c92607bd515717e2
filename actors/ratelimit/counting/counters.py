"""The counters of one partition: a pure table, fed batches and the time.

    hit(+a)   count += a, and the counter comes to be if it was not there
    hit(0)    looks, and leaves no trace
    hit(-a)   gives back: count = max(0, count - a); a missing one stays missing (part A, Refunds)

Every operation answers with the count after it. Counters live in the table of their window's end;
a window that has ended goes as a whole. Memory is bounded: when the table is full, windows that
have ended go first, then what has not been used for long, of all windows; or the table refuses new
counters. Freeing is spread over calls, because dropping a million counters at once would stall the
decisions behind it.

Use is told by generations, so that a counter that is hit again and again costs nothing for it:

    a counter is used --> it is in the youngest generation, wherever it was before
    that has a quarter of the places, and the table is half full --> a new generation begins
    the table is full --> room is made in the oldest generation

So the quarter of the counters that were used last are never given up.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

COUNTERS_MAX = 1_000_000
EXPIRY_GRACE_S = 2  # fronts' clocks may lag behind the fastest one by this much
FREED_PER_CALL_MAX = 4_096
FREED_AT_ONCE = 1_024
EVICTED_AT_ONCE_MAX = 256
GENERATIONS = 8  # the oldest ones beyond them become one
FULL = -1
"""In the place of a count: the counter is new, and the table is full."""
TABLE_FULL = "the counter table is full, and takes no new counters"

Generation = dict[int, dict[bytes, int]]
"""Counts by window end and key."""


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
    """Counts by window end and key. Not thread-safe: it has one owner.

    `refuses_when_full`: rather than to forget a live counter, it takes no new one (FULL).
    """

    def __init__(
        self, counters_max: int = COUNTERS_MAX, *, refuses_when_full: bool = False
    ) -> None:
        assert counters_max > 0, "a table holds at least one counter"
        self._counters_max = counters_max
        self._half = counters_max // 2
        self._generation_max = max(1, counters_max // 4)
        self._evicted_at_once = min(EVICTED_AT_ONCE_MAX, max(1, counters_max // 16))
        self._refuses_when_full = refuses_when_full
        # The youngest last. A counter is in one of them.
        self._generations: list[Generation] = [{}]
        self._young = 0  # counters in the youngest
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
        per request. A request that has no room for all its counters is not counted."""
        self._advance(now_s)
        return [self._hit_request(request) for request in requests]

    def count(self, end_s: int, key: bytes) -> int | None:
        """A counter as it is; None when there is none. This is no use of it."""
        for generation in reversed(self._generations):
            count = generation.get(end_s, {}).get(key)
            if count is not None:
                return count
        return None

    def windows(self) -> list[tuple[int, dict[bytes, int]]]:
        """All windows of all generations, by their ends: to be read, and soon."""
        windows = [each for generation in self._generations for each in generation.items()]
        return sorted(windows, key=lambda each: each[0])

    def forget(self, end_s: int, key: bytes) -> int | None:
        """Take a counter out: what it was."""
        count = self._take_out(key, self._older(end_s))
        if count is None:
            count = self._generations[-1].get(end_s, {}).pop(key, None)
            if count is not None:
                self._grow(-1)
        return count

    def _hit_request(self, request: Conditional) -> list[int]:
        names = list(zip(request.end_s, request.keys, strict=True))
        found = {key: self.count(end_s, key) for end_s, key in names}
        if self._refuses_when_full:
            new = {
                key
                for key, addend in zip(request.keys, request.addends, strict=True)
                if addend > 0 and found[key] is None
            }
            if not self._has_room_for(len(new)):
                return [FULL] * len(names)
        counts = {key: count or 0 for key, count in found.items()}
        addends = conditional_addends(counts, request)
        return [
            self._hit_window(end_s, [key], [addend])[0]
            for (end_s, key), addend in zip(names, addends, strict=True)
        ]

    def _hit_window(self, end_s: int, keys: list[bytes], addends: list[int]) -> list[int]:
        window = self._generations[-1].get(end_s)
        if window is None:
            window = self._generations[-1][end_s] = {}
        older = self._older(end_s) if len(self._generations) > 1 else None
        counts = []
        before_size = len(window)
        room = self._room
        for key, addend in zip(keys, addends, strict=True):
            count = window.get(key)
            if count is None:
                if older:
                    count = self._take_out(key, older)
                if count is None and addend <= 0:
                    counts.append(0)
                    continue
                if len(window) - before_size >= room:
                    self._grow(len(window) - before_size)
                    has_room = self._make_room()
                    window = self._generations[-1].setdefault(end_s, {})
                    older, before_size = self._older(end_s), len(window)
                    room = self._room if has_room else 0
                    if not has_room:
                        counts.append(FULL)
                        continue
                if count is None:
                    count = 0
                elif not addend:
                    window[key] = count
            count += addend
            if count < 0:
                count = 0
            if addend:
                window[key] = count
            counts.append(count)
        if len(window) != before_size:
            self._grow(len(window) - before_size)
        return counts

    # Generations

    @property
    def _room(self) -> int:
        """How many counters may come to the youngest generation before `_make_room`."""
        if self._size < self._half:
            return self._half - self._size
        return min(self._counters_max - self._size, self._generation_max - self._young)

    def _older(self, end_s: int) -> list[dict[bytes, int]]:
        """A window in the generations before the youngest, the oldest first."""
        return [window for each in self._generations[:-1] if (window := each.get(end_s))]

    def _take_out(self, key: bytes, older: list[dict[bytes, int]]) -> int | None:
        """A counter that is about to be used, out of its generation."""
        for window in older:
            count = window.pop(key, None)
            if count is not None:
                self._size -= 1
                return count
        return None

    def _grow(self, counters: int) -> None:
        self._size += counters
        self._young += counters

    def _begin_generation(self) -> None:
        self._generations = [each for each in self._generations if any(each.values())]
        self._generations.append({})
        self._young = 0

    def _merge(self, counters: int) -> None:
        """Move some counters of the second oldest generation to the oldest."""
        oldest, second = self._generations[:2]
        for end_s, window in second.items():
            into = oldest.setdefault(end_s, {})
            for _ in range(min(counters, len(window))):
                key, count = window.popitem()
                into[key] = count
                counters -= 1
        if not any(second.values()):
            del self._generations[1]

    # Memory

    def _advance(self, now_s: int) -> None:
        """Set ended windows aside and free some of what was set aside earlier."""
        if now_s != self._now_s:
            # Not only when time goes on: a front whose clock ran ahead must not stop the sweeping.
            self._now_s = now_s
            for generation in self._generations:
                for end_s in [end for end in generation if end + EXPIRY_GRACE_S <= now_s]:
                    window = generation.pop(end_s)
                    self._ended.append(window)
                    if generation is self._generations[-1]:
                        self._young -= len(window)
        if self._ended:
            self._free(FREED_PER_CALL_MAX)
        if len(self._generations) > GENERATIONS:
            self._merge(FREED_PER_CALL_MAX)

    def _free(self, counters: int) -> None:
        while self._ended and counters > 0:
            ended = self._ended[-1]
            for _ in range(min(counters, len(ended))):
                ended.popitem()
                self._size -= 1
                counters -= 1
            if not ended:
                self._ended.pop()

    def _has_room_for(self, counters: int) -> bool:
        if self._size + counters > self._counters_max:
            self._free(FREED_AT_ONCE)
        return self._size + counters <= self._counters_max

    def _make_room(self) -> bool:
        """Free at least one place, in the youngest generation too: among windows that have ended,
        else in the oldest generation. False: the table is full."""
        has_room = self._has_room_for(1)
        if not has_room and self._refuses_when_full:
            return False
        if self._size >= self._half and self._young >= self._generation_max:
            self._begin_generation()
        if not has_room:
            self._evict()
        return True

    def _evict(self) -> None:
        left = self._evicted_at_once
        for window in (each for generation in self._generations for each in generation.values()):
            count = min(left, len(window))
            for _ in range(count):
                window.popitem()
            left -= count
            if not left:
                break
        self._size -= self._evicted_at_once
        self.evicted += self._evicted_at_once


class Unreachable(Exception):  # noqa: N818 - it is a state of a partition, handed around as a value
    """A partition did not answer in time, or at all. The text is the caller's error message."""


PartitionCounts = Sequence[Sequence[int | Unreachable]] | Unreachable
"""Counts in the shape of what was asked; for a single counter, or for the partition as a whole, the
reason why there is none."""


PartitionAnswers = dict[int, PartitionCounts]
"""By partition."""


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
