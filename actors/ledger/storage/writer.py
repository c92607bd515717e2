"""`JournalStore` on SQL: a shard's commits, fenced, each one transaction (F1, F2).

    BEGIN IMMEDIATE     (PostgreSQL: BEGIN)
    is the epoch still ours?        no: Fenced (epoch_fence.py)
    entries, postings, entities, memberships, keys, heads, operations, checkpoints
    COMMIT              durable: synchronous=FULL, synchronous_commit

Whatever fails below us leaves the outcome unknown (F8). From then on, and once it was fenced, the
store refuses all writing: the same write is never tried again, its process ends, and the next one
reads what is there.
"""

from collections.abc import Sequence

from tollgate.actors.ledger.law.rows import Commit, EntityRow, HeadRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.storage.checkpoints import CheckpointWriter
from tollgate.actors.ledger.storage.commit_statements import CommitWriter
from tollgate.actors.ledger.storage.connections.connection import (
    Connection,
    transaction,
    until_the_end,
)
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.epoch_fence import EpochFence
from tollgate.actors.ledger.storage.errors import (
    FAILURES,
    UNWRITABLE,
    is_about_content,
    is_seq_taken,
    reason,
)
from tollgate.actors.ledger.storage.reading.shard_state import StateReader
from tollgate.actors.ledger.storage.store import BrokenCommit, Fenced, OutcomeUnknown, StorageDown


class SqlJournalStore:
    """One shard incarnation's store. One `append` at a time; reads may run beside it."""

    def __init__(self, database: Database) -> None:
        dialect = database.dialect
        self._database = database
        self._writer = CommitWriter(dialect)
        self._checkpoints = CheckpointWriter(dialect)
        self._state = StateReader(dialect)
        self._fence = EpochFence(database)
        self._connection: Connection | None = None
        self._is_writing = False
        self._end: Fenced | OutcomeUnknown | None = None

    @property
    def anchored_until_ms(self) -> int:
        return self._fence.anchored_until_ms

    async def take_over(self, shard: str, incarnation: str) -> int:
        """Become the shard's owner; the new epoch, which later commits carry.

        Raises StorageDown; then it may be tried again, on a connection of its own.
        """
        if self._connection is None:
            self._connection = await self._database.writing(may_stand_still=False)
        connection = self._connection
        try:
            async with transaction(connection, self._database.begin_writing):
                epoch = await self._fence.take_over(connection, shard, incarnation)
        except FAILURES as failure:
            await self.close()
            raise StorageDown(f"{shard} was not taken over: {reason(failure)}") from failure
        self._fence.own(shard, epoch)
        return epoch

    async def append(self, commit: Commit) -> None:
        """Write everything or nothing, durably. Raises Fenced, OutcomeUnknown, BrokenCommit."""
        if self._end is not None:
            raise self._end
        assert self._connection is not None, "a shard is taken over before it is written to"
        assert not self._is_writing, "one commit at a time"
        self._is_writing = True
        try:
            await self._append(self._connection, commit)
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
            await self._fence.check(connection)

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
        """The outcomes of these operations, and of these (app, book, idempotency key)."""
        async with self._database.reading() as connection:
            return await self._state.operations(connection, operations, keys)

    async def close(self) -> None:
        """Closes its connection; the database is its owner's to close."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _append(self, connection: Connection, commit: Commit) -> None:
        begin, steps = self._database.begin_writing, self._writer.steps(commit)
        guard = self._fence.hold(commit.entries)
        async with until_the_end(connection):
            await connection.begin(begin, guard, steps)
            await self._checkpoints.write(connection, commit)

    def _meaning(self, error: Exception) -> Fenced | OutcomeUnknown:
        if is_seq_taken(error):
            return Fenced(
                f"shard {self._fence.shard}: another incarnation has written these entries"
            )
        return OutcomeUnknown(f"shard {self._fence.shard}: storage failed: {reason(error)}")
