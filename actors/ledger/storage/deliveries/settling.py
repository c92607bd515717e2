"""What a settled batch writes: progress, events that wait, dead letters, the log."""

from collections.abc import Iterable, Sequence
from secrets import token_hex
from typing import Any

from sqlalchemy import Table, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Delete, Update

from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, DeliveryBatch, DeliveryProgress
from tollgate.actors.ledger.delivery.schedule import (
    DEAD_LETTERS_MAX,
    WAITING_MAX,
    Settlement,
    Waiting,
    dead_up_to,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.deliveries.tables import cursors, dead, log, retries
from tollgate.actors.ledger.storage.tables import entities

REASON_LENGTH_MAX = 300
DEAD_AT_ONCE_MAX = 1_000
LOG_MAX = 1_000  # of one webhook; beyond that the oldest go
UNTRIED = "the receiver was away for three days"
TOO_MANY = f"more than {WAITING_MAX} events waited; before that: "


class Writing:
    """A transaction that writes about deliveries."""

    def __init__(self, connection: AsyncConnection, *, is_sqlite: bool) -> None:
        self.connection = connection
        self._insert = sqlite.insert if is_sqlite else postgresql.insert

    def insert(self, table: Table) -> Any:
        """An insertion that can say what happens to what is there already."""
        return self._insert(table)

    async def run(self, statement: Update | Delete) -> int:
        """How many rows it changed."""
        return (await self.connection.execute(statement)).rowcount

    async def progress(self, batch: DeliveryBatch, progress: DeliveryProgress, now_ms: int) -> bool:
        """Ends the lease. False: it had ended already, and nothing was written."""
        given_up = await self._given_up(batch, progress, now_ms)
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
        if (await self.connection.execute(statement)).first() is None:
            return False
        await self._bury(batch.webhook, [(event, UNTRIED) for event in given_up], now_ms)
        return True

    async def _given_up(
        self, batch: DeliveryBatch, progress: DeliveryProgress, now_ms: int
    ) -> list[EntityId]:
        """The events that are dead without an attempt, in order."""
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
        return [EntityId(event) for event in (await self.connection.execute(query)).scalars()]

    async def retries(self, webhook: EntityId, found: Settlement, now_ms: int) -> None:
        """The events that wait for another try: fewer, more, or earlier than before."""
        ours = retries.c.webhook == webhook
        ended = [*found.delivered, *(event for event, _ in found.dead)]
        if ended:
            await self.run(delete(retries).where(ours, retries.c.event.in_(ended)))
        if not found.keeps_recovering:
            recovering = (ours, retries.c.next_attempt_ms == 0)
            await self.run(update(retries).where(*recovering).values(next_attempt_ms=now_ms))
        if found.waiting:
            await self._wait(webhook, found.waiting)
            await self._end_the_oldest(webhook, now_ms)
        if found.recovers_since_ms is not None:
            since = retries.c.failing_since_ms >= found.recovers_since_ms
            await self.run(update(retries).where(ours, since).values(next_attempt_ms=0))

    async def _wait(self, webhook: EntityId, waiting: Sequence[Waiting]) -> None:
        statement = self.insert(retries)
        rows = [
            {
                "webhook": webhook,
                "event": each.event,
                "failing_since_ms": each.failing_since_ms,
                "attempts": each.attempts,
                "next_attempt_ms": each.next_attempt_ms,
                "reason": each.reason[:REASON_LENGTH_MAX],
            }
            for each in waiting
        ]
        changed = {
            name: statement.excluded[name]
            for name in ("failing_since_ms", "attempts", "next_attempt_ms", "reason")
        }
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=[retries.c.webhook, retries.c.event], set_=changed
            ),
            rows,
        )

    async def _end_the_oldest(self, webhook: EntityId, now_ms: int) -> None:
        """They make room: nothing else can, while a receiver refuses everything of a kind."""
        ours = retries.c.webhook == webhook
        beyond = (
            select(retries.c.event, retries.c.reason)
            .where(ours)
            .order_by(retries.c.event.desc())
            .offset(WAITING_MAX)
        )
        found = (await self.connection.execute(beyond)).all()
        if found:
            await self._bury(webhook, [(event, TOO_MANY + why) for event, why in found], now_ms)
            ended = [event for event, _ in found]
            await self.run(delete(retries).where(ours, retries.c.event.in_(ended)))

    async def dead_letters(
        self,
        webhook: EntityId,
        given_up: Iterable[tuple[EntityId, str]],
        replayed: Sequence[EntityId],
        now_ms: int,
    ) -> None:
        """Those that are dead now, once more or for the first time, and those that are no more."""
        if replayed:
            ours = dead.c.webhook == webhook
            await self.run(delete(dead).where(ours, dead.c.event.in_(replayed)))
        await self._bury(webhook, given_up, now_ms)

    async def _bury(
        self, webhook: EntityId, given_up: Iterable[tuple[EntityId, str]], now_ms: int
    ) -> None:
        rows = [
            {
                "webhook": webhook,
                "event": event,
                "at_ms": now_ms,
                "reason": reason[:REASON_LENGTH_MAX],
                "is_queued": False,
            }
            for event, reason in given_up
        ]
        if not rows:
            return
        statement = self.insert(dead)
        changed = {name: statement.excluded[name] for name in ("at_ms", "reason", "is_queued")}
        await self.connection.execute(
            statement.on_conflict_do_update(
                index_elements=[dead.c.webhook, dead.c.event], set_=changed
            ),
            rows,
        )
        await self._keep_newest(dead, "event", webhook, DEAD_LETTERS_MAX)

    async def log(
        self,
        webhook: EntityId,
        attempts: Sequence[DeliveryAttempt],
        waiting: Iterable[Waiting] = (),
    ) -> list[EntityId]:
        """Writes the attempts down; their ids in the log."""
        next_ms = {each.event: each.next_attempt_ms for each in waiting}
        ids = [_log_id(attempt.at_ms, number) for number, attempt in enumerate(attempts)]
        rows = [
            {
                "webhook": webhook,
                "id": id_,
                "event": attempt.event.event,
                "type": attempt.event.type,
                "at_ms": attempt.at_ms,
                "duration_ms": attempt.duration_ms,
                "status": attempt.result.status,
                "error": (attempt.result.error or "")[:REASON_LENGTH_MAX],
                "next_attempt_ms": next_ms.get(attempt.event.event),
            }
            for id_, attempt in zip(ids, attempts, strict=True)
        ]
        if rows:
            await self.connection.execute(self.insert(log), rows)
            await self._keep_newest(log, "id", webhook, LOG_MAX)
        return ids

    async def _keep_newest(self, table: Table, key: str, webhook: EntityId, most: int) -> None:
        column, ours = table.c[key], table.c.webhook == webhook
        newest = select(column).where(ours).order_by(column.desc())
        limit = (await self.connection.execute(newest.offset(most - 1).limit(1))).scalar()
        if limit is not None:
            await self.run(delete(table).where(ours, column < limit))


def _log_id(at_ms: int, number: int) -> EntityId:
    """An id that rises with time, and is nobody else's."""
    return EntityId(f"{at_ms // 1000:08x}{at_ms % 1000:04x}{number:04x}{token_hex(4)}")
