"""`ReadStore` on SQL: what doors read, from tables written with the journal (F1, F2)."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Select, func, select

from actors.ledger.journal import paging
from actors.ledger.journal.engine import Database
from actors.ledger.journal.row_reading import ENTITY_COLUMNS, entity_row, entry
from actors.ledger.journal.schema import (
    checkpoints,
    entities,
    entries,
    heads,
    keys,
    memberships,
    postings,
)
from actors.ledger.journal.sums import balances_at, read_sums, sums
from actors.ledger.rows import EntityRow, Entry
from actors.ledger.store import Filter, KeyOwner, Page
from actors.ledger.values import BookId, EntityId

# The account whose sum is a merchant's balance (M2).
MERCHANT = "merchant"
# Entries are streamed in pieces of this size.
ENTRIES_PER_PIECE = 500


class SqlReadStore:
    """Each call sees everything that was committed before it began."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def key_owner(self, digest: str) -> KeyOwner | None:
        query = select(keys.c.app, keys.c.last4, keys.c.digest).where(keys.c.digest == digest)
        row = await self._first(query)
        return None if row is None else KeyOwner(*row)

    async def is_member(self, book: BookId, app: EntityId) -> bool:
        query = select(memberships.c.app).where(
            memberships.c.app == app, memberships.c.book == book
        )
        return await self._first(query) is not None

    async def entity(self, kind: str, entity_id: EntityId) -> EntityRow | None:
        assert kind != "membership", "an app has many: ask is_member, or for a page"
        query = select(*ENTITY_COLUMNS).where(entities.c.id == entity_id, entities.c.kind == kind)
        row = await self._first(query)
        return None if row is None else entity_row(row)

    async def merchant_by_public_key(self, public_key: str) -> EntityRow | None:
        query = select(*ENTITY_COLUMNS).where(entities.c.public_key == public_key)
        row = await self._first(query)
        return None if row is None else entity_row(row)

    async def page(self, kind: str, book: BookId, page: Page, wanted: Filter) -> list[str]:
        """Documents of a book's entities of a kind, in the order asked for."""
        if kind == "membership":
            return await self._documents(paging.apps_of(book, page))
        return await self._documents(paging.entities_of(kind, book, page, wanted))

    async def merchants_of(self, app: EntityId, page: Page, wanted: Filter) -> list[str]:
        """Documents of the merchants that an app is a member of; of the filters, `is_test`."""
        return await self._documents(paging.merchants_of(app, page, wanted))

    async def balance_at(self, book: BookId, at_ms: int | None) -> int | None:
        """The balance after the last entry at or before that time; None: no such book.

        In the currency of the book's merchant account, of which there is one.
        """
        async with self._database.snapshot() as connection:
            seq = (
                await connection.execute(select(heads.c.seq).where(heads.c.book == book))
            ).scalar_one_or_none()
            if seq is None:
                return None
            if at_ms is not None:
                seq = (await connection.execute(_last_seq(book, at_ms))).scalar_one()
            balances = await balances_at(connection, book, seq)
        return sum(amount for (account, _), amount in balances.items() if account == MERCHANT)

    async def trial_balance(self) -> list[tuple[str, str, int]]:
        """(account, currency, sum) over all books; per currency the sums add up to zero (M8)."""
        async with self._database.reader.connect() as connection:
            balances = read_sums(await connection.execute(sums()))
        return sorted((*account, amount) for account, amount in balances.items())

    async def entries(self, book: BookId | None, after_seq: int = 0) -> AsyncIterator[Entry]:
        """Journal entries in order, of one book or of all (by book), with their postings."""
        place = ("" if book is None else str(book), after_seq)
        while piece := await self._entries_after(book, place):
            for each in piece:
                yield each
            place = (piece[-1].book, piece[-1].seq)

    async def _entries_after(self, book: BookId | None, place: tuple[str, int]) -> list[Entry]:
        after = paging.after_entry(entries, book, place)
        query = (
            select(entries)
            .where(after)
            .order_by(entries.c.book, entries.c.seq)
            .limit(ENTRIES_PER_PIECE)
        )
        async with self._database.snapshot() as connection:
            rows = list(await connection.execute(query))
            if not rows:
                return []
            legs: dict[tuple[str, int], list[Any]] = {}
            for each, seq, *leg in await connection.execute(
                select(
                    *(postings.c.book, postings.c.seq),
                    *(postings.c.account, postings.c.currency, postings.c.amount),
                )
                .where(
                    paging.after_entry(postings, book, place),
                    paging.until_entry(postings, (rows[-1].book, rows[-1].seq)),
                )
                .order_by(postings.c.book, postings.c.seq, postings.c.leg)
            ):
                legs.setdefault((each, seq), []).append(leg)
        return [entry(row, legs.get((row.book, row.seq), ())) for row in rows]

    async def _first(self, query: Select[Any]) -> Any:
        async with self._database.reader.connect() as connection:
            return (await connection.execute(query)).first()

    async def _documents(self, query: Select[Any]) -> list[str]:
        async with self._database.reader.connect() as connection:
            return list((await connection.execute(query)).scalars())


def _last_seq(book: BookId, at_ms: int) -> Select[int]:
    """The number of the last entry at or before a time, or 0. Times rise with numbers (F13), so a
    checkpoint says near which entry to look."""
    start = (
        select(func.coalesce(func.max(checkpoints.c.seq), 0))
        .where(checkpoints.c.book == book, checkpoints.c.at_ms <= at_ms)
        .scalar_subquery()
    )
    end = (
        select(func.min(checkpoints.c.seq))
        .where(checkpoints.c.book == book, checkpoints.c.at_ms > at_ms)
        .scalar_subquery()
    )
    return select(func.coalesce(func.max(entries.c.seq), 0)).where(
        entries.c.book == book,
        entries.c.at_ms <= at_ms,
        entries.c.seq >= start,
        entries.c.seq <= func.coalesce(end, 2**62),
    )
