"""The order of use: what was used least recently is found at once, however many there are.

A dictionary keeps the order, but looks for its first item through the places of all that was taken
from its beginning. So the oldest are taken out by the batch, and wait apart.
"""

from itertools import islice
from typing import Generic, TypeVar

Name = TypeVar("Name")
Value = TypeVar("Value")

TAKEN_AT_ONCE = 1_024


class Recency(Generic[Name, Value]):
    """Names in the order of their use, each with a value."""

    def __init__(self) -> None:
        self._used: dict[Name, Value] = {}
        # The oldest of all, the very oldest last.
        self._oldest: dict[Name, Value] = {}

    def __len__(self) -> int:
        return len(self._used) + len(self._oldest)

    def get(self, name: Name) -> Value | None:
        """The value of a name; None when it is not here."""
        value = self._used.get(name)
        return value if value is not None or not self._oldest else self._oldest.get(name)

    def use(self, name: Name, value: Value) -> None:
        """A name is used now."""
        self._used.pop(name, None)
        self._used[name] = value
        if self._oldest:
            self._oldest.pop(name, None)

    def forget(self, name: Name) -> None:
        """Take a name out, if it is here."""
        self._used.pop(name, None)
        if self._oldest:
            self._oldest.pop(name, None)

    def least_recent(self) -> tuple[Name, Value]:
        """The name that was used least recently. It stays. KeyError when there are none."""
        if not self._oldest:
            for name in reversed(list(islice(self._used, TAKEN_AT_ONCE))):
                self._oldest[name] = self._used.pop(name)
        name, value = self._oldest.popitem()
        self._oldest[name] = value
        return name, value
