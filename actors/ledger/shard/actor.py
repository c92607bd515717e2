"""Ledger shards as Ray actors, and the connections on which web processes reach them.

A shard is called once per batch, with one `bytes` argument: Ray's serialiser would cost each call
another 100 µs. Ray repeats none (`max_task_retries=0`): a call that got lost may have moved money,
and only its operation ids make asking again safe. No call carries a card's number or security code:
Ray may spill its arguments to disk (part G).

An actor takes its shard over as it starts, and from then on its commits carry the new epoch. When
its shard has ended (fenced, or a commit of unknown outcome), the process ends as well, once the
waiters have been told; Ray starts the next incarnation.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import ray
from ray.exceptions import ActorDiedError, PendingCallsLimitExceeded, RayError

from tollgate.actors.kernel.actor import ActorSeat, end_process, named_actor
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.actors.ledger.shard import call_format
from tollgate.actors.ledger.shard.client import NotSent, Unanswered
from tollgate.actors.ledger.shard.figures import ShardReport
from tollgate.actors.ledger.shard.pipeline import Shard
from tollgate.actors.ledger.shard.spec import ShardSpec, is_shard
from tollgate.actors.ledger.shard.takeover import NotTakenOver, admitted, taken_over

LOG = logging.getLogger("tollgate.ledger")
PENDING_CALLS_MAX = 1_000
FAREWELL_S = 0.1  # for the replies of the last batch to leave the process


class LedgerShard:
    """The shell around one `Shard`."""

    def __init__(self, spec: ShardSpec) -> None:
        self._spec = spec
        self._incarnation = f"{ray.get_runtime_context().get_actor_id()}/{os.getpid()}"
        self._epoch, self._takeover_s = 0, 0.0
        self._taking_over = asyncio.get_running_loop().create_task(self._take_over())
        self._taking_over.add_done_callback(_end_without_shard)
        spare_what_is_there()

    async def execute(self, call: bytes) -> bytes:
        """Orders in, their answers out, in order: see call_format.py. Raises NotTakenOver."""
        try:
            orders = call_format.orders_of(call)
        except call_format.UnknownCall as unknown:
            LOG.error("%s: orders of another release are refused: %s", self._spec.name, unknown)
            return call_format.refusal()
        owner_of, mine = self._spec.shards.shard_of, self._spec.number
        assert all(owner_of(order.book) == mine for order in orders), "an order for another shard"
        # A caller that gives up must not take the others' shard with it.
        shard = await admitted(asyncio.shield(self._taking_over))
        return call_format.reply_of(await shard.execute(orders))

    async def ping(self) -> None:
        """Says that the process answers, whatever its storage does."""

    async def report(self) -> ShardReport:
        """What it has done since it was asked last; epoch 0: it is not taken over."""
        name, pid = self._spec.name, os.getpid()
        if not self._taking_over.done():
            return ShardReport(name, pid)
        shard = self._taking_over.result()
        counted = shard.depth, shard.books, shard.cached_bytes, *shard.tally.take()
        return ShardReport(name, pid, self._epoch, self._takeover_s, *counted)

    async def describe(self) -> dict[str, object]:
        """The process, its epoch, and what it has done; answered once the shard is taken over."""
        shard = await asyncio.shield(self._taking_over)
        return {
            "name": self._spec.name,
            "pid": os.getpid(),
            "incarnation": self._incarnation,
            "epoch": self._epoch,
            "waiting": shard.depth,
            "books": shard.books,
            "cached_bytes": shard.cached_bytes,
            **asdict(shard.figures),
        }

    async def _take_over(self) -> Shard:
        begun_s = self._spec.clock.monotonic_s()
        store, self._epoch = await taken_over(self._spec, self._incarnation)
        self._takeover_s = self._spec.clock.monotonic_s() - begun_s
        return Shard(store, self._spec.clock, self._end, self._spec.bounds)

    def _end(self, error: BaseException) -> None:
        _leave(f"{self._spec.name}: epoch {self._epoch} ends", error)


def _end_without_shard(taking_over: asyncio.Task[Shard]) -> None:
    if not taking_over.cancelled() and (error := taking_over.exception()) is not None:
        _leave("the shard cannot be taken over", error)


def _leave(why: str, error: BaseException) -> None:
    LOG.critical("%s: %r", why, error, exc_info=error)
    asyncio.get_running_loop().call_later(FAREWELL_S, os._exit, 1)


def start_shard(spec: ShardSpec, namespace: str) -> Any:
    """Create the named shard, or find it: its handle. Blocks while the cluster is looked up."""
    return named_actor(
        LedgerShard,
        spec.actor_name,
        namespace,
        max_task_retries=0,
        max_pending_calls=PENDING_CALLS_MAX,
        max_concurrency=PENDING_CALLS_MAX,
    ).remote(spec)


def start_shards(specs: Sequence[ShardSpec], namespace: str) -> list[Any]:
    """Create the shards, or find them: their handles, once every one has taken over. Shards of
    another release or of other settings, which outlive whoever started them, end before."""
    mine = {spec.actor_name for spec in specs}
    for name in ray.util.list_named_actors(all_namespaces=True):
        if name["namespace"] == namespace and is_shard(name["name"]) and name["name"] not in mine:
            with suppress(ValueError):  # (it has ended meanwhile)
                end_process(ray.get_actor(name["name"], namespace), no_restart=True)
    handles = [start_shard(spec, namespace) for spec in specs]
    ray.get([handle.describe.remote() for handle in handles])
    return handles


class RayShardConnection:
    """A shard actor on a cached handle. It is found again, off the loop, only when Ray says that it
    is gone for good.

    A call that takes too long is slow storage, which another process would not make faster, or a
    process that is started, or one that hangs. A ping and Ray tell: who hangs is removed, under its
    own id, so that of several clients who notice none removes its successor; what it may still do
    before Ray has ended it, the epoch refuses (F1).
    """

    def __init__(self, find: Callable[[], Any], handle: Any, timeout_s: float) -> None:
        self._find = find
        self._handle = handle
        self._timeout_s = timeout_s
        self._replacing: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns once the shard has been taken over. Raises as `call`."""
        await self._answer(lambda it: it.describe.remote())

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """See ShardConnection."""
        payload = call_format.call_of(orders)
        return call_format.answers_of(await self._answer(lambda it: it.execute.remote(payload)))

    async def report(self) -> tuple[ShardReport, Any]:
        """What the shard has done since somebody asked, and its handle. Raises as `call`."""
        return await self._answer(lambda it: it.report.remote()), self._handle

    async def _answer(self, call: Callable[[Any], Any]) -> Any:
        called = self._handle
        try:
            return await asyncio.wait_for(call(called), self._timeout_s)
        except (PendingCallsLimitExceeded, NotTakenOver) as error:
            raise NotSent(f"the shard takes no calls now: {type(error).__name__}") from error
        except ActorDiedError as error:
            await self._replace(called, self._find_again)
            raise Unanswered("the shard is gone, and was found again") from error
        except TimeoutError as error:
            await self._replace(called, self._remove_if_it_hangs)
            raise Unanswered("the shard does not answer in time") from error
        except RayError as error:
            raise Unanswered(f"the shard does not answer: {type(error).__name__}") from error

    async def _replace(self, called: Any, work: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        """Do it once for all the calls that were made on the same handle."""
        if called is not self._handle:
            return
        if self._replacing is None or self._replacing.done():
            self._replacing = asyncio.get_running_loop().create_task(work(called))
        await asyncio.shield(self._replacing)

    async def _find_again(self, _: Any) -> None:
        self._handle = await asyncio.to_thread(self._find)

    async def _remove_if_it_hangs(self, called: Any) -> None:
        try:
            await asyncio.wait_for(called.ping.remote(), self._timeout_s)
        except TimeoutError:
            if ActorSeat(called).is_away(None):
                return
            LOG.critical("a ledger shard hangs: %r is removed and started anew", called)
            await asyncio.to_thread(end_process, called, no_restart=True)
            await self._find_again(called)
        except RayError:
            return  # (restarting, or gone: the next call says which)
