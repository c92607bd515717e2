"""`DeliveryStore` on SQL: a row per webhook that has begun, and a row per dead letter.

Events and webhooks are the entities that the journal's commits write, so nothing has to be written
twice for a delivery to become due. A lease is taken by an upsert that only an expired one lets
through, so of several processes one gets it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from secrets import token_hex

from sqlalchemy import and_, delete, exists, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from tollgate.actors.ledger.delivery.schedule import (
    DEAD_LETTERS_MAX,
    REASON_LENGTH_MAX,
    ChooseDue,
    DeadLetter,
    DeliveriesDown,
    DeliveryBatch,
    DeliveryOutcome,
    DeliveryProgress,
    OutgoingEvent,
    dead_up_to,
    first_due,
    progress_after,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.delivery_tables import (
    DueWebhook,
    cursors,
    dead,
    due_of,
    due_webhooks,
    is_free,
    queued_letters,
    webhooks,
    young_events,
)
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.tables import entities

DEAD_AT_ONCE_MAX = 1_000
# Webhooks that are offered at once, and how often more are: one merchant may have many.
OFFER_MAX, OFFERS_MAX = 2_000, 10
# A new connection is refused, too, when the file behind it is no longer what it was.
_AWAY: tuple[type[Exception], ...] = (*FAILURES, StorageError)


class SqlDeliveryStore:
    """The progress of webhooks in the storage of the journal."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        letters_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        due: list[DueWebhook] = []
        async with self._reading() as connection:
            for page in range(OFFERS_MAX):
                query = due_webhooks(now_ms).limit(OFFER_MAX).offset(page * OFFER_MAX)
                rows = (await connection.execute(query)).all()
                offered = {each.webhook.id: each for each in (due_of(*row) for row in rows)}
                offers = [each.offer for each in offered.values()]
                due += [offered[each.webhook] for each in choose(offers, batches_max - len(due))]
                if len(rows) < OFFER_MAX or len(due) >= batches_max:
                    break
        if not due:
            return []
        lease = token_hex(16)
        async with self._writing() as connection:
            ours = [
                each for each in due if await self._lease(connection, each, lease, now_ms, lease_ms)
            ]
        async with self._reading() as connection:
            return [await _batch(connection, each, lease, letters_max) for each in ours]

    async def _lease(
        self, connection: AsyncConnection, due: DueWebhook, lease: str, now_ms: int, lease_ms: int
    ) -> bool:
        held = {"lease": lease, "leased_until_ms": now_ms + lease_ms}
        fresh = {"failures": 0, "failing_since_ms": None, "next_attempt_ms": 0}
        cursor = due.progress.cursor
        statement = (
            self._insert(cursors)
            .values(webhook=due.webhook.id, cursor=cursor, **fresh, **held)
            .on_conflict_do_update(
                index_elements=[cursors.c.webhook],
                set_=held,
                # What was read may have been done by another since: then it is not as it was.
                where=and_(is_free(now_ms), cursors.c.cursor == cursor),
            )
            .returning(cursors.c.webhook)
        )
        return (await connection.execute(statement)).first() is not None

    async def settle(self, batch: DeliveryBatch, outcome: DeliveryOutcome, now_ms: int) -> bool:
        progress = progress_after(batch, outcome, now_ms)
        reason = (outcome.reason or "")[:REASON_LENGTH_MAX]
        async with self._writing() as connection:
            given_up = await _given_up(connection, batch, progress, now_ms)
            statement = (
                update(cursors)
                .where(cursors.c.webhook == batch.webhook, cursors.c.lease == batch.lease)
                .values(
                    cursor=given_up[-1] if given_up else progress.cursor,
                    failures=progress.failures,
                    failing_since_ms=progress.failing_since_ms,
                    next_attempt_ms=progress.next_attempt_ms,
                    lease="",
                    leased_until_ms=0,
                )
                .returning(cursors.c.webhook)
            )
            if (await connection.execute(statement)).first() is None:
                return False
            await self._bury(connection, batch.webhook, given_up, reason, now_ms)
            await _settle_again(connection, batch, outcome, reason, now_ms)
        return True

    async def _bury(
        self,
        connection: AsyncConnection,
        webhook: EntityId,
        events: Sequence[str],
        reason: str,
        now_ms: int,
    ) -> None:
        if not events:
            return
        kept = {"at_ms": now_ms, "reason": reason, "is_queued": False}
        rows = [{"webhook": webhook, "event": event, **kept} for event in events]
        statement = self._insert(dead).on_conflict_do_nothing()
        await connection.execute(statement, rows)
        oldest_kept = (
            select(dead.c.event)
            .where(dead.c.webhook == webhook)
            .order_by(dead.c.event.desc())
            .offset(DEAD_LETTERS_MAX - 1)
            .limit(1)
        )
        limit = (await connection.execute(oldest_kept)).scalar()
        if limit is not None:
            await connection.execute(
                delete(dead).where(dead.c.webhook == webhook, dead.c.event < limit)
            )

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

    async def send_again(
        self, webhook: EntityId, events: Sequence[EntityId] | None, now_ms: int
    ) -> int:
        wanted = [dead.c.webhook == webhook, dead.c.is_queued.is_(False)]
        if events is not None:
            wanted.append(dead.c.event.in_(events))
        async with self._writing() as connection:
            queued = await connection.execute(update(dead).where(*wanted).values(is_queued=True))
            if queued.rowcount:
                # Whoever asks for it says that the receiver is well again.
                await connection.execute(
                    update(cursors)
                    .where(cursors.c.webhook == webhook)
                    .values(next_attempt_ms=now_ms)
                )
            return queued.rowcount

    async def forget_removed(self) -> int:
        forgotten = 0
        async with self._writing() as connection:
            for table in (cursors, dead):
                gone = ~exists().where(webhooks.c.id == table.c.webhook)
                forgotten += (await connection.execute(delete(table).where(gone))).rowcount
        return forgotten

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.reader.connect() as connection:
                yield connection
        except _AWAY as failure:
            raise DeliveriesDown(reason(failure)) from failure

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._database.writer.begin() as connection:
                yield connection
        except _AWAY as failure:
            raise DeliveriesDown(reason(failure)) from failure


