"""Hits that a front tells of after all that it had was taken back from it.

its slot is here            they are added at once
somebody has it whole       it is called back, for they count without these; added when it comes
it was set to 0 meanwhile   they were before that, and are forgotten
"""

from collections import defaultdict

from tollgate.actors.ratelimit.lending.messages import CounterName
from tollgate.actors.ratelimit.lending.recency import Recency
from tollgate.actors.ratelimit.lending.terms import Terms


class LateHits:
    """Those that wait for their slots, at most of `unheard_max` counters: what is beyond is lost,
    as it is with a front. Of so many counters it is remembered when they were set to 0."""

    def __init__(self, terms: Terms) -> None:
        self._counters_max = terms.unheard_max
        self._waiting: dict[int, dict[CounterName, int]] = defaultdict(dict)
        self._size = 0
        self._resets: Recency[CounterName, float] = Recency()

    def __len__(self) -> int:
        return self._size

    def note_reset(self, counter: CounterName, now_s: float) -> None:
        """A counter is set to 0."""
        self._resets.use(counter, now_s)
        if len(self._resets) > self._counters_max:
            oldest, _ = self._resets.least_recent()
            self._resets.forget(oldest)

    def is_void(self, counter: CounterName, since_s: float) -> bool:
        """Whether a counter was set to 0 then or later."""
        reset_s = self._resets.get(counter)
        return reset_s is not None and reset_s >= since_s

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
