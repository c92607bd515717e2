"""Queries of lists (part A, Lists; L1 to L4): each walks one index in the order of ids.

A filter by marks leaves out a column in the middle of its index when only one mark is asked for;
the values that the column may have are then walked one by one, each in order, and merged.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, select, union_all
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.storage.connections.statements import QueryStatement, query
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.actors.ledger.storage.tables import (
    LIST_INDEX,
    MARK_INDEX,
    TRANSACTION_INDEX,
    entities,
    entries,
    memberships,
)

# More shapes than there are.
SHAPES_MAX = 512
MAY_NOT_CHARGE = '"canChargeCard":false'
REJECTED = '"rejected":true'


@dataclass(frozen=True, slots=True)
class Shape:
    """The form of a list's query, whatever the values in it."""

    has_before: bool
    has_after: bool
    is_ascending: bool
    has_transaction: bool
    is_test: bool | None
    is_successful: bool | None

    @staticmethod
    def of(page: PageBounds, wanted: ListFilter) -> "Shape":
        return Shape(
            has_before=page.before is not None,
            has_after=page.after is not None,
            is_ascending=page.is_ascending,
            has_transaction=wanted.transaction is not None,
            is_test=wanted.is_test,
            is_successful=wanted.is_successful,
        )


@lru_cache(SHAPES_MAX)
def entities_of(dialect: Dialect, shape: Shape) -> QueryStatement:
    """Documents of a book's entities of a kind. Values: book, kind, transaction, before, after,
    limit."""
    mine = (
        entities.c.book == bindparam("book"),
        entities.c.kind == bindparam("kind"),
    )
    if shape.has_transaction:
        related = entities.c.transaction_id == bindparam("transaction")
        walk = _along(TRANSACTION_INDEX.name, shape, *mine, related, *_marks(shape))
        return query(dialect, _without_id(walk))
    if shape.is_test is None and shape.is_successful is None:
        return query(dialect, _without_id(_along(LIST_INDEX.name, shape, *mine)))
    # (PostgreSQL does not see that `NOT is_test` says so, and would leave the partial index alone)
    is_marked = entities.c.is_test.is_not(None)
    walks = [
        _along(MARK_INDEX.name, shape, *mine, is_marked, *marks) for marks in _stretches(shape)
    ]
    if len(walks) == 1:
        return query(dialect, _without_id(walks[0]))
    merged = union_all(*(select(walk.subquery()) for walk in walks)).subquery()
    ordered = select(merged.c.document).order_by(_order(merged.c.id, shape))
    return query(dialect, ordered.limit(bindparam("limit")))


@lru_cache(SHAPES_MAX)
def apps_of(dialect: Dialect, shape: Shape) -> QueryStatement:
    """Documents of the apps that are members of a book. Values: book, before, after, limit."""
    mine = select(memberships.c.document).where(memberships.c.book == bindparam("book"))
    return query(dialect, _page(mine, memberships.c.app, shape))


@lru_cache(SHAPES_MAX)
def merchants_of(dialect: Dialect, shape: Shape) -> QueryStatement:
    """Documents of the merchants that an app is a member of; a merchant has its book's id.

    Values: app, before, after, limit. An app is a member of few: `is_test` needs no index.
    """
    theirs = (
        select(entities.c.document)
        .join_from(memberships, entities, entities.c.id == memberships.c.book)
        .where(memberships.c.app == bindparam("app"))
    )
    if shape.is_test is not None:
        theirs = theirs.where(entities.c.is_test.is_(shape.is_test))
    return query(dialect, _page(theirs, memberships.c.book, shape))


@lru_cache(SHAPES_MAX)
def waiting_merchants(dialect: Dialect, shape: Shape) -> QueryStatement:
    """Documents of the live merchants that wait for approval. Values: before, after, limit.

    Merchants alone have a public key, and an index of those. What a merchant may do is in its
    document, where no text of the merchant's own can be taken for it: quotes in texts are escaped.
    """
    waiting = select(entities.c.document).where(*_waits())
    return query(dialect, _page(waiting, entities.c.id, shape))


@lru_cache
def waiting_origins(dialect: Dialect) -> QueryStatement:
    """Origins of the first entries of their books, the newest first. Values: since, limit."""
    opening = (entries.c.book == entities.c.id) & (entries.c.seq == 1)
    found = select(entries.c.origin).join_from(entities, entries, opening)
    found = found.where(*_waits(), entities.c.id >= bindparam("since"))
    return query(dialect, found.order_by(entities.c.id.desc()).limit(bindparam("limit")))


def _waits() -> tuple[ColumnElement[bool], ...]:
    return (
        entities.c.public_key.is_not(None),
        entities.c.is_test.is_(False),
        entities.c.document.contains(MAY_NOT_CHARGE, autoescape=True),
        ~entities.c.document.contains(REJECTED, autoescape=True),
    )


def _along(index: Any, shape: Shape, *where: ColumnElement[bool]) -> Select[str, str]:
    """SQLite has no statistics to choose an index by, and is told which one it is."""
    walk = select(entities.c.document, entities.c.id).where(*where)
    return _page(walk.with_hint(entities, f"INDEXED BY {index}", "sqlite"), entities.c.id, shape)


def _without_id(walk: Select[str, str]) -> Select[str]:
    return walk.with_only_columns(entities.c.document)


def _page(walk: Select[Any], id_: ColumnElement[str], shape: Shape) -> Select[Any]:
    if shape.has_before:
        walk = walk.where(id_ < bindparam("before"))
    if shape.has_after:
        walk = walk.where(id_ > bindparam("after"))
    return walk.order_by(_order(id_, shape)).limit(bindparam("limit"))


def _order(id_: ColumnElement[str], shape: Shape) -> ColumnElement[str]:
    return id_.asc() if shape.is_ascending else id_.desc()


def _marks(shape: Shape) -> list[ColumnElement[bool]]:
    marks = ((entities.c.is_test, shape.is_test), (entities.c.is_successful, shape.is_successful))
    return [column.is_(value) for column, value in marks if value is not None]


def _stretches(shape: Shape) -> list[tuple[ColumnElement[bool], ColumnElement[bool]]]:
    """(is_test, is_successful) of each stretch of the index that holds what is wanted."""
    tests = (True, False) if shape.is_test is None else (shape.is_test,)
    successes = (None, True, False) if shape.is_successful is None else (shape.is_successful,)
    return [
        (entities.c.is_test == test, _equals(entities.c.is_successful, success))
        for test in tests
        for success in successes
    ]


def _equals(column: ColumnElement[Any], value: bool | None) -> ColumnElement[bool]:
    """In the two forms for which PostgreSQL, too, walks an index."""
    return column.is_(None) if value is None else column == value
