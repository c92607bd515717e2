"""Statements that write, compiled once per dialect: a commit of hundreds of rows must not pay for
building them again. Rows are tuples in the order of their table's columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BindParameter, Delete, Insert, Table, bindparam, delete
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection

from actors.ledger.journal import schema

Tuple = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """One statement, run for many rows in one call of the driver."""

    text: str

    async def run(self, connection: AsyncConnection, rows: Sequence[Tuple]) -> None:
        if rows:
            await connection.exec_driver_sql(self.text, list(rows))


class Writes:
    """Every statement of a commit, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        def batch(statement: Insert | Delete) -> Batch:
            return Batch(str(statement.compile(dialect=dialect)))

        def insert(table: Table, *changed: str) -> Batch:
            return batch(_insert(dialect, table, changed))

        self.entries = insert(schema.entries)
        self.postings = insert(schema.postings)
        self.operations = insert(schema.operations)
        self.checkpoints = insert(schema.checkpoints)
        self.heads = insert(schema.heads, "seq", "hash", "state")
        self.keys = insert(schema.keys, "app", "last4", "created_ms")
        self.memberships = insert(schema.memberships, "document", "state")
        self.entities = insert(
            schema.entities,
            *("document", "state", "transaction_id", "is_test", "is_successful", "public_key"),
        )
        self.gone_entities = batch(_delete(schema.entities, "id"))
        self.gone_memberships = batch(_delete(schema.memberships, "app", "book"))
        self.gone_keys = batch(_delete(schema.keys, "digest"))


def _insert(dialect: Dialect, table: Table, changed: tuple[str, ...]) -> Insert:
    """Adds rows; where the primary key is there already, `changed` columns become the row's."""
    values: dict[str, BindParameter[object]] = {
        column.name: bindparam(column.name) for column in table.columns
    }
    make = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
    statement = make(table).values(values)
    if not changed:
        return statement
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns),
        set_={name: statement.excluded[name] for name in changed},
    )


def _delete(table: Table, *names: str) -> Delete:
    return delete(table).where(*(table.c[name] == bindparam(name) for name in names))
