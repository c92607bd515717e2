"""Reads for decisions of a shard: heads, entities and operations, many of each in one query."""

import json
from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Select, Text, bindparam, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.law.rows import EntityRow, HeadRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId, IdempotencyKey
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.statements import among, listed, query
from tollgate.actors.ledger.storage.reading.rows import (
    ENTITY_COLUMNS,
    entity_row,
    head_row,
    operation_row,
)
from tollgate.actors.ledger.storage.tables import entities, heads, operations


class StateReader:
    """The queries, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._heads = query(dialect, select(heads).where(among(dialect, heads.c.book, "books")))
        self._entities = query(
            dialect, select(*ENTITY_COLUMNS).where(among(dialect, entities.c.id, "ids"))
        )
        self._operations = query(
            dialect, select(operations).where(among(dialect, operations.c.operation, "wanted"))
        )
        self._keyed = query(dialect, _keyed_operations(dialect))

    async def heads(
        self, connection: Connection, books: Collection[BookId]
    ) -> dict[BookId, HeadRow]:
        rows = await self._heads.rows(connection, books=listed(self._dialect, books))
        return {row.book: row for row in map(head_row, rows)}

    async def entities(
        self, connection: Connection, ids: Collection[EntityId]
    ) -> dict[EntityId, EntityRow]:
        rows = await self._entities.rows(connection, ids=listed(self._dialect, ids))
        return {row.id: row for row in map(entity_row, rows)}

    async def operations(
        self, connection: Connection, wanted: Collection[str], keys: Sequence[IdempotencyKey]
    ) -> list[OperationRow]:
        rows = []
        if wanted:
            text = listed(self._dialect, wanted)
            rows += await self._operations.rows(connection, wanted=text)
        if keys:
            rows += await self._keyed.rows(connection, **self._listed_keys(keys))
        found = {row.operation: row for row in map(operation_row, rows)}
        return list(found.values())

    def _listed_keys(self, keys: Sequence[IdempotencyKey]) -> dict[str, object]:
        if self._dialect.name == "postgresql":
            return dict(
                zip(("apps", "books", "keys"), map(list, zip(*keys, strict=True)), strict=True)
            )
        return {"keys": json.dumps(keys)}


def _keyed_operations(dialect: Dialect) -> Select[*tuple[object, ...]]:
    """Joined with the (app, book, key) that are asked for; walks the index of these three, which
    leaves out what has no key."""
    app, book, key = _wanted_keys(dialect)
    return select(operations).where(
        operations.c.app == app,
        operations.c.book == book,
        operations.c.key == key,
        operations.c.key != literal_column("''"),
    )


def _wanted_keys(dialect: Dialect) -> tuple[ColumnElement[str], ...]:
    if dialect.name == "postgresql":
        texts = ARRAY(Text())
        lists = [bindparam(name, type_=texts) for name in ("apps", "books", "keys")]
        wanted = func.unnest(*lists).table_valued("app", "book", "key", name="wanted")
        wanted = wanted.render_derived()
        return wanted.c.app, wanted.c.book, wanted.c.key
    wanted = func.json_each(bindparam("keys")).table_valued("value", name="wanted")
    return tuple(func.json_extract(wanted.c.value, f"$[{place}]") for place in range(3))
