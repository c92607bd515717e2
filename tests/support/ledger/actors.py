"""Ledger shards as real actors on a real file, for tests: importable where the actors run."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from tests.simulation.ledger.auditor import BookAuditor
from tests.support.ledger.books import EUR, PRICING, authorise, opening
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ledger.law.commands import Command, CreateApp, Order, ReserveMerchant
from tollgate.actors.ledger.law.outcomes import Done, OrderOutcome
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import DIRECTORY, NOBODY, BookId, EntityId, Origin
from tollgate.actors.ledger.shard.actor import RayShardConnection, start_shard, start_shards
from tollgate.actors.ledger.shard.client import ClientBounds, LedgerClient
from tollgate.actors.ledger.shard.pipeline import ShardBounds
from tollgate.actors.ledger.shard.routing import ShardMap
from tollgate.actors.ledger.shard.spec import ShardSpec
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.store import JournalStore
from tollgate.actors.ledger.storage.writer import SqlJournalStore

Result = TypeVar("Result")
ANSWERS_WITHIN_S = 3.0
PATIENCE_S = 60


async def open_journal(url: str) -> JournalStore:
    return SqlJournalStore(await open_database(url))


@dataclass(frozen=True, slots=True)
class Ledger:
    """One shard on one file."""

    url: str
    spec: ShardSpec
    namespace: str
    handle: Any

    def line(self) -> RayShardConnection:
        find = partial(start_shard, self.spec, self.namespace)
        return RayShardConnection(find, self.handle, ANSWERS_WITHIN_S)

    def client(self) -> LedgerClient:
        """Asks as long as an order's deadline allows, so that a test hears what became of it."""
        return LedgerClient([self.line()], ClientBounds(patience_s=PATIENCE_S))

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


def start_ledger(folder: Path, namespace: str, release: str = "this") -> Ledger:
    """A shard on a new file in a folder, or another incarnation on the file that is there."""
    url = f"sqlite:///{folder / 'ledger.sqlite'}"
    asyncio.run(upgrade(url))
    # One file, one name of the shard: a second one in another namespace fences the first.
    opening = partial(open_journal, url)
    spec = ShardSpec(ShardMap(1), 0, opening, SystemClock(), ShardBounds(), release)
    (handle,) = start_shards([spec], namespace)
    return Ledger(url, spec, namespace, handle)


class Desk:
    """Gives orders to one shop of a ledger, and remembers them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.given: dict[str, Order] = {}
        self._numbers = count()
        app = self._id(DIRECTORY, CreateApp("Till", "digest", "ab12"), NOBODY, "app")
        self.app = EntityId(app)
        self.book = BookId(self._id(DIRECTORY, ReserveMerchant(), self.app, "merchant"))
        self._id(self.book, opening(self.app, EUR, PRICING, is_test=True), self.app, "merchant")

    def order(
        self,
        command: Command,
        book: BookId | None = None,
        app: EntityId | None = None,
        key: str = "",
    ) -> Order:
        number = next(self._numbers)
        order = Order(
            operation=f"operation-{number}",
            book=self.book if book is None else book,
            command=command,
            origin=Origin(self.app if app is None else app, "ab12", "192.0.2.1", f"r-{number}"),
            time_left_ms=PATIENCE_S * 1000,
            idempotency_key=key,
            fingerprint="print" if key else "",
        )
        self.given[order.operation] = order
        return order

    def give(self, *orders: Order) -> list[OrderOutcome]:
        """Each in a request of its own, all at once."""
        return asyncio.run(_together(self.ledger.client(), orders))

    def authorised(self, amount: int) -> EntityId:
        return EntityId(self._id(self.book, authorise(amount), self.app, "transaction"))

    def _id(self, book: BookId, command: Command, app: EntityId, what: str) -> str:
        (answer,) = self.give(self.order(command, book, app))
        assert isinstance(answer, Done), answer
        return str(json.loads(answer.body)[what]["id"])

    def audit(self) -> BookAuditor:
        """The shop's book, gone through by the simulation's auditor."""
        auditor = BookAuditor(self.book, self.given)
        for entry in self.ledger.journal(self.book):
            auditor.read(entry)
        auditor.finish()
        return auditor


async def _together(client: LedgerClient, orders: Sequence[Order]) -> list[OrderOutcome]:
    answers = await asyncio.gather(*(client.execute([order]) for order in orders))
    return [answer for (answer,) in answers]
