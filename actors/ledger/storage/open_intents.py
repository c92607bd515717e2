"""Open intents as whoever enquires about them finds them (part I): in the tables of the journal.

To claim one is to write down when it is due again. So a claim needs no release: whoever dies over
an enquiry is followed by another one at the next date, and of several processes one gets each date.
"""

from dataclasses import dataclass

from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from tollgate.actors.ledger.book.entities import Intent, entity_of_row
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.reading.rows import ENTITY_COLUMNS, entity_row
from tollgate.actors.ledger.storage.tables import OPEN_INTENTS, enquiries, entities

FIRST_PAUSE_MS = 2_000
PAUSE_MAX_MS = 15 * 60_000
_DOUBLINGS_MAX = 16


@dataclass(frozen=True, slots=True)
class ClaimedIntent:
    """`attempts`: how often it has been enquired about, this time included."""

    intent: Intent
    attempts: int


def pause_ms(attempts: int) -> int:
    """From an enquiry to the next one, when so many have brought nothing."""
    return min(FIRST_PAUSE_MS << min(attempts, _DOUBLINGS_MAX), PAUSE_MAX_MS)


class SqlOpenIntents:
    """Raises StorageError when the storage does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def claim(self, now_ms: int, count_max: int) -> list[ClaimedIntent]:
        """Of those that are due, the ones that are this caller's to enquire about now."""
        due_ms = func.coalesce(enquiries.c.due_ms, 0)
        due = (
            select(*ENTITY_COLUMNS, func.coalesce(enquiries.c.attempts, 0))
            .outerjoin_from(entities, enquiries, entities.c.id == enquiries.c.intent)
            .where(OPEN_INTENTS, due_ms <= now_ms)
            .order_by(due_ms, entities.c.id)
            .limit(count_max)
        )
        try:
            async with self._database.reader.connect() as connection:
                found = (await connection.execute(due)).all()
            claimed = []
            for *row, attempts in found:
                intent = entity_of_row(entity_row(row))
                assert isinstance(intent, Intent), "its row keeps an intent"
                if await self._is_ours(intent, attempts, now_ms):
                    claimed.append(ClaimedIntent(intent, attempts + 1))
        except FAILURES as failure:
            raise StorageError(f"open intents cannot be claimed: {reason(failure)}") from failure
        return claimed

    async def _is_ours(self, intent: Intent, attempts: int, now_ms: int) -> bool:
        next_ms = now_ms + pause_ms(attempts)
        row = {"intent": intent.id, "attempts": attempts + 1, "due_ms": next_ms}
        insert = self._insert(enquiries).values(row)
        claim = insert.on_conflict_do_update(
            index_elements=[enquiries.c.intent],
            set_={"attempts": attempts + 1, "due_ms": next_ms},
            where=enquiries.c.due_ms <= now_ms,
        ).returning(enquiries.c.intent)
        async with self._database.writer.begin() as connection:
            return (await connection.execute(claim)).first() is not None

    async def forget_settled(self) -> None:
        """Drops what was written about intents that are not open any more."""
        is_open = select(entities.c.id).where(OPEN_INTENTS)
        try:
            async with self._database.writer.begin() as connection:
                await connection.execute(delete(enquiries).where(~enquiries.c.intent.in_(is_open)))
        except FAILURES as failure:
            raise StorageError(f"enquiries are not forgotten: {reason(failure)}") from failure

    async def oldest_ms(self) -> int | None:
        """Since when the oldest one of all books is open; None: none is. An id begins with its
        second."""
        _, oldest = await self._counted()
        return None if oldest is None else int(oldest[:8], 16) * 1000

    async def count(self) -> int:
        """How many of all books are open."""
        count, _ = await self._counted()
        return count

    async def _counted(self) -> tuple[int, str | None]:
        query = select(func.count(), func.min(entities.c.id)).where(OPEN_INTENTS)
        try:
            async with self._database.reader.connect() as connection:
                count, oldest = (await connection.execute(query)).one()
        except FAILURES as failure:
            raise StorageError(f"open intents cannot be looked at: {reason(failure)}") from failure
        return count, oldest
