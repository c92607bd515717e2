"""The parts of which a partition's copy is made: first all counters, then those that change.

    begin_anew -> parts of all counters -> parts of what has changed since, as long as there are any
    a part is said again, as it was, until it is answered; only then there is another one
    another one is expected -> the holder has lost the copy: begin_anew

Counts are absolute: a part that comes twice changes nothing, and a later one says everything.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.copies.messages import CopyOrigin, CopyPart
from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress

COUNTERS_PER_PART_MAX = 1_024
SAID_EVERY_S = 1.0
"""After so long something is said even if nothing has changed: so it is known who is there."""


class CopySource(Protocol):
    """A partition's counters. Called in the copier's thread, while the partition goes on."""

    def begin_copy(self) -> Iterator[list[CounterColumns]] | None:
        """All counters, some at a time; what changes from now on is remembered. None: there is
        nothing yet."""

    def changed_since_copied(self, counters_max: int) -> list[CounterColumns]:
        """Up to so many counters that have changed since they were handed out here."""

    def copy_progress(self, after_reset: int) -> Progress:
        """How far `changed_since_copied` has got, with the resets after that one."""

    def end_copy(self) -> None:
        """Nothing has to be remembered any more."""


class CopyFeed:
    """What one process of a partition tells one holder. For one thread, but for `age_s`."""

    def __init__(self, source: CopySource, origin: CopyOrigin, clock: Clock) -> None:
        self._source = source
        self._origin = origin
        self._clock = clock
        self._all: Iterator[CounterColumns] | None = None
        self._next: CounterColumns | None = None
        self._number = 0
        self._reset = 0  # the last one that the holder has
        self._unanswered: CopyPart | None = None
        self.is_drained = False
        """Whether the last part had all that had changed."""
        self._said_s = 0.0
        self._complete_s: float | None = None

    @property
    def age_s(self) -> float | None:
        """The time since the holder had all that was known; None: nobody is to have it."""
        since_s = self._complete_s
        return None if since_s is None else max(0.0, self._clock.monotonic_s() - since_s)

    def begin_anew(self) -> None:
        """Tell all counters, to a holder that has none of them."""
        self._all = self._unanswered = None
        self.is_drained = False
        if self._complete_s is None:
            self._complete_s = self._clock.monotonic_s()

    def pause(self) -> None:
        """Nobody is there to be told, but somebody should be."""
        self._all = self._unanswered = None
        self._source.end_copy()

    def stop(self) -> None:
        """Nobody is to be told."""
        self.pause()
        self._complete_s = None

    def part(self) -> CopyPart | None:
        """The part to be said now; None when there is nothing to say."""
        if self._unanswered is not None:
            return self._unanswered
        if self._all is None and not self._begin():
            return None
        now_s = self._clock.monotonic_s()
        counters = self._some_of_all()
        is_whole = self._next is None
        if is_whole and not counters and self._number:
            counters = self._source.changed_since_copied(COUNTERS_PER_PART_MAX)
            self.is_drained = sum(len(keys) for _, keys, _ in counters) < COUNTERS_PER_PART_MAX
            if not counters and now_s < self._said_s + SAID_EVERY_S:
                self._complete_s = now_s
                return None
        self._said_s = now_s
        wall_s = self._clock.now_s()
        progress = self._source.copy_progress(self._reset)
        part = CopyPart(self._origin, self._number, wall_s, is_whole, counters, progress)
        self._unanswered = part
        return part

    def be_answered(self, expected: int) -> None:
        """The holder has taken the part, or wants to be told anew."""
        assert self._unanswered is not None, "only what was said is answered"
        self._number = self._unanswered.number + 1
        self._reset = max(self._reset, self._unanswered.progress.reset)
        self._unanswered = None
        if expected != self._number:
            self.begin_anew()
        elif self.is_drained:
            self._complete_s = self._said_s

    def _begin(self) -> bool:
        everything = self._source.begin_copy()
        if everything is None:
            return False
        self._all = pieces(columns for some in everything for columns in some)
        self._next = next(self._all, None)
        self._number = self._reset = 0
        return True

    def _some_of_all(self) -> list[CounterColumns]:
        assert self._all is not None, "it has begun"
        found: list[CounterColumns] = []
        left = COUNTERS_PER_PART_MAX
        while self._next is not None and len(self._next[1]) <= left:
            left -= len(self._next[1])
            found.append(self._next)
            self._next = next(self._all, None)
        return found


def pieces(counters: Iterable[CounterColumns]) -> Iterator[CounterColumns]:
    """The same counters, each time no more than a part has room for."""
    for end_s, keys, counts in counters:
        for start in range(0, len(keys), COUNTERS_PER_PART_MAX):
            stop = start + COUNTERS_PER_PART_MAX
            yield end_s, keys[start:stop], counts[start:stop]
