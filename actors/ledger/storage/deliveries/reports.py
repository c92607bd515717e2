"""What merchants read of deliveries: the log, the status, the dead letters."""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tollgate.actors.ledger.delivery.store import DeadLetter, DeliveryStatus, LoggedAttempt
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.deliveries.tables import dead, log, retries


async def attempts(
    connection: AsyncConnection, webhook: EntityId, limit: int, before: EntityId | None
) -> list[LoggedAttempt]:
    """The newest first."""
    columns = [column for column in log.c if column is not log.c.webhook]
    query = select(*columns).where(log.c.webhook == webhook)
    if before is not None:
        query = query.where(log.c.id < before)
    found = await connection.execute(query.order_by(log.c.id.desc()).limit(limit))
    return [LoggedAttempt(*row) for row in found]


async def dead_letters(
    connection: AsyncConnection, webhook: EntityId, limit: int, before: EntityId | None
) -> list[DeadLetter]:
    """The newest first."""
    query = select(dead.c.event, dead.c.at_ms, dead.c.reason, dead.c.is_queued)
    query = query.where(dead.c.webhook == webhook)
    if before is not None:
        query = query.where(dead.c.event < before)
    found = await connection.execute(query.order_by(dead.c.event.desc()).limit(limit))
    return [DeadLetter(*row) for row in found]


async def status(connection: AsyncConnection, webhook: EntityId) -> DeliveryStatus:
    """How a webhook fares now."""
    waiting = select(
        func.count(), func.min(retries.c.failing_since_ms), func.min(retries.c.next_attempt_ms)
    ).where(retries.c.webhook == webhook)
    count, since_ms, next_ms = (await connection.execute(waiting)).one()
    buried = select(func.count()).where(dead.c.webhook == webhook)
    letters = (await connection.execute(buried)).scalar_one()
    return DeliveryStatus(count, letters, since_ms, next_ms)
