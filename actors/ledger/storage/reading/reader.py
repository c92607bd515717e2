"""`ReadStore` on SQL: what doors read, from tables written with the journal (F1, F2)."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, func, select

from tollgate.actors.ledger.law.rows import MEMBERSHIP, EntityRow, Entry, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId, IdempotencyKey
from tollgate.actors.ledger.storage.balances import (
    BalanceReader,
    booked_sums,
    read_sums,
    stray_sums,
)
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.connections.statements import QueryStatement, query
from tollgate.actors.ledger.storage.reading import lists as paging
from tollgate.actors.ledger.storage.reading.journal import JournalReader
from tollgate.actors.ledger.storage.reading.rows import ENTITY_COLUMNS, entity_row
from tollgate.actors.ledger.storage.reading.shard_state import StateReader
from tollgate.actors.ledger.storage.store import KeyOwner, ListFilter, PageBounds
from tollgate.actors.ledger.storage.tables import (
    checkpoints,
    entities,
    entries,
    heads,
    keys,
    memberships,
)

# The account whose sum is a merchant's balance (M2).
MERCHANT = "merchant"


class SqlReadStore:
    """Each call sees everything that was committed before it began."""

    def __init__(self, database: Database) -> None:
        dialect = database.dialect
        self._database = database
        self._dialect = dialect
        self._journal = JournalReader(dialect)
        self._state = StateReader(dialect)
        self._balances = BalanceReader(dialect)
        self._key = query(
            dialect,
            select(keys.c.app, keys.c.last4, keys.c.digest).where(
                keys.c.digest == bindparam("digest")
            ),
        )
        self._membership = query(
            dialect,
            select(memberships.c.document).where(
                memberships.c.app == bindparam("app"), memberships.c.book == bindparam("book")
            ),
        )
        self._entity = query(
            dialect,
            _entities(
                entities.c.id == bindparam("id"),
                entities.c.kind == bindparam("kind"),
            ),
        )
        self._merchant = query(dialect, _entities(entities.c.public_key == bindparam("key")))
        self._last_seq = query(dialect, _last_seq())
        self._head_seq = query(
            dialect, select(heads.c.seq).where(heads.c.book == bindparam("book"))
        )
        self._booked = query(dialect, booked_sums())
        self._strays = query(dialect, stray_sums())

    async def key_owner(self, digest: str) -> KeyOwner | None:
        row = await self._first(self._key, digest=digest)
        return None if row is None else KeyOwner(*row)

    async def membership(self, book: BookId, app: EntityId) -> str | None:
        row = await self._first(self._membership, book=book, app=app)
        return None if row is None else str(row[0])

    async def entity(self, kind: str, entity_id: EntityId) -> EntityRow | None:
        assert kind != MEMBERSHIP, "an app has many: ask for its membership, or for a page"
        row = await self._first(self._entity, kind=kind, id=entity_id)
        return None if row is None else entity_row(row)

    async def merchant_by_public_key(self, public_key: str) -> EntityRow | None:
        row = await self._first(self._merchant, key=public_key)
        return None if row is None else entity_row(row)

    async def page(
        self, kind: str, book: BookId, page: PageBounds, wanted: ListFilter
    ) -> list[str]:
        """Documents of a book's entities of a kind, in the order asked for."""
        shape = paging.Shape.of(page, wanted)
        if kind == MEMBERSHIP:
            return await self._documents(paging.apps_of(self._dialect, shape), page, book=book)
        return await self._documents(
            paging.entities_of(self._dialect, shape),
            page,
            book=book,
            kind=kind,
            transaction=wanted.transaction,
        )

    async def waiting_merchants(self, page: PageBounds) -> list[str]:
        """Documents of the live merchants, of all books, that wait for the operator's approval."""
        shape = paging.Shape.of(page, ListFilter())
        return await self._documents(paging.waiting_merchants(self._dialect, shape), page)

    async def waiting_origins(self, since: EntityId, count_max: int) -> list[str]:
        """Who opened the newest of these merchants, and from where: the origins of entries."""
        wanted = paging.waiting_origins(self._dialect)
        async with self._database.reading() as connection:
            rows = await wanted.rows(connection, since=since, limit=count_max)
        return [row[0] for row in rows]

    async def merchants_of(self, app: EntityId, page: PageBounds, wanted: ListFilter) -> list[str]:
        """Documents of the merchants that an app is a member of; of the filters, `is_test`."""
        shape = paging.Shape.of(page, ListFilter(is_test=wanted.is_test))
        return await self._documents(paging.merchants_of(self._dialect, shape), page, app=app)

    async def balance_at(self, book: BookId, at_ms: int | None) -> int | None:
        """The balance after the last entry at or before that time; None: no such book.

        In the currency of the book's merchant account, of which there is one.
        """
        balances = await self.balances_at(book, at_ms)
        if balances is None:
            return None
        return sum(amount for (account, _), amount in balances.items() if account == MERCHANT)

    async def balances_at(
        self, book: BookId, at_ms: int | None
    ) -> Mapping[tuple[str, str], int] | None:
        """Of every (account, currency) of a book, at that moment; None: no such book."""
        async with self._database.snapshot() as connection:
            row = await self._head_seq.first(connection, book=book)
            if row is None:
                return None
            if at_ms is not None:
                row = await self._last_seq.first(connection, book=book, at_ms=at_ms)
            return await self._balances.at(connection, book, row[0])

    async def trial_balance(self) -> list[tuple[str, str, int]]:
        """(account, currency, sum) over all books; per currency the sums add up to zero (M8)."""
        return await self._totals(self._booked)

    async def stray_balance(self) -> list[tuple[str, str, int]]:
        """The same of postings that belong to no entry, of which there must be none."""
        return await self._totals(self._strays)

    async def _totals(self, wanted: QueryStatement) -> list[tuple[str, str, int]]:
        async with self._database.report() as connection:
            balances = read_sums(await wanted.rows(connection))
        return sorted((*account, amount) for account, amount in balances.items())

    async def operation(self, key: IdempotencyKey) -> OperationRow | None:
        """The operation that was done with this idempotency key, while it is kept (F5)."""
        async with self._database.reading() as connection:
            found = await self._state.operations(connection, (), [key])
        return found[0] if found else None

    async def operation_named(self, operation: str) -> OperationRow | None:
        """The operation of this id, while it is kept (F5)."""
        async with self._database.reading() as connection:
            found = await self._state.operations(connection, [operation], [])
        return found[0] if found else None

    async def entries(self, book: BookId | None, after_seq: int = 0) -> AsyncIterator[Entry]:
        """Journal entries in order, of one book or of all (by book), with their postings.

        Holds no connection between its pieces, so that a slow caller hinders nobody; entries never
        change, so the pieces fit together.
        """
        place = (str(book or ""), after_seq)
        while piece := await self._piece(book, place):
            for each in piece:
                yield each
            place = (piece[-1].book, piece[-1].seq)

    async def _piece(self, book: BookId | None, place: tuple[str, int]) -> list[Entry]:
        async with self._database.snapshot() as connection:
            return await self._journal.piece(connection, book, place)

    async def _first(self, wanted: QueryStatement, **values: object) -> Any:
        async with self._database.reading() as connection:
            return await wanted.first(connection, **values)

    async def _documents(
        self, wanted: QueryStatement, page: PageBounds, **values: object
    ) -> list[str]:
        bounds = {"before": page.before, "after": page.after, "limit": page.limit}
        async with self._database.reading() as connection:
            return [row[0] for row in await wanted.rows(connection, **values, **bounds)]


def _entities(*wanted: ColumnElement[bool]) -> Select[Any]:
    return select(*ENTITY_COLUMNS).where(*wanted)


def _last_seq() -> Select[Any]:
    """The number of the last entry at or before a time, or 0. Times rise with numbers (F13), so
    the checkpoints on both sides say between which entries to look."""
    book: BindParameter[str] = bindparam("book")
    at_ms: BindParameter[int] = bindparam("at_ms")
    marks = checkpoints.c
    before = select(func.max(marks.seq)).where(marks.book == book, marks.at_ms <= at_ms)
    behind = select(func.min(marks.seq)).where(marks.book == book, marks.at_ms > at_ms)
    return select(func.coalesce(func.max(entries.c.seq), 0)).where(
        entries.c.book == book,
        entries.c.at_ms <= at_ms,
        entries.c.seq >= func.coalesce(before.scalar_subquery(), 0),
        entries.c.seq <= func.coalesce(behind.scalar_subquery(), 2**62),
    )
