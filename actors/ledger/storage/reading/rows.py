"""Rows of the tables as the values of `tollgate.actors.ledger.law.rows`."""

from collections.abc import Iterable
from typing import Any

from tollgate.actors.ledger.law.outcomes import DoneKind
from tollgate.actors.ledger.law.rows import EntityRow, Entry, HeadRow, OperationRow, Posting
from tollgate.actors.ledger.storage.tables import entities

# A row: its columns in the order of the query.
Columns = Iterable[Any]

ENTITY_COLUMNS = (
    entities.c.kind,
    entities.c.id,
    entities.c.book,
    entities.c.document,
    entities.c.state,
    entities.c.transaction_id,
    entities.c.is_test,
    entities.c.is_successful,
    entities.c.public_key,
)


def entity_row(row: Columns) -> EntityRow:
    """Of ENTITY_COLUMNS."""
    kind, id_, book, document, state, transaction, is_test, is_successful, public_key = row
    return EntityRow(
        kind,
        id_,
        book,
        document,
        state,
        transaction,
        _truth(is_test),
        _truth(is_successful),
        public_key=public_key,
    )


def _truth(value: int | bool | None) -> bool | None:
    """SQLite has numbers for truth."""
    return None if value is None else bool(value)


def head_row(row: Columns) -> HeadRow:
    return HeadRow(*row)


def operation_row(row: Columns) -> OperationRow:
    operation, book, app, key, fingerprint, done, body, at_ms = row
    return OperationRow(operation, book, app, key, fingerprint, DoneKind(done), body, at_ms)


def entry(row: Columns, legs: Iterable[Columns]) -> Entry:
    """`legs`: (account, currency, amount), in their order."""
    book, seq, at_ms, kind, event, origin, operation, hash_ = row
    postings = tuple(Posting(*leg) for leg in legs)
    return Entry(book, seq, at_ms, kind, event, origin, operation, hash_, postings)
