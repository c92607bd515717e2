"""A bounded cache that gives up the least recently used entry."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """At most `entries_max` values, which together weigh at most `weight_max`. A value that weighs
    more than that alone is not kept. Not thread-safe."""

    def __init__(
        self,
        entries_max: int,
        weight_max: int = 0,
        weigh: Callable[[Value], int] = lambda _: 0,
    ) -> None:
        assert entries_max > 0, "a cache holds at least one entry"
        self._entries_max = entries_max
        self._weight_max = weight_max
        self._weigh = weigh
        self.weight = 0
        # Insertion order is the order of use: what is used moves to the end.
        self._entries: dict[Key, Value] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """The value, which counts as a use; None when it is not here."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._entries[key] = value
        return value

    def put(self, key: Key, value: Value) -> None:
        self.discard(key)
        weight = self._weigh(value)
        if weight > self._weight_max:
            return  # (it would drive out all others, and itself)
        self._entries[key] = value
        self.weight += weight
        while len(self._entries) > self._entries_max or self.weight > self._weight_max:
            self.discard(next(iter(self._entries)))

    def discard(self, key: Key) -> None:
        if (gone := self._entries.pop(key, None)) is not None:
            self.weight -= self._weigh(gone)
