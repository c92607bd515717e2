"""A shard on books in memory, whose disk a test can hold up and break. Time is made up."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from tests.support.ledger.books import NOW_MS, Books, Shop, authorise, open_shop
from tests.support.ledger.memory_store import MemoryStore, MemoryTables
from tests.support.manual_clock import ManualClock
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.law.commands import Capture, Command, Order, Void
from tollgate.actors.ledger.law.outcomes import Done, OrderOutcome
from tollgate.actors.ledger.law.rows import Commit, EntityRow, HeadRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.shard.pipeline import Shard, ShardBounds

SHARD = "shard"
AS_USUAL = ShardBounds()


class SteeredStore(MemoryStore):
    """`disk`: commits wait until it is set. `failure`: what they raise. `calls`: by method."""

    def __init__(self, tables: MemoryTables) -> None:
        super().__init__(tables)
        self.disk = asyncio.Event()
        self.disk.set()
        self.failure: Exception | None = None
        self.commits: list[Commit] = []
        self.calls: Counter[str] = Counter()

    async def append(self, commit: Commit) -> None:
        self.calls["append"] += 1
        await self.disk.wait()
        if self.failure is not None:
            raise self.failure
        await super().append(commit)
        self.commits.append(commit)

    async def heads(self, books: Sequence[BookId]) -> dict[BookId, HeadRow]:
        self.calls["heads"] += 1
        return await super().heads(books)

    async def entities(self, ids: Sequence[EntityId]) -> dict[EntityId, EntityRow]:
        self.calls["entities"] += 1
        return await super().entities(ids)

    async def operations(
        self, operations: Sequence[str], keys: Sequence[tuple[EntityId, BookId, str]]
    ) -> list[OperationRow]:
        self.calls["operations"] += 1
        return await super().operations(operations, keys)


class Writer:
    """A shard with one shop in its books. `ends`: what it ended by."""

    def __init__(self, shop: Shop, bounds: ShardBounds) -> None:
        self.shop = shop
        self.tables = MemoryTables()
        self.tables.write(_all_of(shop.books))
        self.clock = ManualClock(NOW_MS / 1000)
        self.ends: list[BaseException] = []
        self.bounds = bounds
        self.store = SteeredStore(self.tables)
        self.shard = Shard(self.store, self.clock, self.ends.append, bounds)

    async def take_over(self) -> "Writer":
        """Another incarnation begins, and this one with it; the older one goes on."""
        older = Writer.__new__(Writer)
        older.__dict__.update(self.__dict__)
        self.ends = []
        self.store = SteeredStore(self.tables)
        self.shard = Shard(self.store, self.clock, self.ends.append, self.bounds)
        await self.store.take_over(SHARD, "another")
        return older

    def order(self, command: Command, app: EntityId | None = None, key: str = "") -> Order:
        """An order to the shop's book, with ten seconds left."""
        return self.shop.books.order(
            self.shop.book,
            command,
            self.shop.app if app is None else app,
            idempotency_key=key,
            fingerprint=f"{command}" if key else "",
            time_left_ms=10_000,
        )

    async def ask(self, *orders: Order) -> list[OrderOutcome]:
        return await self.shard.execute(orders)

    async def do(self, command: Command, key: str = "") -> OrderOutcome:
        (answer,) = await self.ask(self.order(command, key=key))
        return answer

    def asked(self, *orders: Order) -> asyncio.Task[list[OrderOutcome]]:
        """Asked, and not waited for."""
        return asyncio.get_running_loop().create_task(self.ask(*orders))

    @property
    def journal(self) -> int:
        """How many entries the shop's book has."""
        return len(self.tables.entries[self.shop.book])


async def quiet() -> None:
    """Until nothing is left that could happen by itself."""
    await asyncio.sleep(0.001)


def run(
    scenario: Callable[[Writer], Awaitable[None]],
    shop: Shop | None = None,
    bounds: ShardBounds = AS_USUAL,
) -> None:
    """A scenario on a shard of its own. What nobody was told of fails it too."""

    async def play() -> None:
        writer = Writer(open_shop() if shop is None else shop, bounds)
        await writer.store.take_over(SHARD, "the first")
        await scenario(writer)

    loop = VirtualLoop()
    loop.run(play())
    assert not loop.accidents, loop.accidents


def _all_of(books: Books) -> Commit:
    return Commit(
        entries=list(books.log),
        entities=list(books.tables.values()),
        keys=list(books.live_keys.values()),
        heads=list(books.heads.values()),
    )


def void(transaction: EntityId, amount: int = 100) -> Void:
    return Void(transaction, amount)


def capture(transaction: EntityId, amount: int) -> Capture:
    return Capture(transaction, amount, None, "", None, None)


async def authorised(writer: Writer, amount: int = 1_000) -> EntityId:
    answer = await writer.do(authorise(amount))
    assert isinstance(answer, Done)
    return EntityId(json.loads(answer.body)["transaction"]["id"])
