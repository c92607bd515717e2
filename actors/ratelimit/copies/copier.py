"""Keeps a partition's copy in another partition: the next one that lives on another node.

nobody holds it -> look around: the first that lives elsewhere    all live here -> none is needed
the holder is silent, or lives here now -> look around again
"""

import logging
from collections.abc import Sequence
from math import inf
from threading import Event, Thread
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.copies.feed import CopyFeed
from tollgate.actors.ratelimit.copies.messages import SUPERSEDED, CopyPart, CopyReply
from tollgate.actors.ratelimit.copies.shelf import CopyShelf

LOG = logging.getLogger("tollgate.counters")
TURN_EVERY_S = 0.2
PARTS_PER_TURN_MAX = 16
"""With COUNTERS_PER_PART_MAX: what changes faster waits."""
LOOK_EVERY_S = 5.0
SILENCES_MAX = 3
END_WITHIN_S = 2.0


class Neighbours(Protocol):
    """The other partitions. Each question has an end."""

    @property
    def node(self) -> str:
        """The node of this process."""

    @property
    def numbers(self) -> Sequence[int]:
        """Those that may be asked to hold the copy, the next one first."""

    def node_of(self, number: int) -> str | None:
        """The node where one lives; None: it does not answer."""

    def give(self, number: int, part: CopyPart) -> CopyReply | None:
        """Hand one a part; None: it does not answer."""


class Copier:
    """For one thread, but for `describe`."""

    def __init__(
        self, feed: CopyFeed, shelf: CopyShelf, neighbours: Neighbours, clock: Clock
    ) -> None:
        self._feed = feed
        self._shelf = shelf
        self._neighbours = neighbours
        self._clock = clock
        self._holder: int | None = None
        self._look_at_s = -inf
        self._silences = 0
        self._is_superseded = False

    def describe(self) -> dict[str, int]:
        """How the copying goes, in the words of a partition that describes itself."""
        age_s = self._feed.age_s
        age = {} if age_s is None else {"copy_age_s": int(age_s)}
        return {"copied_counters": self._shelf.counters, **age}

    def turn(self) -> None:
        """Tell the holder what has changed, or look for one."""
        self._shelf.tick()
        if self._holder is None and not self._is_superseded:
            self._look_around()
        for _ in range(PARTS_PER_TURN_MAX):
            if self._holder is None or not self._say(self._holder):
                return

    def _look_around(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._look_at_s:
            return
        self._look_at_s = now_s + LOOK_EVERY_S
        is_silent = False
        for number in self._neighbours.numbers:
            node = self._neighbours.node_of(number)
            if node is not None and node != self._neighbours.node:
                self._holder, self._silences = number, 0
                self._feed.begin_anew()
                return
            is_silent = is_silent or node is None
        if not is_silent:
            self._feed.stop()

    def _say(self, holder: int) -> bool:
        """Whether there was something to say, it has arrived, and there is more."""
        part = self._feed.part()
        if part is None:
            return False
        reply = self._neighbours.give(holder, part)
        if reply is None:
            self._silences += 1
            if self._silences >= SILENCES_MAX:
                self._leave()
            return False
        self._silences = 0
        if reply.node == self._neighbours.node:
            self._leave()
        elif reply.expected == SUPERSEDED:
            self._is_superseded = True
            self._leave()
            self._feed.stop()
            LOG.error("another process of this partition has its copy kept: this one ends that")
        else:
            self._feed.be_answered(reply.expected)
        return not self._feed.is_drained

    def _leave(self) -> None:
        self._holder = None
        self._feed.pause()


class CopyThread:
    """Gives a copier its turns."""

    def __init__(self, copier: Copier) -> None:
        self._copier = copier
        self._is_ending = Event()
        self._thread = Thread(target=self._copy, name="copies", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Tell what has changed, and end."""
        self._is_ending.set()
        self._thread.join(END_WITHIN_S)

    def _copy(self) -> None:
        is_whole = False
        try:
            while not self._is_ending.wait(TURN_EVERY_S):
                self._copier.turn()
            self._copier.turn()
            is_whole = True
        finally:
            if not is_whole:
                LOG.critical("counters are not copied to another node any more", exc_info=True)
