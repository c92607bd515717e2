"""Stored operations, compared with what the entries say became of them (F5).

    an entry that is young enough   has an operation, with its book, app, key and time
    the operation's reply           is the one that the entry's event and rows make again
    an operation without an entry   has a reply to an order that found everything as it should be

Fingerprints of requests are not compared: no entry says them.

A reply is stored as it was given. A release that shows a document with other members leaves older
replies as they are, so members that only one of the two has are passed over; what both have is the
same, and so is what the document is about.
"""

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from msgspec import DecodeError
from msgspec.json import decode
from sqlalchemy import Column, MetaData, Table, Text, select
from sqlalchemy.schema import CreateTable

from tollgate.actors.ledger.book.chain import event_of
from tollgate.actors.ledger.book.replies import WITHOUT_EVENTS, reply_about
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.proof.table_comparison import Tables
from tollgate.actors.ledger.proof.table_rebuild import Replayed
from tollgate.actors.ledger.storage.connections.connection import transaction
from tollgate.actors.ledger.storage.connections.statements import among, listed, query, upsert
from tollgate.actors.ledger.storage.tables import operations

# Shown in another unit until the tables' version 0005.
_REWORDED = "pricing"
# Of the operations that entries speak of, the names: beside the tables that a replay makes.
_seen = Table("seen_operations", MetaData(), Column("operation", Text, primary_key=True))


class _Stored(NamedTuple):
    """A row of the operations, as it is: whatever somebody may have written there."""

    operation: str
    book: BookId
    app: str
    key: str
    fingerprint: str
    status: int
    body: bytes
    at_ms: int


class OperationAudit:
    """Of all books, entry by entry. `since_ms`: entries after this time must have an operation."""

    def __init__(self, found: Tables, scratch: Tables, since_ms: int) -> None:
        self._found = found
        self._scratch = scratch
        self._since_ms = since_ms
        wanted = among(found.dialect, operations.c.operation, "wanted")
        self._wanted = query(found.dialect, select(operations).where(wanted))
        self._remember = upsert(scratch.dialect, _seen, "operation")
        # The entries of the last operation: more of them may come.
        self._open: list[Replayed] = []

    async def prepare(self) -> None:
        """Makes a table of its own in the scratch tables."""
        await self._scratch.connection.run(str(CreateTable(_seen)))

    async def check(self, made: Sequence[Replayed]) -> list[str]:
        """The faults of the operations that these entries complete."""
        whole: list[list[Replayed]] = []
        for each in made:
            if self._open and not _is_of_one_operation(self._open[-1], each):
                whole.append(self._open)
                self._open = []
            self._open.append(each)
        return await self._compare(whole)

    async def end(self, broken: set[BookId]) -> AsyncIterator[str]:
        """The faults of the last operation, and of those that no entry knows. Of books whose
        journal is broken nobody can tell which they are."""
        whole, self._open = [self._open] if self._open else [], []
        for line in await self._compare(whole):
            yield line
        seen = self._scratch.rows(_seen)
        last = await anext(seen, None)
        async for row in self._found.rows(operations):
            operation = _Stored(*row)
            while last is not None and last[0] < operation.operation:
                last = await anext(seen, None)
            is_known = last is not None and last[0] == operation.operation
            if not is_known and operation.book not in broken and not _is_without_effect(operation):
                yield (
                    f"operation {operation.operation} of book {operation.book}: has a reply, and "
                    "no entry knows of it (F5)"
                )

    async def _compare(self, whole: list[list[Replayed]]) -> list[str]:
        if not whole:
            return []
        names = list(dict.fromkeys(made[0].entry.operation for made in whole))
        wanted = listed(self._found.dialect, names)
        found = await self._wanted.rows(self._found.connection, wanted=wanted)
        kept = {row.operation: row for row in itertools.starmap(_Stored, found)}
        findings = []
        for made in whole:
            entry = made[0].entry
            if (row := kept.get(entry.operation)) is not None:
                findings += _faults(row, made)
            elif entry.at_ms > self._since_ms:
                findings.append(
                    f"entry {entry.seq} of book {entry.book}: what became of its operation "
                    f"{entry.operation} is not kept (F5)"
                )
        async with transaction(self._scratch.connection, "BEGIN IMMEDIATE"):
            await self._remember.run(self._scratch.connection, [(name,) for name in kept])
        return findings


def _is_of_one_operation(one: Replayed, other: Replayed) -> bool:
    return (one.entry.book, one.entry.operation) == (other.entry.book, other.entry.operation)


def _faults(row: _Stored, made: Sequence[Replayed]) -> list[str]:
    entry, events = made[0].entry, [event_of(each.entry) for each in made]
    origin = decode(entry.origin, type=dict[str, object])
    try:
        reply = reply_about(events, [row for each in made for row in each.rows])
    except LookupError:
        return [f"entry {entry.seq} of book {entry.book}: no order is replied to by what it says"]
    compared = {
        "book": row.book == entry.book,
        "app": row.app == origin.get("app"),
        "idempotency key": row.key == origin.get("idempotency_key"),
        "time": row.at_ms == made[-1].entry.at_ms,
        "outcome": row.status == reply.kind,
        "reply": _tells_the_same(row.body, reply.body),
    }
    return [
        f"operation {row.operation} of book {entry.book}: its stored {what} is not what entry "
        f"{entry.seq} says (F5)"
        for what, is_equal in compared.items()
        if not is_equal
    ]


def _tells_the_same(stored: bytes, expected: bytes) -> bool:
    if stored == expected:
        return True
    try:
        one, other = decode(stored), decode(expected)
    except DecodeError:
        return False
    is_document = isinstance(one, dict) and isinstance(other, dict)
    return is_document and one.keys() == other.keys() and _agree(one, other)


def _agree(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        common = one.keys() & other.keys() - {_REWORDED}
        return one.get("id") == other.get("id") and all(_agree(one[k], other[k]) for k in common)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    return one == other


def _is_without_effect(row: _Stored) -> bool:
    return (row.status, row.body) in [(reply.kind, reply.body) for reply in WITHOUT_EVENTS]
