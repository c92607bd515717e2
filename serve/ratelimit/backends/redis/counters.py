"""Counters in Redis: a CounterStore over one server, or over two, of which one has the seconds.

    begun?  no --a ping is answered--> yes
    a server says nothing for the whole time-out --> left alone --a ping is answered--> asked again

The first ping goes out as it is left alone, for it may have been late only once. A server that
refuses connections is asked again by the next hit, for that costs nothing.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, Thread

from redis.exceptions import NoScriptError

from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    LimitedHits,
    PartitionCounts,
    Unreachable,
    conditional_addends,
)
from tollgate.serve.ratelimit.backends.redis.commands import (
    Command,
    Naming,
    Pipeline,
    Reply,
    count_of,
    loading,
    said,
    shaped,
)
from tollgate.serve.ratelimit.backends.redis.connections import ConnectionCounts
from tollgate.serve.ratelimit.backends.redis.server import NoAnswer, RedisServer

LOG = logging.getLogger("tollgate.ratelimit")
LOOK_EVERY_S = 0.25  # at a server that is out of reach
HURRY_EVERY_S = 1.0  # at one that has just been left alone, at once
PROBLEMS_MAX = 64  # of an outage are told apart in the log
PING_EVERY_S = 2.0  # one that is in reach, so that an idle front knows as well


@dataclass(frozen=True, slots=True)
class Patience:
    """The pauses between tries to reach a server for the first time: each twice as long as the one
    before, up to a maximum. `gives_up_after_s` 0: never."""

    first_s: float
    max_s: float
    gives_up_after_s: float


class GaveUp(Exception):  # noqa: N818 (it reads as what it is)
    """Redis was not reached within the time that its settings allow a start."""


class WatchedServer:
    """A server, and what is known of it. `place`: for people. Thread-safe."""

    def __init__(self, place: str, server: RedisServer, counts: ConnectionCounts) -> None:
        self.place = place
        self.has_begun = False
        self.problem = ""
        self._server = server
        self._counts = counts
        self._is_left_alone = False
        self._when_left_alone: Callable[[], None] = lambda: None
        self._said: set[str] = set()
        self._has_said_expiry = False

    @property
    def is_in_reach(self) -> bool:
        return self.has_begun and not self._is_left_alone and self._is_connected

    @property
    def _is_connected(self) -> bool:
        return self._counts.active > 0 and self._server.is_whole

    def run(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies. Raises Unreachable, at once where the server is left alone."""
        if self._is_left_alone:
            raise Unreachable(f"Redis at {self.place} is not answering")
        try:
            return self._server.run(commands)
        except NoAnswer as error:
            unreachable = self._unreachable(error)
            if self._is_left_alone:
                self._when_left_alone()
            raise unreachable from None

    def when_left_alone(self, notice: Callable[[], None]) -> None:
        """Call `notice` each time that hits begin to leave it alone."""
        self._when_left_alone = notice

    def ping(self) -> None:
        """See whether it is there. Raises Unreachable."""
        try:
            self._server.ping()
        except NoAnswer as error:
            raise self._unreachable(error) from None
        if self.problem:
            LOG.warning("Redis at %s answers again", self.place)
        self.has_begun, self._is_left_alone, self.problem = True, False, ""
        self._said.clear()

    def note_expiry_error(self, error: Reply) -> None:
        """Say, once, that counters stay for ever."""
        if not self._has_said_expiry:
            self._has_said_expiry = True
            LOG.warning("Redis at %s does not let counters expire: %s", self.place, said(error))

    def close(self) -> None:
        """Close all connections."""
        self._server.close()

    def _unreachable(self, error: NoAnswer) -> Unreachable:
        if error.is_silence:
            self._is_left_alone = True
        problem = f"Redis at {self.place}: {error}"
        self.problem = problem
        # (masters of a cluster that are away together are named in turn)
        if problem not in self._said and len(self._said) < PROBLEMS_MAX:
            self._said.add(problem)
            LOG.warning("%s", problem)
        return Unreachable(problem)


