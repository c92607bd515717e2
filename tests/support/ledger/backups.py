"""Backing up and restoring, as tests do it: each in an event loop of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from tests.support.ledger.storage import TABLES, Storage, emptied, runner
from tests.support.ledger.stored_story import story, write
from tollgate.actors.ledger.backup.archive import LedgerArchive, Shipment
from tollgate.actors.ledger.backup.restore import Restored, restore_records
from tollgate.actors.ledger.backup.segments import SegmentRecord
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.storage.migration import open_database

NOW_MS = 1_800_000_000_000
# Epochs begin anew; checkpoints are where the restore's batches end.
RESTORED_TABLES = [name for name in TABLES if name not in ("owners", "checkpoints")]


def backed_up(url: str, archive: LedgerArchive) -> Shipment | None:
    async def back_up() -> Shipment | None:
        database = await open_database(url)
        try:
            return await archive.add(database, NOW_MS, lambda _: None)
        finally:
            await database.close()

    return asyncio.run(back_up())


def restored(url: str, archive: LedgerArchive) -> Restored:
    async def all_records() -> AsyncIterator[SegmentRecord]:
        for record in archive.records():
            yield record

    async def do() -> Restored:
        database = await open_database(url)
        try:
            return await restore_records(database, all_records(), lambda _: None)
        finally:
            await database.close()

    return asyncio.run(do())


def tables_of(url: str) -> dict[str, list[tuple[object, ...]]]:
    tables: dict[str, list[tuple[object, ...]]] = {}

    async def read(storage: Storage) -> None:
        tables.update(await storage.tables())

    runner(url)(read)
    tables["operations"] = _that_changed_something(tables)
    return {name: tables[name] for name in RESTORED_TABLES}


def _that_changed_something(
    tables: Mapping[str, list[tuple[object, ...]]],
) -> list[tuple[object, ...]]:
    """Operations with entries. The others are not shipped: asked for again, they change nothing
    again."""
    with_entries = {operation for *_, operation, _hash in tables["entries"]}
    return [row for row in tables["operations"] if row[0] in with_entries]


def told(url: str, *commits: Commit) -> str:
    """The url, with a story in its tables and something in those that are no part of a journal."""

    async def tell(storage: Storage) -> None:
        await write(await storage.store(), commits or story())
        writing = await storage.writing()
        await writing.run("DELETE FROM anchors")
        await writing.run("INSERT INTO anchors VALUES ('2026-01-01', 5, 3, 'a root')")
        await writing.run("INSERT INTO key_uses VALUES ('a digest', 17)")
        await writing.run(
            "INSERT INTO webhook_dead_letters VALUES ('hook', 'event', 5, 'HTTP 500', true)"
        )
        await writing.run("INSERT INTO webhook_cursors VALUES ('hook', 'e', 2, NULL, 7, '', 0)")

    runner(url)(tell)
    return url


def empty_tables(tmp_path: Path) -> str:
    """The url of others, on SQLite."""
    return emptied(f"sqlite:///{tmp_path}/restored.sqlite")
