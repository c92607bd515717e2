"""Lending partitions as Ray actors, and the channel through which a front reaches one.

Calls are never retried (`max_task_retries=0`): a call that is lost is a lost message, and the
machines know what to send again. Messages are taken one at a time; standing calls have threads of
their own, so that no mail waits behind a full queue. A sync actor takes a message in four fifths of
the time that an async one needs.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import ray
from ray.exceptions import RayError

from tollgate.actors.kernel.actor import named_actor, next_incarnation
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ratelimit.copies.actor import CopyHolder, RayNeighbours, spread_over_nodes
from tollgate.actors.ratelimit.copies.messages import CopyOrigin
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.counting.actor import (
    PENDING_CALLS_MAX,
    START_WITHIN_S,
    MakeKeeper,
)
from tollgate.actors.ratelimit.counting.counter_row import CounterReset, CounterRow, RowsPage
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.channel import OnReply
from tollgate.actors.ratelimit.lent_counting.partition import RESETS_MAX, LendingPartition
from tollgate.actors.ratelimit.lent_counting.survival import Survival

LOG = logging.getLogger("tollgate.counters")
STANDING_CALLS_MAX = 64  # fronts beyond them get their mail with the answers to their messages
STANDING_PATIENCE_S = 5.0
TICK_S = 0.1
RESET_PATIENCE_S = 8.0  # beyond a front's term, after which its loans fall back
CONCURRENCY_GROUPS = {
    "standing": STANDING_CALLS_MAX,
    "describing": 1,
    "inspecting": 1,
    # (resets wait for loans; one beyond those that may is refused by a thread of its own)
    "resetting": RESETS_MAX + 1,
    "copying": 2,
}


class LentCounterPartition(CopyHolder):
    """The shell around one partition: number `own` of those of these names. `make_keeper`: of its
    counters on disk; None: they are in no journal."""

    def __init__(
        self,
        names: Sequence[str],
        own: int,
        terms: Terms,
        clock: Clock,
        make_keeper: MakeKeeper | None = None,
    ) -> None:
        incarnation = next_incarnation(names[own])
        others = RayNeighbours(names, own, clock) if len(names) > 1 else None
        is_new = incarnation == 1
        self._reset_within_s = terms.term_s + RESET_PATIENCE_S
        keeper = None if make_keeper is None else make_keeper()
        # (in a thread, for who is asked may just ask this one; the first of all asks nobody)
        asks_around = others is not None and not is_new
        self._partition = LendingPartition(
            terms,
            incarnation,
            clock,
            is_new=is_new,
            keeps_changes=make_keeper is not None,
            is_open=not asks_around,
            roster=None if keeper is None else keeper.roster(incarnation),
        )
        journal = b"" if keeper is None else keeper.id
        origin = CopyOrigin(own, incarnation, clock.now_s(), journal)
        shelf = CopyShelf(terms, clock)
        super().__init__(shelf)
        self._survival = Survival(self._partition, origin, terms, clock, keeper, others, shelf)
        if asks_around:
            Thread(target=self._begin, name="beginning", daemon=True).start()
        else:
            self._survival.begin()
        spare_what_is_there()
        Thread(target=self._tick, name="tick", daemon=True).start()

    def receive(self, call: bytes) -> bytes:
        """Take a front's message; its mail."""
        with _whole_or_ended():
            return self._partition.receive(call)

    @ray.method(concurrency_group="standing")
    def wait_for_mail(self, front: str) -> bytes:
        """A front's mail, as soon as there is any."""
        return self._partition.wait_for_mail(front, STANDING_PATIENCE_S)

    @ray.method(concurrency_group="describing")
    def describe(self) -> dict[str, int]:
        """The process, the size of its table, and how its counters are kept."""
        kept = self._survival.describe()
        return {"pid": os.getpid(), **self._partition.describe(), **kept}

    @ray.method(concurrency_group="describing")
    def finish(self) -> bool:
        """Whether all that was counted is on disk, if it is kept at all, as soon as that is known:
        the process is about to end."""
        return self._survival.finish()

    @ray.method(concurrency_group="inspecting")
    def list_counters(self, is_wanted: Callable[[bytes], bool], after: Any) -> RowsPage:
        """A page of the counters whose keys are wanted."""
        return self._partition.list_counters(is_wanted, after)

    @ray.method(concurrency_group="inspecting")
    def find_counters(self, keys: Sequence[bytes]) -> list[CounterRow]:
        """The counters of these keys."""
        return self._partition.find_counters(keys)

    @ray.method(concurrency_group="resetting")
    def reset_counters(self, keys: Sequence[bytes], patience_s: float = 0) -> list[CounterReset]:
        """Set these counters to 0, wherever they are lent, within longer than fronts are silent."""
        with _whole_or_ended():
            return self._partition.reset_counters(keys, patience_s or self._reset_within_s)

    def _begin(self) -> None:
        with _whole_or_ended():
            self._survival.begin()

    def _tick(self) -> None:
        pause = Event()
        with _whole_or_ended():
            while True:
                pause.wait(TICK_S)
                self._partition.tick()


@contextmanager
def _whole_or_ended() -> Iterator[None]:
    """Ends the process, which is started again, when the block does not come to its end."""
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if not is_whole:
            LOG.critical("the counter partition is broken, and starts again", exc_info=True)
            os._exit(1)


def start_lent_partitions(
    names: Sequence[str],
    namespace: str,
    terms: Terms,
    clock: Clock,
    make_keepers: Sequence[MakeKeeper | None] | None = None,
) -> list[Any]:
    """Create the named partitions, or find them; their handles, once every one has answered.
    `make_keepers`: for each of them; None: there are no journals."""
    options = {
        "max_task_retries": 0,
        "max_pending_calls": PENDING_CALLS_MAX,
        "concurrency_groups": CONCURRENCY_GROUPS,
    }
    places = spread_over_nodes(len(names))
    keepers = make_keepers or [None] * len(names)
    handles: list[Any] = [
        named_actor(LentCounterPartition, name, namespace, **options, **place).remote(
            names, own, terms, clock, make_keeper
        )
        for own, (name, place, make_keeper) in enumerate(zip(names, places, keepers, strict=True))
    ]
    ray.get([handle.describe.remote() for handle in handles], timeout=START_WITHIN_S)
    return handles


class RayChannel:
    """The channel to the partition behind a handle."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def send(self, message: bytes, on_reply: OnReply) -> None:
        _call(lambda: self._handle.receive.remote(message), on_reply)

    def listen(self, front: str, on_reply: OnReply) -> None:
        _call(lambda: self._handle.wait_for_mail.remote(front), on_reply)


def _call(begin: Callable[[], Any], on_reply: OnReply) -> None:
    try:
        future = begin().future()
    except RayError:  # too many calls are under way, or the actor is known to be away
        on_reply(None)
        return
    future.add_done_callback(lambda done: on_reply(None if done.exception() else done.result()))
