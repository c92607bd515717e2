"""A bounded cache that gives up the least recently used entry."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """At most `entries_max` values. Not thread-safe."""

    def __init__(self, entries_max: int) -> None:
        assert entries_max > 0, "a cache holds at least one entry"
        self._entries_max = entries_max
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
        self._entries.pop(key, None)
        self._entries[key] = value
        if len(self._entries) > self._entries_max:
            del self._entries[next(iter(self._entries))]

    def discard(self, key: Key) -> None:
        self._entries.pop(key, None)
