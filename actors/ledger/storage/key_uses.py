"""When keys were used last, on SQL: noted by doors beside the journal, and never by a shard."""

from collections.abc import Iterable, Mapping

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.tables import key_uses


class SqlKeyUses:
    """Times of use by the key's digest. Raises StorageError when the storage does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def note(self, uses: Mapping[str, int]) -> None:
        """Of two times of a key the later one stays."""
        insert = self._insert(key_uses)
        later = insert.on_conflict_do_update(
            index_elements=[key_uses.c.digest],
            set_={"used_ms": insert.excluded.used_ms},
            where=key_uses.c.used_ms < insert.excluded.used_ms,
        )
        rows = [{"digest": digest, "used_ms": used_ms} for digest, used_ms in uses.items()]
        try:
            async with self._database.writer.begin() as connection:
                await connection.execute(later, rows)
        except FAILURES as failure:
            raise StorageError(f"the use of keys is not noted: {reason(failure)}") from failure

    async def last_used(self, digests: Iterable[str]) -> dict[str, int]:
        """In milliseconds; keys that were never used are left out."""
        query = select(key_uses.c.digest, key_uses.c.used_ms)
        query = query.where(key_uses.c.digest.in_(list(digests)))
        try:
            async with self._database.reader.connect() as connection:
                found = await connection.execute(query)
                return {row.digest: row.used_ms for row in found}
        except FAILURES as failure:
            raise StorageError(f"the use of keys cannot be read: {reason(failure)}") from failure