class RedisCounters:
    """A CounterStore. `servers` are its partitions. Thread-safe."""

    def __init__(
        self, servers: Sequence[WatchedServer], naming: Naming, patience: Patience, clock: Clock
    ) -> None:
        self._servers = list(servers)
        self._naming = naming
        self._patience = patience
        self._clock = clock
        self._is_closed = Event()
        self._has_news = Event()
        self._hurried_s = float("-inf")
        for each in self._servers:
            each.when_left_alone(self._has_news.set)
        self._surrender = ""
        self._watch = Thread(target=self._look, name="redis-watch", daemon=True)

    @property
    def partitions(self) -> int:
        return len(self._servers)

    @property
    def has_begun(self) -> bool:
        return all(each.has_begun for each in self._servers)

    @property
    def down(self) -> frozenset[int]:
        """The servers without a connection, or without an answer."""
        return frozenset(
            number for number, each in enumerate(self._servers) if not each.is_in_reach
        )

    @property
    def evicted(self) -> int:
        """Nothing: Redis counts what it gives up."""
        return 0

    @property
    def resets(self) -> int:
        """Nothing is known of what others do to counters in Redis."""
        return 0

    def start(self) -> None:
        """Begin to reach the servers, and to look whether they are there."""
        self._watch.start()

    def probe(self) -> None:
        """See that somebody looks after the servers. Raises GaveUp."""
        if self._surrender:
            raise GaveUp(self._surrender)
        is_looked_after = self._watch.is_alive() or self._is_closed.is_set()
        assert is_looked_after, "nobody looks whether Redis is there any more"

    def close(self) -> None:
        """Close all connections: once."""
        self._is_closed.set()
        self._has_news.set()
        for server in self._servers:
            server.close()

    # Counting

    def hit(
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> dict[int, PartitionCounts]:
        return {number: self._hit(number, batches[number]) for number in sorted(batches)}

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> dict[int, PartitionCounts]:
        return {
            number: self._hit_conditionally(number, batches[number]) for number in sorted(batches)
        }

    def _hit(self, number: int, batch: Sequence[LimitedHits]) -> PartitionCounts:
        pipeline = Pipeline(self._naming)
        for hits in batch:
            pipeline.add_hits(hits)
        try:
            replies = self._pipelined(number, pipeline)
        except Unreachable as unreachable:
            return unreachable
        return shaped(batch, pipeline.counts(replies))

    def _hit_conditionally(self, number: int, batch: Sequence[Conditional]) -> PartitionCounts:
        """B9: a look at all counters of the batch, and then the count of those that it left."""
        named = [
            [self._naming.name(*each) for each in zip(request.keys, request.end_s, strict=True)]
            for request in batch
        ]
        names = list(dict.fromkeys(name for each in named for name, _ in each))
        try:
            looked = self._replies(number, [(b"GET", name) for name in names])
            counts = {name: _number(reply) for name, reply in zip(names, looked, strict=True)}
            pipeline = Pipeline(self._naming)
            for request, window_names in zip(batch, named, strict=True):
                keys = [name for name, _ in window_names]
                addends = conditional_addends(counts, request._replace(keys=keys))
                for (name, length_s), addend in zip(window_names, addends, strict=True):
                    counts[name] = max(0, counts[name] + addend)
                    pipeline.add(name, addend, length_s)
            counted = pipeline.counts(self._pipelined(number, pipeline))
        except Unreachable as unreachable:
            return unreachable
        taken = iter(counted)
        return [[next(taken) for _ in request.keys] for request in batch]

    def _pipelined(self, number: int, pipeline: Pipeline) -> list[Reply]:
        replies = self._replies(number, pipeline.commands)
        error = pipeline.expiry_error(replies)
        if error is not None:
            self._servers[number].note_expiry_error(error)
        return replies

    def _replies(self, number: int, commands: list[Command]) -> list[Reply]:
        if not commands:
            return []
        replies = self._servers[number].run(commands)
        unknown = [at for at, reply in enumerate(replies) if type(reply) is NoScriptError]
        if unknown:
            # A server that has just become the master, or was started anew, does not know it yet.
            again = self._servers[number].run([loading(commands[at]) for at in unknown])
            for at, reply in zip(unknown, again, strict=True):
                replies[at] = reply
        return replies

    # Being there

    def _look(self) -> None:
        began_s = self._clock.monotonic_s()
        pause_s = self._patience.first_s
        while not self.has_begun:
            for server in self._servers:
                self._ping(server)
            if self.has_begun:
                break
            given_s = self._patience.gives_up_after_s
            if given_s and self._clock.monotonic_s() - began_s >= given_s:
                self._surrender = f"Redis was not reached within {given_s:g} s: giving up"
                LOG.error("%s", self._surrender)
                return
            if self._is_closed.wait(pause_s):
                return
            pause_s = min(pause_s * 2, self._patience.max_s)
        pinged_s = self._clock.monotonic_s()
        while not self._is_closed.is_set():
            self._wait_for_a_look()
            if self._is_closed.is_set():
                return
            is_due = self._clock.monotonic_s() >= pinged_s + PING_EVERY_S
            if is_due:
                pinged_s = self._clock.monotonic_s()
            for server in self._servers:
                if is_due or not server.is_in_reach:
                    self._ping(server)

    def _wait_for_a_look(self) -> None:
        if not self._has_news.wait(LOOK_EVERY_S):
            return
        self._has_news.clear()
        # Who answers pings and nothing else is not asked for more all the time.
        hurried_s, self._hurried_s = self._hurried_s, self._clock.monotonic_s()
        if self._hurried_s - hurried_s < HURRY_EVERY_S:
            self._is_closed.wait(LOOK_EVERY_S)

    def _ping(self, server: WatchedServer) -> None:
        try:
            server.ping()
        except Unreachable as unreachable:
            LOG.debug("%s", unreachable)


def _number(reply: Reply) -> int:
    """The count of a counter that was looked at; 0 where counting it will say what is wrong."""
    count = count_of(reply)
    return 0 if isinstance(count, Unreachable) else count