async def _batch(
    connection: AsyncConnection, due: DueWebhook, lease: str, letters_max: int
) -> DeliveryBatch:
    """New events first, and dead letters that are sent again in the room they leave."""
    letters: list[OutgoingEvent] = []
    for query, is_again in ((young_events(due), False), (queued_letters(due), True)):
        if room := letters_max - len(letters):
            found = await connection.execute(query.limit(room))
            letters += [OutgoingEvent(EntityId(event), body, is_again) for event, body in found]
    webhook = due.webhook
    return DeliveryBatch(
        webhook=webhook.id,
        book=webhook.book,
        url=webhook.url,
        secret=webhook.secret,
        lease=lease,
        progress=due.progress,
        letters=tuple(letters),
    )


async def _given_up(
    connection: AsyncConnection, batch: DeliveryBatch, progress: DeliveryProgress, now_ms: int
) -> list[str]:
    """The events that are dead now, in order."""
    limit = dead_up_to(progress, now_ms)
    if limit is None:
        return []
    query = (
        select(entities.c.id)
        .where(
            entities.c.book == batch.book,
            entities.c.kind == "event",
            entities.c.id > progress.cursor,
            entities.c.id < limit,
        )
        .order_by(entities.c.id)
        .limit(DEAD_AT_ONCE_MAX)
    )
    return list((await connection.execute(query)).scalars())


async def _settle_again(
    connection: AsyncConnection,
    batch: DeliveryBatch,
    outcome: DeliveryOutcome,
    reason: str,
    now_ms: int,
) -> None:
    """Dead letters that were sent again: gone, or dead for another reason."""
    done = [letter.event for letter in batch.letters[: outcome.delivered] if letter.is_again]
    ours = dead.c.webhook == batch.webhook
    if done:
        await connection.execute(delete(dead).where(ours, dead.c.event.in_(done)))
    failed = batch.letters[outcome.delivered : outcome.delivered + 1] if reason else ()
    for letter in failed:
        if letter.is_again:
            await connection.execute(
                update(dead)
                .where(ours, dead.c.event == letter.event)
                .values(is_queued=False, reason=reason, at_ms=now_ms)
            )
