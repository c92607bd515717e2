"""`JournalStore` on SQL: a shard's commits, fenced, each one transaction (F1, F2).

    BEGIN IMMEDIATE     (PostgreSQL: BEGIN)
    is the epoch still ours?        no row: Fenced. The row stays locked against a take-over
    entries, postings, entities, memberships, keys, heads, operations, checkpoints
    COMMIT              durable: synchronous=FULL, synchronous_commit

Whatever fails below us leaves the outcome unknown (F8). From then on, the store refuses all work:
the same write is never tried again, its process ends and the next one reads what is there.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from actors.ledger.journal import schema
from actors.ledger.journal.checkpoints import write_checkpoints
from actors.ledger.journal.engine import Database
from actors.ledger.journal.errors import FAILURES, BrokenCommit, is_about_content, is_seq_taken
from actors.ledger.journal.row_reading import ENTITY_COLUMNS, entity_row, head_row, operation_row
from actors.ledger.journal.statements import Tuple, Writes
from actors.ledger.rows import Commit, EntityRow, Entry, HeadRow, KeyRow, OperationRow
from actors.ledger.store import Fenced, OutcomeUnknown
from actors.ledger.values import BookId, EntityId


class SqlJournalStore:
    """One shard incarnation's writes. One call of `append` at a time; reads may run beside it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writes = Writes(database.writer.dialect)
        self._connection: AsyncConnection | None = None
        self._shard = ""
        self._epoch = 0
        self._end: Exception | None = None

    async def take_over(self, shard: str, incarnation: str) -> int:
        """Become the shard's owner; the new epoch, which later commits carry."""
        owners = schema.owners
        make = sqlite.insert if self._database.is_sqlite else postgresql.insert
        first = make(owners).values(shard=shard, epoch=1, incarnation=incarnation)
        statement = first.on_conflict_do_update(
            index_elements=[owners.c.shard],
            set_={"epoch": owners.c.epoch + 1, "incarnation": incarnation},
        ).returning(owners.c.epoch)
        self._connection = self._connection or await self._database.writer.connect()
        async with self._connection.begin():
            self._epoch = (await self._connection.execute(statement)).scalar_one()
        self._shard = shard
        return self._epoch

    async def append(self, commit: Commit) -> None:
        """Write everything or nothing, durably. Raises Fenced, OutcomeUnknown, BrokenCommit."""
        connection = self._writable()
        try:
            async with connection.begin():
                await self._check_epoch(connection)
                await self._write(connection, commit)
        except Fenced as fenced:
            self._end = fenced
            raise
        except FAILURES as error:
            if is_seq_taken(error):
                self._end = Fenced(f"{self._shard}: another incarnation wrote these entries")
                raise self._end from error
            if is_about_content(error):
                raise BrokenCommit(str(error)) from error
            self._end = OutcomeUnknown(f"{self._shard}: storage failed during a commit: {error}")
            raise self._end from error

    async def check_epoch(self) -> None:
        """For whoever answers from memory: raises Fenced when a newer incarnation may have
        committed (F1, strong reads). The methods below read the tables and need none."""
        async with self._database.reader.connect() as connection:
            await self._check_epoch(connection, locks=False)

    async def heads(self, books: Sequence[BookId]) -> dict[BookId, HeadRow]:
        """The heads of these books; those that do not exist are left out."""
        query = select(schema.heads).where(schema.heads.c.book.in_(books))
        async with self._database.reader.connect() as connection:
            rows = map(head_row, await connection.execute(query))
            return {row.book: row for row in rows}

    async def entities(self, ids: Sequence[EntityId]) -> dict[EntityId, EntityRow]:
        """Entities with their state; those that do not exist, and memberships, are left out."""
        query = select(*ENTITY_COLUMNS).where(schema.entities.c.id.in_(ids))
        async with self._database.reader.connect() as connection:
            rows = map(entity_row, await connection.execute(query))
            return {row.id: row for row in rows}

    async def operations(
        self, operations: Sequence[str], keys: Sequence[tuple[EntityId, BookId, str]]
    ) -> list[OperationRow]:
        """What became of these operations, and of these (app, book, idempotency key)."""
        table = schema.operations
        named = select(table).where(table.c.operation.in_(operations))
        keyed = select(table).where(
            table.c.key != "", tuple_(table.c.app, table.c.book, table.c.key).in_(keys)
        )
        found: dict[str, OperationRow] = {}
        async with self._database.reader.connect() as connection:
            for query, wanted in ((named, operations), (keyed, keys)):
                if wanted:
                    rows = map(operation_row, await connection.execute(query))
                    found.update((row.operation, row) for row in rows)
        return list(found.values())

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def _writable(self) -> AsyncConnection:
        if self._end is not None:
            raise self._end
        assert self._connection is not None, "a shard is taken over before it is written to"
        assert not self._connection.in_transaction(), "one commit at a time"
        return self._connection

    async def _check_epoch(self, connection: AsyncConnection, locks: bool = True) -> None:
        owners = schema.owners
        query = select(owners.c.epoch).where(owners.c.shard == self._shard)
        if locks:
            # Until the end of our transaction, nobody takes the shard over. (SQLite has one lock,
            # which we hold already.)
            query = query.with_for_update(read=True)
        epoch = (await connection.execute(query)).scalar_one_or_none()
        if epoch != self._epoch:
            raise Fenced(f"{self._shard}: epoch {self._epoch} is over, {epoch} has begun")

    async def _write(self, connection: AsyncConnection, commit: Commit) -> None:
        writes = self._writes
        # What is written twice in one commit is written once: as it is in the end.
        entities = {(row.kind, row.id, row.book): row for row in commit.entities}.values()
        keys = {row.digest: row for row in commit.keys}.values()
        heads = {row.book: row for row in commit.heads}
        members = [row for row in entities if row.kind == "membership"]
        others = [row for row in entities if row.kind != "membership"]
        await writes.entries.run(connection, [_entry(entry) for entry in commit.entries])
        await writes.postings.run(connection, _postings(commit.entries))
        await writes.gone_entities.run(connection, [(row.id,) for row in others if row.is_deleted])
        await writes.entities.run(connection, [_entity(e) for e in others if not e.is_deleted])
        await writes.gone_memberships.run(
            connection, [(row.id, row.book) for row in members if row.is_deleted]
        )
        await writes.memberships.run(connection, [_member(m) for m in members if not m.is_deleted])
        await writes.gone_keys.run(connection, [(key.digest,) for key in keys if key.is_deleted])
        await writes.keys.run(connection, [_key(key) for key in keys if not key.is_deleted])
        await writes.heads.run(connection, [_head(head) for head in heads.values()])
        await writes.operations.run(connection, [_operation(row) for row in commit.operations])
        await write_checkpoints(connection, writes, commit.entries, heads)


