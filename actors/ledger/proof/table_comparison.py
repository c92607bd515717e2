"""Two sets of tables, row by row in the order of their keys: what is missing, added, different."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, bindparam, select, tuple_
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.statements import query

ROWS_PER_PIECE = 1_000

TableRow = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables to read, and their dialect."""

    dialect: Dialect
    connection: Connection

    async def rows(self, table: Table) -> AsyncIterator[TableRow]:
        """Every row, in the order of the primary key."""
        key = list(table.primary_key.columns)
        after = tuple_(*(bindparam(column.name, type_=column.type) for column in key))
        ordered = select(table).order_by(*key).limit(ROWS_PER_PIECE)
        first = query(self.dialect, ordered)
        following = query(self.dialect, ordered.where(tuple_(*key) > after))
        places = _places(table)
        piece = await first.rows(self.connection)
        while piece:
            for row in piece:
                yield tuple(row)
            last = {c.name: piece[-1][place] for c, place in zip(key, places, strict=True)}
            piece = await following.rows(self.connection, **last)


@dataclass(frozen=True, slots=True)
class Difference:
    """`columns` of a row that differ; none when it is missing on one side. Either may be None."""

    found: TableRow | None
    expected: TableRow | None
    columns: tuple[str, ...]


async def differences(table: Table, found: Tables, expected: Tables) -> AsyncIterator[Difference]:
    """The differences of what is found from what was expected."""
    places = _places(table)
    one, other = found.rows(table), expected.rows(table)
    have, want = await anext(one, None), await anext(other, None)
    while have is not None or want is not None:
        if want is None or (have is not None and _key(have, places) < _key(want, places)):
            yield Difference(have, None, ())
            have = await anext(one, None)
        elif have is None or _key(want, places) < _key(have, places):
            yield Difference(None, want, ())
            want = await anext(other, None)
        else:
            if columns := tuple(_unequal(table, have, want)):
                yield Difference(have, want, columns)
            have, want = await anext(one, None), await anext(other, None)


def _unequal(table: Table, have: TableRow, want: TableRow) -> Iterator[str]:
    for column, one, other in zip(table.columns, have, want, strict=True):
        # (truth is a number in SQLite, and equal to it)
        if one != other:
            yield column.name


def _places(table: Table) -> tuple[int, ...]:
    """Of the primary key's columns in a row."""
    names = [column.name for column in table.columns]
    return tuple(names.index(column.name) for column in table.primary_key.columns)


def _key(row: TableRow, places: tuple[int, ...]) -> TableRow:
    return tuple(row[place] for place in places)
