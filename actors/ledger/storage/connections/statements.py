"""Statements of SQLAlchemy's Core, compiled once for a dialect, ready for a driver."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Table,
    Text,
    any_,
    bindparam,
    case,
    delete,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

from tollgate.actors.ledger.storage.connections.connection import Connection, RowValues


@dataclass(frozen=True, slots=True)
class QueryStatement:
    """A statement that returns rows. `names`: of the values, in the order the driver wants them;
    `constants`: those that the statement itself brings."""

    text: str
    names: tuple[str, ...]
    constants: dict[str, Any]

    async def rows(self, connection: Connection, **values: object) -> list[Any]:
        return await connection.fetch(self.text, self.ordered(**values))

    def ordered(self, **values: object) -> list[object]:
        """The values in the order of the statement."""
        known = self.constants | values
        return [known[name] for name in self.names]

    async def first(self, connection: Connection, **values: object) -> Any:
        """The first row, or None."""
        rows = await self.rows(connection, **values)
        return rows[0] if rows else None


@dataclass(frozen=True, slots=True)
class BatchStatement:
    """A statement that is run once for each of many rows, in one call of the driver."""

    text: str

    async def run(self, connection: Connection, rows: list[RowValues]) -> None:
        if rows:
            await connection.run_all([(self.text, rows)])


def query(dialect: Dialect, statement: ClauseElement) -> QueryStatement:
    compiled = _compiled(dialect, statement)
    return QueryStatement(str(compiled), tuple(compiled.positiontup or ()), dict(compiled.params))


def insert(dialect: Dialect, table: Table) -> BatchStatement:
    """Rows are tuples of the table's columns."""
    return _batch(dialect, _insert(dialect, table))


def upsert(dialect: Dialect, table: Table, *changed: str, owner: str = "") -> BatchStatement:
    """As `insert`; where the primary key is there already, these columns become the new row's.
    `owner`: a column without nulls in which the row that is there must agree, or the statement
    fails as one that breaks a rule of the table."""
    statement = _insert(dialect, table)
    new = statement.excluded
    values: dict[str, ColumnElement[Any]] = {name: new[name] for name in changed}
    if owner:
        values[owner] = case((table.c[owner] == new[owner], new[owner]))
    return _batch(
        dialect,
        statement.on_conflict_do_update(
            index_elements=list(table.primary_key.columns), set_=values
        ),
    )


def removal(dialect: Dialect, table: Table) -> BatchStatement:
    """Rows are tuples of the table's primary key."""
    return _batch(
        dialect, delete(table).where(*(c == bindparam(c.name) for c in table.primary_key))
    )


def among(dialect: Dialect, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """The condition that a column is one of many values, which travel as one: see `listed`."""
    if dialect.name == "postgresql":
        return column == any_(bindparam(name, type_=postgresql.ARRAY(Text())))
    return column.in_(select(func.json_each(bindparam(name)).table_valued("value").c.value))


def listed(dialect: Dialect, values: Collection[str]) -> object:
    """The value of an `among`."""
    return list(values) if dialect.name == "postgresql" else json.dumps(list(values))


def _insert(dialect: Dialect, table: Table) -> sqlite.Insert | postgresql.Insert:
    values: dict[str, BindParameter[object]] = {c.name: bindparam(c.name) for c in table.columns}
    make = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
    return make(table).values(values)


def _batch(dialect: Dialect, statement: ClauseElement) -> BatchStatement:
    return BatchStatement(str(_compiled(dialect, statement)))


def _compiled(dialect: Dialect, statement: ClauseElement) -> Any:
    return statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
