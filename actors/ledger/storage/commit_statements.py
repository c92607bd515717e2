"""A commit as statements: what is written, in which order, as which rows.

Inside one transaction the order is of no matter to readers; entries come first, because that is
where a second writer of a book shows.
"""

from collections.abc import Iterable

from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.law.rows import (
    MEMBERSHIP,
    Commit,
    EntityRow,
    Entry,
    HeadRow,
    KeyRow,
    OperationRow,
)
from tollgate.actors.ledger.storage import tables as schema
from tollgate.actors.ledger.storage.connections.connection import (
    Connection,
    RowValues,
    StatementRows,
)
from tollgate.actors.ledger.storage.connections.statements import (
    BatchStatement,
    insert,
    removal,
    upsert,
)


class CommitWriter:
    """The statements of every commit, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._entries = insert(dialect, schema.entries)
        self._postings = insert(dialect, schema.postings)
        self._operations = insert(dialect, schema.operations)
        self._heads = upsert(dialect, schema.heads, "seq", "hash", "state")
        self._keys = upsert(dialect, schema.keys, "app", "last4", "created_ms")
        self._memberships = upsert(dialect, schema.memberships, "document", "state")
        self._entities = upsert(
            dialect,
            schema.entities,
            *("document", "state", "transaction_id", "is_test", "is_successful", "public_key"),
            # An id is one entity's: two books that draw the same one do not share a row.
            owner="book",
        )
        self._gone_keys = removal(dialect, schema.keys)
        self._gone_memberships = removal(dialect, schema.memberships)
        self._gone_entities = removal(dialect, schema.entities)

    async def write(self, connection: Connection, commit: Commit) -> None:
        await connection.run_all(self.steps(commit))

    def steps(self, commit: Commit) -> list[StatementRows]:
        """The statements with their rows, in order."""
        return [(batch.text, rows) for batch, rows in self._batches(commit) if rows]

    def _batches(self, commit: Commit) -> Iterable[tuple[BatchStatement, list[RowValues]]]:
        # What is written twice in one commit is written once: as it is in the end.
        entities = {(row.kind, row.id, row.book): row for row in commit.entities}.values()
        keys = {row.digest: row for row in commit.keys}.values()
        heads = {row.book: row for row in commit.heads}.values()
        members = [row for row in entities if row.kind == MEMBERSHIP]
        others = [row for row in entities if row.kind != MEMBERSHIP]
        yield self._entries, [_entry(entry) for entry in commit.entries]
        yield self._postings, _postings(commit.entries)
        yield self._gone_entities, [(row.id,) for row in others if row.is_deleted]
        yield self._entities, [_entity(row) for row in others if not row.is_deleted]
        yield self._gone_memberships, [(row.id, row.book) for row in members if row.is_deleted]
        yield self._memberships, [_member(row) for row in members if not row.is_deleted]
        yield self._gone_keys, [(row.digest,) for row in keys if row.is_deleted]
        yield self._keys, [_key(row) for row in keys if not row.is_deleted]
        yield self._heads, [_head(row) for row in heads]
        yield self._operations, [_operation(row) for row in commit.operations]


# Each in the order of its table's columns.


def _entry(entry: Entry) -> RowValues:
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


def _postings(entries: Iterable[Entry]) -> list[RowValues]:
    return [
        (entry.book, entry.seq, leg, posting.account, posting.currency, posting.amount)
        for entry in entries
        for leg, posting in enumerate(entry.postings)
    ]


def _entity(row: EntityRow) -> RowValues:
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


def _member(row: EntityRow) -> RowValues:
    return row.id, row.book, row.document, row.state


def _key(row: KeyRow) -> RowValues:
    return row.digest, row.app, row.last4, row.created_ms


def _head(row: HeadRow) -> RowValues:
    return row.book, row.seq, row.hash, row.state


def _operation(row: OperationRow) -> RowValues:
    return (
        row.operation,
        row.book,
        row.app,
        row.key,
        row.fingerprint,
        int(row.done),
        row.body,
        row.at_ms,
    )
