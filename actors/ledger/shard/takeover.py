"""Taking a shard over, as soon as its storage answers.

A process that gave up at once would only be started again, which costs a second of a processor each
time and changes nothing about the storage.
"""

import asyncio
import logging
from collections.abc import Awaitable
from itertools import chain, repeat

from tollgate.actors.ledger.shard.pipeline import Shard
from tollgate.actors.ledger.shard.spec import ShardSpec
from tollgate.actors.ledger.storage.errors import StorageError
from tollgate.actors.ledger.storage.store import JournalStore, StorageDown

LOG = logging.getLogger("tollgate.ledger")
# Between tries; the last one stays.
PAUSES_S = (0.1, 0.2, 0.5, 1.0)
# Then the process ends, in case the fault is its own.
WITHIN_S = 60.0
# An order waits no longer for a shard that is not taken over yet.
ADMIT_WITHIN_S = 0.5


class NotTakenOver(Exception):  # noqa: N818 - a state of the world
    """The process has no shard yet: it has not looked at the orders."""


async def taken_over(spec: ShardSpec, incarnation: str) -> tuple[JournalStore, int]:
    """The store of a shard that is this incarnation's from now on, and its epoch.

    Raises TimeoutError when storage has not answered for WITHIN_S.
    """
    store: JournalStore | None = None
    pauses_s = chain(PAUSES_S, repeat(PAUSES_S[-1]))
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                store = store or await spec.open_store()
                epoch = await store.take_over(spec.name, incarnation)
            except (StorageDown, StorageError) as error:
                LOG.error("%s cannot be taken over yet: %s", spec.name, error)
                await asyncio.sleep(next(pauses_s))
                continue
            LOG.info("%s: epoch %d, %s", spec.name, epoch, incarnation)
            return store, epoch


async def admitted(shard: Awaitable[Shard]) -> Shard:
    """The shard, for an order. Raises NotTakenOver when it takes longer than ADMIT_WITHIN_S."""
    try:
        async with asyncio.timeout(ADMIT_WITHIN_S):
            return await shard
    except TimeoutError:
        raise NotTakenOver from None