def _entry(entry: Entry) -> Tuple:
    return (
        entry.book,
        entry.seq,
        entry.at_ms,
        entry.kind,
        entry.event,
        entry.origin,
        entry.operation,
        entry.hash,
    )


def _postings(entries: Iterable[Entry]) -> list[Tuple]:
    return [
        (entry.book, entry.seq, leg, posting.account, posting.currency, posting.amount)
        for entry in entries
        for leg, posting in enumerate(entry.postings)
    ]


def _entity(row: EntityRow) -> Tuple:
    assert row.is_successful is None or row.is_test is not None, "one index serves both marks"
    return (
        row.id,
        row.kind,
        row.book,
        row.document,
        row.state,
        row.transaction,
        row.is_test,
        row.is_successful,
        row.public_key,
    )


def _member(row: EntityRow) -> Tuple:
    return row.id, row.book, row.document, row.state


def _key(key: KeyRow) -> Tuple:
    return key.digest, key.app, key.last4, key.created_ms


def _head(head: HeadRow) -> Tuple:
    return head.book, head.seq, head.hash, head.state


def _operation(row: OperationRow) -> Tuple:
    return (
        row.operation,
        row.book,
        row.app,
        row.key,
        row.fingerprint,
        row.status,
        row.body,
        row.at_ms,
    )
