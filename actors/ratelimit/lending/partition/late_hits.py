"""Hits that a front tells of after all that it had was taken back from it.

its slot is here            they are added at once
somebody has it whole       it is called back, for they count without these; added when it comes
it was set to 0 meanwhile   they were before that, and are forgotten (see `resets.py`)
"""

from collections import defaultdict

from tollgate.actors.ratelimit.lending.messages import CounterName
from tollgate.actors.ratelimit.lending.terms import Terms


class LateHits:
    """Those that wait for their slots, at most of `unheard_max` counters: what is beyond is lost,
    as it is with a front."""

    def __init__(self, terms: Terms) -> None:
        self._counters_max = terms.unheard_max
        self._waiting: dict[int, dict[CounterName, int]] = defaultdict(dict)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, slot: int, counter: CounterName, hits: int) -> None:
        """These wait for the slot."""
        waiting = self._waiting[slot]
        if counter not in waiting:
            if self._size >= self._counters_max:
                return
            self._size += 1
        waiting[counter] = waiting.get(counter, 0) + hits

    def take(self, slot: int) -> dict[CounterName, int]:
        """All that wait for the slot, which has come."""
        waiting = self._waiting.pop(slot, {})
        self._size -= len(waiting)
        return waiting
