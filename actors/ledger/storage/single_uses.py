"""Names that may be used once, and what for, until they expire: tokens of cards, by their digests,
and the answers of holders to their banks (part H, The vault).

Doors write them, and never a shard.
"""

from collections.abc import Mapping

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.store import StorageDown
from tollgate.actors.ledger.storage.tables import single_uses

# Clocks of machines differ: a row stays for longer than its name can be used anywhere.
KEPT_MS = 3_600_000


class _UsedElsewhereError(Exception):
    """One of the names has another use: nothing is written."""


class SqlSingleUses:
    """Uses by name. Raises StorageError when storage does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def use(self, names: Mapping[str, int], use: str) -> bool:
        """Gives names, all or none, this use; `names`: and when each expires, in ms. False: one of
        them has another use. Asking again for the same use is true."""
        insert = self._insert(single_uses).values(
            [
                {"name": name, "use": use, "until_ms": until_ms}
                for name, until_ms in sorted(names.items())
            ]
        )
        used = insert.on_conflict_do_update(
            index_elements=[single_uses.c.name],
            set_={"use": insert.excluded.use},
            where=single_uses.c.use == insert.excluded.use,
        ).returning(single_uses.c.name)
        try:
            async with self._database.writer.begin() as connection:
                if len((await connection.execute(used)).all()) != len(names):
                    raise _UsedElsewhereError
        except _UsedElsewhereError:
            return False
        except FAILURES as failure:
            raise StorageError(f"single uses are not written: {reason(failure)}") from failure
        return True

    async def find(self, name: str) -> str | None:
        """The use of a name; None: it has none yet."""
        query = select(single_uses.c.use).where(single_uses.c.name == name)
        try:
            async with self._database.reader.connect() as connection:
                found = (await connection.execute(query)).first()
        except FAILURES as failure:
            raise StorageError(f"single uses cannot be read: {reason(failure)}") from failure
        return None if found is None else str(found[0])


async def forget_single_uses(database: Database, now_ms: int) -> None:
    """Deletes the rows of names that cannot be used any more. Raises StorageDown."""
    old = delete(single_uses).where(single_uses.c.until_ms < now_ms - KEPT_MS)
    try:
        async with database.writer.begin() as connection:
            await connection.execute(old)
    except FAILURES as failure:
        raise StorageDown(f"single uses are not forgotten: {reason(failure)}") from failure
