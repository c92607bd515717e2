"""Queries of lists (part A, Lists; L1 to L4): each walks one index in the order of ids.

A filter by marks leaves out a column in the middle of its index when only one mark is asked for;
the values that it may have there are then walked one by one, each in order, and merged.
"""

from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, or_, select, union_all

from actors.ledger.journal.schema import (
    LIST_INDEX,
    MARK_INDEX,
    TRANSACTION_INDEX,
    entities,
    memberships,
)
from actors.ledger.store import Filter, Page
from actors.ledger.values import BookId, EntityId


def entities_of(kind: str, book: BookId, page: Page, wanted: Filter) -> Select[Any]:
    """Documents of a book's entities of a kind."""
    mine = (entities.c.book == book, entities.c.kind == kind)
    if wanted.transaction is not None:
        related = entities.c.transaction_id == wanted.transaction
        return _along(TRANSACTION_INDEX.name, page, *mine, related, *_marks(wanted))
    if wanted.is_test is None and wanted.is_successful is None:
        return _along(LIST_INDEX.name, page, *mine)
    walks = [_along(MARK_INDEX.name, page, *mine, *marks) for marks in _mark_walks(wanted)]
    if len(walks) == 1:
        return walks[0]
    merged = union_all(*(select(walk.add_columns(entities.c.id).subquery()) for walk in walks))
    rows = merged.subquery()
    return select(rows.c.document).order_by(_order(rows.c.id, page)).limit(page.limit)


def apps_of(book: BookId, page: Page) -> Select[Any]:
    """Documents of the apps that are members of a book."""
    return _page(
        select(memberships.c.document).where(memberships.c.book == book), memberships.c.app, page
    )


def merchants_of(app: EntityId, page: Page, wanted: Filter) -> Select[Any]:
    """Documents of the merchants that an app is a member of; a merchant has its book's id."""
    query = (
        select(entities.c.document)
        .join_from(memberships, entities, entities.c.id == memberships.c.book)
        .where(memberships.c.app == app, *_marks(Filter(is_test=wanted.is_test)))
    )
    return _page(query, memberships.c.book, page)


def after_entry(table: Table, book: BookId | None, place: tuple[str, int]) -> ColumnElement[bool]:
    """Entries, or postings, behind (book, seq); of one book, or of all."""
    if book is not None:
        return and_(table.c.book == book, table.c.seq > place[1])
    return or_(table.c.book > place[0], and_(table.c.book == place[0], table.c.seq > place[1]))


def until_entry(table: Table, place: tuple[str, int]) -> ColumnElement[bool]:
    return or_(table.c.book < place[0], and_(table.c.book == place[0], table.c.seq <= place[1]))


def _along(index: Any, page: Page, *where: ColumnElement[bool]) -> Select[Any]:
    """SQLite keeps no statistics here, and is told which index it is."""
    query = select(entities.c.document).where(*where)
    query = query.with_hint(entities, f"INDEXED BY {index}", "sqlite")
    return _page(query, entities.c.id, page)


def _page(query: Select[Any], id_: ColumnElement[str], page: Page) -> Select[Any]:
    if page.before is not None:
        query = query.where(id_ < page.before)
    if page.after is not None:
        query = query.where(id_ > page.after)
    return query.order_by(_order(id_, page)).limit(page.limit)


def _order(id_: ColumnElement[str], page: Page) -> ColumnElement[str]:
    return id_.asc() if page.is_ascending else id_.desc()


def _marks(wanted: Filter) -> list[ColumnElement[bool]]:
    marks: list[ColumnElement[bool]] = []
    if wanted.is_test is not None:
        marks.append(entities.c.is_test.is_(wanted.is_test))
    if wanted.is_successful is not None:
        marks.append(entities.c.is_successful.is_(wanted.is_successful))
    return marks


def _mark_walks(wanted: Filter) -> list[tuple[ColumnElement[bool], ColumnElement[bool]]]:
    """(is_test, is_successful) of each stretch of the index that holds what is wanted."""
    tests = (True, False) if wanted.is_test is None else (wanted.is_test,)
    successes = (None, True, False) if wanted.is_successful is None else (wanted.is_successful,)
    return [
        (entities.c.is_test == test, _is(entities.c.is_successful, success))
        for test in tests
        for success in successes
    ]


def _is(column: ColumnElement[Any], value: bool | None) -> ColumnElement[bool]:
    return column.is_(None) if value is None else column == value
