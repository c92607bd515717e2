"""Forgetting what became of operations, once nobody may ask any more (F5)."""

from sqlalchemy import bindparam, delete, select

from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.errors import FAILURES, reason
from tollgate.actors.ledger.storage.store import StorageDown
from tollgate.actors.ledger.storage.tables import operations

# A day more than the 31 that are promised.
KEPT_MS = 32 * 86_400_000
# So few that a commit never waits for long.
OPERATIONS_PER_BATCH = 500


async def forget_operations(database: Database, now_ms: int) -> int:
    """Deletes those that are old enough, the oldest first, in batches; how many they were.

    Commits may come in between. Raises StorageDown.
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
        while gone := await forget.rows(writing, until_ms=now_ms - KEPT_MS):
            forgotten += len(gone)
    except FAILURES as failure:
        raise StorageDown(f"operations are not forgotten: {reason(failure)}") from failure
    finally:
        await writing.close()
    return forgotten
