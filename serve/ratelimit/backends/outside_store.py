"""The shape of a store outside of Tollgate, as those see it who count in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import CounterStore
from tollgate.actors.ratelimit.counting.routes import Route
from tollgate.actors.ratelimit.statistics.tallies import Tallies
from tollgate.serve.ratelimit.front_process import FrontCounters


class Counters(CounterStore, FrontCounters, Protocol):
    """The counters of a front process, wherever they are counted."""


@dataclass(frozen=True, slots=True)
class OutsideStore:
    """A store outside of Tollgate, and how a process counts in it.

    `place`: what it is and where, for operators, without credentials. `route`: to the one of its
    `servers` that has a counter; servers are the partitions of a CounterStore. `open`: a process's
    way to them; it does not wait until they answer.
    """

    place: str
    servers: int
    route: Route
    open: Callable[[Clock, Tallies], Counters]
