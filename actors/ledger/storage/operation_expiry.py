"""Forgetting what became of operations, once nobody may ask any more (F5).

An idempotency key that is forgotten too early lets a payment be done twice, so the clock is not
believed alone: what is old is old by the journal's newest entry as well, and one run forgets no
more than a day of the oldest. Where nothing is written any more, nothing more is forgotten.
"""

from sqlalchemy import and_, bindparam, delete, func, select
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.errors import FAILURES, reason
from tollgate.actors.ledger.storage.store import StorageDown
from tollgate.actors.ledger.storage.tables import entries, heads, operations

DAY_MS = 86_400_000
PROMISED_MS = 31 * DAY_MS
# A day more: what one run with a wrong clock may forget is not promised any more.
KEPT_MS = PROMISED_MS + DAY_MS
FORGOTTEN_PER_RUN_MS = DAY_MS
# So few that a commit never waits for long.
OPERATIONS_PER_BATCH = 500


async def forget_operations(database: Database, now_ms: int) -> int:
    """Deletes those that are old enough, the oldest first, in batches; how many they were.

    Old enough are those of more than `KEPT_MS` before both the clock and the newest entry, and of
    these the oldest day. Commits may come in between. Raises StorageDown.
    """
    old = (
        select(operations.c.operation)
        .where(operations.c.at_ms < bindparam("until_ms"))
        .order_by(operations.c.at_ms)
        .limit(OPERATIONS_PER_BATCH)
    )
    forget = query(
        database.dialect,
        delete(operations).where(operations.c.operation.in_(old)).returning(operations.c.operation),
    )
    writing = await database.writing()
    forgotten = 0
    try:
        until_ms = await _until_ms(database.dialect, writing, now_ms)
        while gone := await forget.rows(writing, until_ms=until_ms):
            forgotten += len(gone)
    except FAILURES as failure:
        raise StorageDown(f"operations are not forgotten: {reason(failure)}") from failure
    finally:
        await writing.close()
    return forgotten


async def newest_entry_ms(dialect: Dialect, connection: Connection) -> int | None:
    """The time of the newest entry of all books, in ms; None when there is none."""
    is_last = and_(entries.c.book == heads.c.book, entries.c.seq == heads.c.seq)
    newest = select(func.max(entries.c.at_ms)).select_from(heads.join(entries, is_last))
    (at_ms,) = await query(dialect, newest).first(connection)
    return None if at_ms is None else int(at_ms)


async def _until_ms(dialect: Dialect, connection: Connection, now_ms: int) -> int:
    """The time before which operations are forgotten, in ms; 0 when none are."""
    (oldest_ms,) = await query(dialect, select(func.min(operations.c.at_ms))).first(connection)
    if oldest_ms is None or oldest_ms >= now_ms - KEPT_MS:
        return 0
    newest_ms = await newest_entry_ms(dialect, connection)
    if newest_ms is None:
        return 0
    return min(min(now_ms, newest_ms) - KEPT_MS, int(oldest_ms) + FORGOTTEN_PER_RUN_MS)
