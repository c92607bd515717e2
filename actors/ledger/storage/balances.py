"""Balances, exact: sums of postings may exceed 64 bits, where SQLite gives up."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    literal,
    select,
)
from sqlalchemy.engine import Dialect

from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.connections.connection import Connection
from tollgate.actors.ledger.storage.connections.statements import query
from tollgate.actors.ledger.storage.tables import checkpoints, entries, postings

# (account, currency) -> minor units
Balances = Counter[tuple[str, str]]

_HALF_BITS = 32
_HALF_MASK = 2**_HALF_BITS - 1
_ENTRY = and_(entries.c.book == postings.c.book, entries.c.seq == postings.c.seq)


def sums(*wanted: ColumnElement[bool]) -> Select[str, str, int, int]:
    """Sums by account and currency, in two halves that cannot overflow: `read_sums` joins them."""
    high = func.sum(postings.c.amount.op(">>")(literal(_HALF_BITS, Integer())))
    low = func.sum(postings.c.amount.op("&")(_HALF_MASK))
    by = (postings.c.account, postings.c.currency)
    return select(*by, high, low).where(*wanted).group_by(*by)


def booked_sums() -> Select[str, str, int, int]:
    """The sums over all books. Postings without an entry are in none: `stray_sums`."""
    return sums().select_from(postings.join(entries, _ENTRY))


def stray_sums() -> Select[str, str, int, int]:
    """The sums of postings that stand where no entry does."""
    return sums(entries.c.seq.is_(None)).select_from(postings.outerjoin(entries, _ENTRY))


def read_sums(rows: Iterable[Iterable[Any]]) -> Balances:
    return Counter(
        {
            (account, currency): (int(high) << _HALF_BITS) + int(low)
            for account, currency, high, low in rows
        }
    )


class BalanceReader:
    """Balances of a book after an entry: those of the last checkpoint, and what came since."""

    def __init__(self, dialect: Dialect) -> None:
        book: BindParameter[str] = bindparam("book")
        seq: BindParameter[int] = bindparam("seq")
        self._start = query(
            dialect,
            select(checkpoints.c.seq, checkpoints.c.balances)
            .where(checkpoints.c.book == book, checkpoints.c.seq <= seq)
            .order_by(checkpoints.c.seq.desc())
            .limit(1),
        )
        self._since = query(
            dialect,
            sums(
                postings.c.book == book,
                postings.c.seq > bindparam("start"),
                postings.c.seq <= seq,
            ),
        )

    async def at(self, connection: Connection, book: BookId, seq: int) -> Balances:
        start = await self._start.first(connection, book=book, seq=seq)
        balances = balances_of_text(start[1]) if start else Balances()
        since = start[0] if start else 0
        rows = await self._since.rows(connection, book=book, seq=seq, start=since)
        # (adds up, and keeps what is negative)
        balances.update(read_sums(rows))
        return balances


def text_of_balances(balances: Balances) -> str:
    """Canonical JSON: [[account, currency, amount], …]."""
    rows = sorted((account, currency, amount) for (account, currency), amount in balances.items())
    return json.dumps(rows, separators=(",", ":"))


def balances_of_text(text: str) -> Balances:
    rows: list[tuple[str, str, int]] = json.loads(text)
    return Counter({(account, currency): amount for account, currency, amount in rows})
