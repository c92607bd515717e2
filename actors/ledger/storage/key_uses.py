"""Records of keys beside the journal: when each was used last, and the mark of the secret file
behind all of them. Doors write them, and never a shard."""

from collections.abc import Iterable, Mapping

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.errors import FAILURES, StorageError, reason
from tollgate.actors.ledger.storage.tables import heads, installation, key_uses


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


class SqlInstallation:
    """Marks by name; the first that is set stays. Raises StorageError when storage is away."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def mark(self, name: str) -> str | None:
        """None: none was set."""
        query = select(installation.c.mark).where(installation.c.name == name)
        try:
            async with self._database.reader.connect() as connection:
                found = (await connection.execute(query)).first()
        except FAILURES as failure:
            raise StorageError(f"the marks cannot be read: {reason(failure)}") from failure
        return None if found is None else str(found[0])

    async def set_mark(self, name: str, mark: str) -> str:
        """The mark that holds now: this one, or one that another process has set before."""
        values = self._insert(installation).values(name=name, mark=mark)
        try:
            async with self._database.writer.begin() as connection:
                await connection.execute(values.on_conflict_do_nothing())
        except FAILURES as failure:
            raise StorageError(f"the mark is not set: {reason(failure)}") from failure
        found = await self.mark(name)
        assert found is not None, "it was there, or has been set"
        return found

    async def has_books(self) -> bool:
        """True once anything was written."""
        try:
            async with self._database.reader.connect() as connection:
                return (await connection.execute(select(heads.c.book).limit(1))).first() is not None
        except FAILURES as failure:
            raise StorageError(f"the books cannot be read: {reason(failure)}") from failure
