"""Ledger shards as real actors on a real file, for tests: importable where the actors run."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from actors.kernel.clock import SystemClock
from actors.ledger.actor import RayShardLine, ShardSpec, start_shard, start_shards
from actors.ledger.client import LedgerClient
from actors.ledger.journal.migrating import open_database, upgrade
from actors.ledger.journal.reading import SqlReadStore
from actors.ledger.journal.writing import SqlJournalStore
from actors.ledger.routing import ShardMap
from actors.ledger.rows import Entry
from actors.ledger.shard import ShardBounds
from actors.ledger.store import JournalStore
from actors.ledger.values import BookId

Result = TypeVar("Result")
ANSWERS_WITHIN_S = 3.0


async def open_journal(url: str) -> JournalStore:
    return SqlJournalStore(await open_database(url))


@dataclass(frozen=True, slots=True)
class Ledger:
    """One shard on one file."""

    url: str
    spec: ShardSpec
    namespace: str
    handle: Any

    def line(self) -> RayShardLine:
        find = partial(start_shard, self.spec, self.namespace)
        return RayShardLine(find, self.handle, ANSWERS_WITHIN_S)

    def client(self) -> LedgerClient:
        return LedgerClient([self.line()], SystemClock())

    def read(self, question: Callable[[SqlReadStore], Awaitable[Result]]) -> Result:
        """What is on the disk, on connections of its own."""

        async def ask() -> Result:
            database = await open_database(self.url)
            try:
                return await question(SqlReadStore(database))
            finally:
                await database.close()

        return asyncio.run(ask())

    def journal(self, book: BookId) -> list[Entry]:
        async def entries(store: SqlReadStore) -> list[Entry]:
            return [entry async for entry in store.entries(book)]

        return self.read(entries)


def start_ledger(folder: Path, namespace: str) -> Ledger:
    """A shard on a new file in a folder, or another incarnation on the file that is there."""
    url = f"sqlite:///{folder / 'ledger.sqlite'}"
    asyncio.run(upgrade(url))
    # One file, one name of the shard: a second one in another namespace fences the first.
    opening = partial(open_journal, url)
    spec = ShardSpec(ShardMap(1), 0, opening, SystemClock(), ShardBounds())
    (handle,) = start_shards([spec], namespace)
    return Ledger(url, spec, namespace, handle)
