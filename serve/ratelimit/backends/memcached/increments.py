"""Hits that were decided and are still to be counted in Memcached: a bounded queue.

    hits on one item become one increment; a refund stands apart, for it stops at zero
    more than there is room for is not taken: the decision stands, the hit is not counted

What waits here has not been sent, so a count that was read cannot hold it yet: `applied_to` adds
it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from threading import Condition

INCREMENTS_MAX = 65_536
ADDENDS_MAX = 16
"""The longest row of hits and refunds of one item, for each of them is a round trip."""


@dataclass(slots=True)
class Increments:
    """The gains of one item in order, of which the last may be the sum of many; `length_s` is that
    of its window."""

    addends: list[int]
    length_s: int

    def takes(self, addend: int) -> bool:
        """Whether this is a part of the last gain, rather than one apart."""
        is_alike = (self.addends[-1] > 0) == (addend > 0)
        return is_alike or len(self.addends) >= ADDENDS_MAX


class IncrementQueue:
    """The increments of one node, by item. Thread-safe."""

    def __init__(self, increments_max: int = INCREMENTS_MAX) -> None:
        self._increments_max = increments_max
        self._waiting: dict[bytes, Increments] = {}
        self._size = 0
        self._is_sending = False
        self._changed = Condition()

    def __len__(self) -> int:
        return self._size

    def add(self, hits: Iterable[tuple[bytes, int, int]]) -> int:
        """Take hits (item, addend, length of the window); how many there was no room for."""
        refused = 0
        with self._changed:
            for item, addend, length_s in hits:
                increments = self._waiting.get(item)
                if increments is not None and increments.takes(addend):
                    increments.addends[-1] += addend
                elif self._size >= self._increments_max:
                    refused += 1
                else:
                    self._size += 1
                    if increments is None:
                        self._waiting[item] = Increments([addend], length_s)
                    else:
                        increments.addends.append(addend)
        return refused

    def applied_to(self, item: bytes, count: int) -> int:
        """The count of an item with what waits for it."""
        increments = self._waiting.get(item)
        if increments is not None:
            for addend in tuple(increments.addends):
                count = max(0, count + addend)
        return count

    def take(self, items_max: int) -> dict[bytes, Increments]:
        """Take out what has waited longest. Nothing left: what was taken before has been sent."""
        with self._changed:
            if len(self._waiting) <= items_max:
                taken, self._waiting = self._waiting, {}
            else:
                names = [name for name, _ in zip(self._waiting, range(items_max), strict=False)]
                taken = {name: self._waiting.pop(name) for name in names}
            self._size -= sum(len(each.addends) for each in taken.values())
            self._is_sending = bool(taken)
            self._changed.notify_all()
        return taken

    def clear(self) -> int:
        """Give up what waits: how many increments that were."""
        with self._changed:
            lost, self._size = self._size, 0
            self._waiting = {}
            self._is_sending = False
            self._changed.notify_all()
        return lost

    def wait_until_sent(self, timeout_s: float) -> bool:
        """Wait until nothing waits and nothing is being sent. False: it took too long."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._waiting and not self._is_sending, timeout_s
            )
