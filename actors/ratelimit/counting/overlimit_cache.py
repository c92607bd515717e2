"""The local over-limit cache: counters known to be over stay decided without asking (B8).

An entry holds for one window and one limit. It dies with the window, when the rule's limit changes,
when hits are given back, and, oldest first, when the memory it may use is full. Only counters seen
over their limit enter, so the cache can refuse early but never admit.

Hits may be given back while a count is under way, and that count would then be out of date when it
arrives: whoever asks for counts notes `drops` before, and shows it again with `add`.
"""

from collections import OrderedDict
from dataclasses import dataclass

ENTRY_BYTES = 160  # what one entry costs beside its key: two ints, a tuple, the table's slot


@dataclass(slots=True)
class CacheGauges:
    """Counts of the cache's work since it was made, under the reference's names."""

    evacuate_count: int = 0
    expired_count: int = 0
    hit_count: int = 0
    miss_count: int = 0
    overwrite_count: int = 0

    @property
    def lookup_count(self) -> int:
        return self.hit_count + self.miss_count


class OverLimitCache:
    """Counter keys that are over their limit until their window ends. Not thread-safe."""

    def __init__(self, size_bytes_max: int) -> None:
        self._size_bytes_max = size_bytes_max
        self._size_bytes = 0
        self._entries: OrderedDict[bytes, tuple[int, int]] = OrderedDict()
        self.gauges = CacheGauges()
        self.drops = 0
        """The number of times that hits were given back."""

    def __len__(self) -> int:
        return len(self._entries)

    def holds(self, key: bytes, end_s: int, limit: int) -> bool:
        """True when the counter is known to be over `limit` in the window that ends at `end_s`."""
        entry = self._entries.get(key)
        if entry == (end_s, limit):
            self.gauges.hit_count += 1
            return True
        self.gauges.miss_count += 1
        if entry is not None:
            self._remove(key)
            self.gauges.expired_count += 1
        return False

    def add(self, key: bytes, end_s: int, limit: int, drops: int) -> None:
        """Remember that the counter is over `limit` until `end_s`, if nothing was given back since
        `drops` was noted."""
        if drops != self.drops:
            return
        if key in self._entries:
            self._entries[key] = (end_s, limit)
            self.gauges.overwrite_count += 1
            return
        self._entries[key] = (end_s, limit)
        self._size_bytes += len(key) + ENTRY_BYTES
        while self._size_bytes > self._size_bytes_max:
            oldest, _ = self._entries.popitem(last=False)
            self._size_bytes -= len(oldest) + ENTRY_BYTES
            self.gauges.evacuate_count += 1

    def drop(self, key: bytes) -> None:
        """Forget the counter: its hits are given back."""
        self.drops += 1
        if key in self._entries:
            self._remove(key)

    def clear(self) -> None:
        """Forget all counters: some of them may have been given hits back, or been reset."""
        self.drops += 1
        self._entries.clear()
        self._size_bytes = 0

    def _remove(self, key: bytes) -> None:
        del self._entries[key]
        self._size_bytes -= len(key) + ENTRY_BYTES
