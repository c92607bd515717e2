"""The order of use: what was used least recently is found at once, however many there are.

A dictionary keeps the order, but looks for its first item through the places of all that was taken
from its beginning. So the oldest are taken out by the batch, and wait apart.
"""

from itertools import islice
from operator import itemgetter
from typing import Generic, TypeVar

from tollgate.actors.ratelimit.lending.messages import CounterName

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


class CounterRecency:
    """Counters in the order of their use, over all windows.

    Each window has an order of its own, for a name of a window and a key together would cost as
    much memory again as the key. Windows are compared by stamps, which `uses_per_stamp` uses share:
    the counter that is found may have been used by as many uses later than the very first.
    """

    def __init__(self, uses_per_stamp: int) -> None:
        self._uses_per_stamp = uses_per_stamp
        self._uses_left = uses_per_stamp
        self._stamp = 0
        self._windows: dict[int, Recency[bytes, int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._windows.values()))

    def use(self, counter: CounterName) -> None:
        """A counter is used now."""
        end_s, key = counter
        window = self._windows.get(end_s)
        if window is None:
            window = self._windows[end_s] = Recency()
        window.use(key, self._stamp)
        self._uses_left -= 1
        if not self._uses_left:
            self._uses_left = self._uses_per_stamp
            self._stamp += 1

    def forget(self, counter: CounterName) -> None:
        """Take a counter out, if it is here."""
        end_s, key = counter
        window = self._windows.get(end_s)
        if window is not None:
            window.forget(key)
            if not len(window):
                del self._windows[end_s]

    def least_recent(self) -> CounterName:
        """The counter that was used least recently. It stays. ValueError when there are none."""
        oldest = ((*window.least_recent(), end_s) for end_s, window in self._windows.items())
        key, _, end_s = min(oldest, key=itemgetter(1))
        return end_s, key
