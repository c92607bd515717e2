"""Messages between a partition and the one that holds its copy.

partition -> holder      CopyPart       holder -> partition      CopyReply
a new process -> others  (a question)   others -> it             CopyDescription, CopyPage
"""

from collections.abc import Sequence
from typing import NamedTuple

from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress

SUPERSEDED = -1


class CopyOrigin(NamedTuple):
    """One process of a partition. `begun_s`: its time of day when it began. `journal`: the id of
    the journal that it writes, if there is one."""

    partition: int
    incarnation: int
    begun_s: float
    journal: bytes = b""


class CopyPart(NamedTuple):
    """Counters, absolute. `number`: 0 is the first of all counters. `is_whole`: with this one the
    holder has had all of them. `sent_s`: the origin's time of day. `progress`: of the origin, when
    these counters had been read."""

    origin: CopyOrigin
    number: int
    sent_s: float
    is_whole: bool
    counters: list[CounterColumns]
    progress: Progress = Progress()


class CopyReply(NamedTuple):
    """`node`: the holder's. `expected`: the number of the part that it wants next; 0: all counters,
    from the beginning; SUPERSEDED: a later process of the same partition sends parts."""

    node: str
    expected: int


class CopyDescription(NamedTuple):
    """A copy that is there. `whole_since_s`: the beginning of the origin, if the holder has had all
    of its counters; else None. `mark`: all its changes until this one are there, and none after
    `last_change`."""

    origin: CopyOrigin
    sent_s: float
    whole_since_s: float | None
    mark: int | None = None
    last_change: int = 0


class CopyPage(NamedTuple):
    """Counters of some slots. `after`: the slot where the next page goes on; None: that was all,
    and here are the `resets`, with epochs in the place of counts."""

    counters: list[CounterColumns]
    after: int | None
    resets: Sequence[CounterColumns] = ()
