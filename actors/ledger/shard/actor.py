"""Ledger shards as Ray actors, and the connections on which web processes reach them.

A shard is called once per batch, with one `bytes` argument: Ray's generic serialiser would cost
each call another 100 µs. Ray never repeats a call (`max_task_retries=0`): a call that got lost may
have moved money, and only the operation ids in it make asking again safe. No call carries a card's
number or security code: Ray may spill its arguments to disk (part G).

An actor takes its shard over as it starts, on its own event loop, and from then on its commits
carry the new epoch. While storage does not answer it tries again, and callers hear that nothing was
done. When its shard has ended (fenced, or a commit of unknown outcome), the process ends as well,
once the waiters have been told; Ray starts the next incarnation.
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

from tollgate.actors.kernel.actor import end_process, named_actor
from tollgate.actors.kernel.garbage_collection import spare_what_is_there
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import OrderOutcome
from tollgate.actors.ledger.shard import call_format
from tollgate.actors.ledger.shard.client import NotSent, Unanswered
from tollgate.actors.ledger.shard.pipeline import Shard
from tollgate.actors.ledger.shard.spec import ShardSpec, is_shard
from tollgate.actors.ledger.shard.takeover import NotTakenOver, admitted, taken_over

LOG = logging.getLogger("tollgate.ledger")
PENDING_CALLS_MAX = 1_000
# Time for the replies of the last batch to leave the process.
FAREWELL_S = 0.1


class LedgerShard:
    """The shell around one `Shard`."""

    def __init__(self, spec: ShardSpec) -> None:
        self._spec = spec
        self._incarnation = f"{ray.get_runtime_context().get_actor_id()}/{os.getpid()}"
        self._epoch = 0
        # (Ray makes asynchronous actors on their event loop)
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
        mine = self._spec.shards
        for order in orders:
            assert mine.shard_of(order.book) == self._spec.number, "an order for another shard"
        # A caller that gives up must not take the others' shard with it.
        shard = await admitted(asyncio.shield(self._taking_over))
        return call_format.reply_of(await shard.execute(orders))

    async def ping(self) -> bool:
        """Says that the process answers, whatever its storage does."""
        return True

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
        store, self._epoch = await taken_over(self._spec, self._incarnation)
        return Shard(store, self._spec.clock, self._end, self._spec.bounds)

    def _end(self, error: BaseException) -> None:
        LOG.critical("%s: epoch %d ends: %r", self._spec.name, self._epoch, error, exc_info=error)
        asyncio.get_running_loop().call_later(FAREWELL_S, os._exit, 1)


def _end_without_shard(taking_over: asyncio.Task[Shard]) -> None:
    if not taking_over.cancelled() and (error := taking_over.exception()) is not None:
        LOG.critical("the shard cannot be taken over: %r", error, exc_info=error)
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

    A call that takes too long is either slow storage, which another process would not make faster,
    or a process that hangs. A ping tells them apart: who answers it stays. Who does not is removed,
    under its own id, so that of several clients who notice none removes its successor; what it may
    still do before Ray has ended it, the epoch refuses (F1).
    """

    def __init__(self, find: Callable[[], Any], handle: Any, timeout_s: float) -> None:
        self._find = find
        self._handle = handle
        self._timeout_s = timeout_s
        self._replacing: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns once the shard has been taken over. Raises Unanswered while it is away."""
        called = self._handle
        try:
            await called.describe.remote()
        except ActorDiedError as error:
            await self._replace(called, self._find_again)
            raise Unanswered("the shard is gone, and was found again") from error
        except RayError as error:
            raise Unanswered(f"the shard does not answer: {type(error).__name__}") from error

    async def call(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """See ShardConnection."""
        payload = call_format.call_of(orders)
        called = self._handle
        try:
            async with asyncio.timeout(self._timeout_s):
                return call_format.answers_of(await called.execute.remote(payload))
        except PendingCallsLimitExceeded as error:
            raise NotSent("too many calls are waiting for the shard") from error
        except NotTakenOver as error:
            raise NotSent("the shard waits for its storage") from error
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
            async with asyncio.timeout(self._timeout_s):
                await called.ping.remote()
        except TimeoutError:
            LOG.critical("a ledger shard hangs: %r is removed and started anew", called)
            await asyncio.to_thread(end_process, called, no_restart=True)
            await self._find_again(called)
        except RayError:
            return  # it is restarting, or gone, and the next call says which
