"""`DeliveryStore` on SQL: claiming what is due, and settling what was called.

Events and webhooks are the entities that the journal's commits write, so nothing has to be written
twice for a delivery to become due. A lease is taken by an upsert that only an expired one lets
through, so of several processes one gets it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from secrets import token_hex

from sqlalchemy import and_, delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, DeliveryBatch
from tollgate.actors.ledger.delivery.schedule import settlement
from tollgate.actors.ledger.delivery.store import (
    ChooseDue,
    DeadLetter,
    DeliveriesDown,
    DeliveryOverview,
    DeliveryStatus,
    LoggedAttempt,
    first_due,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.deliveries.batch_query import batch_of
from tollgate.actors.ledger.storage.deliveries.overview import counted, oldest_new
from tollgate.actors.ledger.storage.deliveries.settling import Writing
from tollgate.actors.ledger.storage.deliveries.tables import (
    DueWebhook,
    cursors,
    dead,
    due_of,
    due_webhooks,
    is_free,
    log,
    retries,
    webhooks,
)
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason

# Webhooks that are offered at once, and how often more are: one merchant may have many.
OFFER_MAX, OFFERS_MAX = 2_000, 10
# A new connection is refused, too, when the file behind it is no longer what it was.
_AWAY: tuple[type[Exception], ...] = (*FAILURES, StorageError)


class SqlDeliveryStore:
    """The progress of webhooks in the storage of the journal."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        events_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        due: list[DueWebhook] = []
        async with self._reading() as connection:
            for page in range(OFFERS_MAX):
                query = due_webhooks(now_ms, lease_ms).limit(OFFER_MAX).offset(page * OFFER_MAX)
                rows = (await connection.execute(query)).all()
                offered = {each.webhook.id: each for each in (due_of(*row) for row in rows)}
                offers = [each.offer for each in offered.values()]
                due += [offered[each.webhook] for each in choose(offers, batches_max - len(due))]
                if len(rows) < OFFER_MAX or len(due) >= batches_max:
                    break
        if not due:
            return []
        lease = token_hex(16)
        async with self._writing() as writing:
            ours = [each for each in due if await _lease(writing, each, lease, now_ms, lease_ms)]
        async with self._reading() as connection:
            return [await batch_of(connection, each, lease, now_ms, events_max) for each in ours]

    async def settle(
        self, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
    ) -> bool:
        found = settlement(batch, attempts, now_ms)
        async with self._writing() as writing:
            if not await writing.progress(batch, found.progress, now_ms):
                return False
            await writing.retries(batch.webhook, found, now_ms)
            await writing.dead_letters(batch.webhook, found.dead, found.replayed, now_ms)
            await writing.log(batch.webhook, attempts, found.waiting)
        return True

    async def log(self, webhook: EntityId, attempt: DeliveryAttempt) -> EntityId:
        async with self._writing() as writing:
            (written,) = await writing.log(webhook, [attempt])
        return written

    async def attempts(
        self, webhook: EntityId, limit: int, before: EntityId | None = None
    ) -> Sequence[LoggedAttempt]:
        columns = [column for column in log.c if column is not log.c.webhook]
        query = select(*columns).where(log.c.webhook == webhook)
        if before is not None:
            query = query.where(log.c.id < before)
        async with self._reading() as connection:
            found = await connection.execute(query.order_by(log.c.id.desc()).limit(limit))
            return [LoggedAttempt(*row) for row in found]

    async def status(self, webhook: EntityId) -> DeliveryStatus:
        waiting = select(
            func.count(), func.min(retries.c.failing_since_ms), func.min(retries.c.next_attempt_ms)
        ).where(retries.c.webhook == webhook)
        buried = select(func.count()).where(dead.c.webhook == webhook)
        async with self._reading() as connection:
            count, since_ms, next_ms = (await connection.execute(waiting)).one()
            letters = (await connection.execute(buried)).scalar_one()
        return DeliveryStatus(count, letters, since_ms, next_ms)

    async def overview(self) -> DeliveryOverview:
        """How all of them fare now, for operators. Raises DeliveriesDown."""
        async with self._reading() as connection:
            letters, waiting = (await connection.execute(counted())).one()
            oldest = (await connection.execute(oldest_new())).scalar_one()
        return DeliveryOverview(letters, waiting, None if oldest is None else EntityId(oldest))

    async def dead_letters(
        self, webhook: EntityId, limit: int, before: EntityId | None = None
    ) -> Sequence[DeadLetter]:
        query = select(dead.c.event, dead.c.at_ms, dead.c.reason, dead.c.is_queued)
        query = query.where(dead.c.webhook == webhook)
        if before is not None:
            query = query.where(dead.c.event < before)
        async with self._reading() as connection:
            found = await connection.execute(query.order_by(dead.c.event.desc()).limit(limit))
            return [DeadLetter(*row) for row in found]

    async def retry_now(
        self, webhook: EntityId, events: Sequence[EntityId] | None, now_ms: int
    ) -> int:
        wanted = [retries.c.webhook == webhook]
        if events is not None:
            wanted.append(retries.c.event.in_(events))
        async with self._writing() as writing:
            hurried = await writing.run(update(retries).where(*wanted).values(next_attempt_ms=0))
            # Whoever asks for it says that the receiver is well again.
            if hurried or events is None:
                woken = update(cursors).where(cursors.c.webhook == webhook)
                await writing.run(woken.values(next_attempt_ms=now_ms))
            return hurried

    async def send_again(
        self, webhook: EntityId, events: Sequence[EntityId] | None, now_ms: int
    ) -> int:
        wanted = [dead.c.webhook == webhook, dead.c.is_queued.is_(False)]
        if events is not None:
            wanted.append(dead.c.event.in_(events))
        async with self._writing() as writing:
            return await writing.run(update(dead).where(*wanted).values(is_queued=True))

    async def forget_removed(self) -> int:
        forgotten = 0
        async with self._writing() as writing:
            for table in (cursors, retries, dead, log):
                gone = ~exists().where(webhooks.c.id == table.c.webhook)
                forgotten += await writing.run(delete(table).where(gone))
        return forgotten

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.reader.connect() as connection:
                yield connection
        except _AWAY as failure:
            raise DeliveriesDown(reason(failure)) from failure

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[Writing]:
        try:
            async with self._database.writer.begin() as connection:
                yield Writing(connection, is_sqlite=self._database.is_sqlite)
        except _AWAY as failure:
            raise DeliveriesDown(reason(failure)) from failure


async def _lease(writing: Writing, due: DueWebhook, lease: str, now_ms: int, lease_ms: int) -> bool:
    held = {"lease": lease, "leased_until_ms": now_ms + lease_ms}
    fresh = {"failures": 0, "failing_since_ms": None, "next_attempt_ms": 0}
    cursor = due.progress.cursor
    statement = (
        writing.insert(cursors)
        .values(webhook=due.webhook.id, cursor=cursor, **fresh, **held)
        .on_conflict_do_update(
            index_elements=[cursors.c.webhook],
            set_=held,
            # What was read may have been done by another since: then it is not as it was.
            where=and_(
                is_free(now_ms, lease_ms),
                cursors.c.cursor == cursor,
                cursors.c.next_attempt_ms == due.progress.next_attempt_ms,
            ),
        )
        .returning(cursors.c.webhook)
    )
    return (await writing.connection.execute(statement)).first() is not None
