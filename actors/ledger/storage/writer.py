"""`JournalStore` on SQL: a shard's commits, fenced, each one transaction (F1, F2).

    BEGIN IMMEDIATE     (PostgreSQL: BEGIN)
    is the epoch still ours?        no: Fenced. The row stays locked against a take-over
    entries, postings, entities, memberships, keys, heads, operations, checkpoints
    COMMIT              durable: synchronous=FULL, synchronous_commit

Whatever fails below us leaves the outcome unknown (F8). From then on, and once it was fenced, the
store refuses all writing: the same write is never tried again, its process ends, and the next one
reads what is there.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from tollgate.actors.ledger.law.rows import Commit, EntityRow, HeadRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.checkpoints import CheckpointWriter
from tollgate.actors.ledger.storage.commit_statements import CommitWriter
from tollgate.actors.ledger.storage.connections.connection import Connection, transaction
from tollgate.actors.ledger.storage.connections.drivers import Taken
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.errors import (
    FAILURES,
    UNWRITABLE,
    is_about_content,
    is_seq_taken,
    reason,
)
from tollgate.actors.ledger.storage.reading.shard_state import StateReader
from tollgate.actors.ledger.storage.store import BrokenCommit, Fenced, OutcomeUnknown, StorageDown
from tollgate.actors.ledger.storage.tables import owners


class SqlJournalStore:
    """One shard incarnation's store. One `append` at a time; reads may run beside it."""

    def __init__(self, database: Database) -> None:
        dialect = database.dialect
        self._database = database
        self._writer = CommitWriter(dialect)
        self._checkpoints = CheckpointWriter(dialect)
        self._state = StateReader(dialect)
        epoch = select(owners.c.epoch).where(owners.c.shard == bindparam("shard"))
        self._epoch_now = query(dialect, epoch)
        # Until the end of our transaction, nobody else takes the shard over. (On SQLite, writing
        # itself is locked.)
        self._epoch_held = query(dialect, epoch.with_for_update(read=True))
        self._taken: Taken | None = None
        self._is_writing = False
        self._shard = ""
        self._epoch = 0
        self._end: Fenced | OutcomeUnknown | None = None

    async def take_over(self, shard: str, incarnation: str) -> int:
        """Become the shard's owner; the new epoch, which later commits carry.

        Raises StorageDown.
        """
        if self._taken is None:
            self._taken = await self._database.writing(may_stand_still=False)
        make = sqlite.insert if self._database.is_sqlite else postgresql.insert
        first = make(owners).values(shard=shard, epoch=1, incarnation=incarnation)
        succession = first.on_conflict_do_update(
            index_elements=[owners.c.shard],
            set_={"epoch": owners.c.epoch + 1, "incarnation": first.excluded.incarnation},
        ).returning(owners.c.epoch)
        connection = self._taken.connection
        try:
            async with transaction(connection, self._database.begin_writing):
                row = await query(self._database.dialect, succession).first(connection)
        except FAILURES as failure:
            raise StorageDown(f"{shard} was not taken over: {reason(failure)}") from failure
        self._shard, self._epoch = shard, int(row[0])
        return self._epoch

    async def append(self, commit: Commit) -> None:
        """Write everything or nothing, durably. Raises Fenced, OutcomeUnknown, BrokenCommit."""
        if self._end is not None:
            raise self._end
        assert self._taken is not None, "a shard is taken over before it is written to"
        assert not self._is_writing, "one commit at a time"
        self._is_writing = True
        try:
            await self._append(self._taken.connection, commit)
        except FAILURES as error:
            if is_about_content(error) and not is_seq_taken(error):
                raise BrokenCommit(reason(error)) from error
            self._end = self._meaning(error)
            raise self._end from error
        except UNWRITABLE as error:
            raise BrokenCommit(reason(error)) from error
        except Fenced as fenced:
            self._end = fenced
            raise
        finally:
            self._is_writing = False

    async def check_epoch(self) -> None:
        """For whoever answers from memory: raises Fenced when a newer incarnation may have
        committed (C6)."""
        async with self._database.reading() as connection:
            row = await self._epoch_now.first(connection, shard=self._shard)
        self._compare(row)

    async def heads(self, books: Sequence[BookId]) -> dict[BookId, HeadRow]:
        """The heads of these books; those that do not exist are left out."""
        async with self._database.reading() as connection:
            return await self._state.heads(connection, books)

    async def entities(self, ids: Sequence[EntityId]) -> dict[EntityId, EntityRow]:
        """Entities with their state; those that do not exist, and memberships, are left out."""
        async with self._database.reading() as connection:
            return await self._state.entities(connection, ids)

    async def operations(
        self, operations: Sequence[str], keys: Sequence[tuple[EntityId, BookId, str]]
    ) -> list[OperationRow]:
        """What became of these operations, and of these (app, book, idempotency key)."""
        async with self._database.reading() as connection:
            return await self._state.operations(connection, operations, keys)

    async def close(self) -> None:
        """Gives its connection back; the database is its owner's to close."""
        if self._taken is not None:
            await self._taken.give_back(is_sound=self._end is None)
            self._taken = None

    async def _append(self, connection: Connection, commit: Commit) -> None:
        async with transaction(connection, self._database.begin_writing):
            self._compare(await self._epoch_held.first(connection, shard=self._shard))
            await self._writer.write(connection, commit)
            await self._checkpoints.write(connection, commit)

    def _compare(self, row: tuple[int] | None) -> None:
        if row != (self._epoch,):
            found = row[0] if row else "none"
            raise Fenced(
                f"shard {self._shard} is in epoch {found}, and this is its incarnation of epoch "
                f"{self._epoch}"
            )

    def _meaning(self, error: Exception) -> Fenced | OutcomeUnknown:
        if is_seq_taken(error):
            return Fenced(f"shard {self._shard}: another incarnation has written these entries")
        return OutcomeUnknown(f"shard {self._shard}: storage failed: {reason(error)}")
