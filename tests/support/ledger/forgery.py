"""Books written anew by somebody who may write to the database: every hash fits, and so does every
table. Nothing in them shows it; only what was kept elsewhere does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from tests.support.ledger.storage import emptied
from tollgate.actors.ledger.backup.restore import restore_records
from tollgate.actors.ledger.backup.segments import BookPosition, SegmentRecord
from tollgate.actors.ledger.backup.shipment import ship
from tollgate.actors.ledger.book.chain import hash_of
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId
from tollgate.actors.ledger.storage.migration import open_database

# What an entry becomes; None: it is left out, with its operation.
Change = Callable[[Entry], Entry | None]


def forge(source: str, target: str, change: Change) -> str:
    """The url of new books: those of `source`, with every entry as `change` makes it."""
    emptied(target)

    async def write() -> None:
        real, forged = await open_database(source), await open_database(target)
        try:
            records = ship(real, {}, lambda _: None)
            await restore_records(forged, _changed(records, change), lambda _: None)
        finally:
            await real.close()
            await forged.close()

    asyncio.run(write())
    return target


async def _changed(
    records: AsyncIterator[SegmentRecord], change: Change
) -> AsyncIterator[SegmentRecord]:
    places: dict[BookId, BookPosition] = {}
    kept: set[str] = set()
    async for record in records:
        if record.entry is not None:
            if (entry := change(record.entry)) is None:
                continue
            before = places.get(entry.book)
            entry = replace(entry, hash=hash_of(before.hash if before else "0" * 64, entry))
            places[entry.book] = BookPosition(entry.book, entry.seq, entry.hash)
            kept.add(entry.operation)
            yield SegmentRecord(entry=entry)
        elif record.operation is not None and record.operation.operation in kept:
            yield record
    for place in places.values():
        yield SegmentRecord(head=place)
