"""The ledger without HTTP and Ray: one shard on SQLite, where every commit waits for the disk.

The baseline, in the same run, is the plain way: the same orders, one commit for each. What a shard
needs to begin, and what a page of a list costs, is taken of a book with as many entries as wanted.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from rich.table import Table

from scripts.benchmarks.ledger_machine import AUTHORISE, BOOK, OPEN_SHOP, ORIGIN
from tollgate.actors.kernel.clock import SystemClock
from tollgate.actors.ledger.law.commands import Capture, Command, Order
from tollgate.actors.ledger.law.outcomes import Done, OrderOutcome
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.shard.pipeline import Shard, ShardBounds
from tollgate.actors.ledger.storage.connections.engine import Database
from tollgate.actors.ledger.storage.migration import open_database, upgrade
from tollgate.actors.ledger.storage.reading.reader import SqlReadStore
from tollgate.actors.ledger.storage.store import ListFilter, PageBounds
from tollgate.actors.ledger.storage.writer import SqlJournalStore

BATCH = 100
CALLERS = 2
GROWING = 10_000
GROWING_BATCH = 250
TIME_LEFT_MS = 600_000
PAGE = 50
PAGES = 200
SHARD = "benchmark"


class Speed(NamedTuple):
    """Orders per second, and processor time of one in µs."""

    per_second: float
    cpu_us: float


class Core:
    """A shard on a file. `clock`: the real one."""

    def __init__(self, database: Database, store: SqlJournalStore, batch_max: int = BATCH) -> None:
        self.database = database
        self.clock = SystemClock()
        self.shard = Shard(store, self.clock, _ended, ShardBounds(batch_max=batch_max))
        self._name = f"{self.clock.now_s()}"
        self._orders = 0

    async def authorise(self, count: int, batch: int) -> tuple[Speed, list[EntityId]]:
        speed, answers = await self.give([AUTHORISE] * count, batch)
        return speed, [json.loads(answer.body)["transaction"]["id"] for answer in answers]

    async def capture(self, transactions: Sequence[EntityId], batch: int) -> Speed:
        commands = [Capture(each, 1_000, None, "", None, None) for each in transactions]
        return (await self.give(commands, batch))[0]

    async def give(self, commands: Sequence[Command], batch: int) -> tuple[Speed, list[Done]]:
        """Orders in batches of this size, two of them on their way at any time."""
        orders = list(self._ordered(commands))
        parts = iter([orders[at : at + batch] for at in range(0, len(orders), batch)])
        answers: list[OrderOutcome] = []

        async def caller() -> None:
            for part in parts:
                answers.extend(await self.shard.execute(part))

        begun, spent = perf_counter(), process_time()
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        seconds, spent = perf_counter() - begun, process_time() - spent
        done = [answer for answer in answers if isinstance(answer, Done)]
        assert len(done) == len(orders), "all of it is allowed"
        return Speed(len(orders) / seconds, spent / len(orders) * 1e6), done

    def _ordered(self, commands: Sequence[Command]) -> Iterator[Order]:
        for command in commands:
            self._orders += 1
            yield Order(f"{self._name}-{self._orders}", BOOK, command, ORIGIN, TIME_LEFT_MS)


async def core_table(folder: Path, share: float) -> Table:
    """Orders in batches of a hundred, and one by one."""
    table = Table("commits of", "authorise/s", "capture/s", "us each", "x", title="Core, SQLite")
    baseline: float | None = None
    for batch, count in ((1, int(2_000 * share)), (BATCH, int(20_000 * share))):
        async with core_on(folder / f"by-{batch}.sqlite", batch) as core:
            authorised, transactions = await core.authorise(count, batch)
            captured = await core.capture(transactions, batch)
        baseline = baseline or captured.per_second
        table.add_row(
            str(batch),
            f"{authorised.per_second:,.0f}",
            f"{captured.per_second:,.0f}",
            f"{authorised.cpu_us:.0f}, {captured.cpu_us:.0f}",
            f"{captured.per_second / baseline:.1f}",
        )
    return table


async def size_table(folder: Path, entries: int) -> Table:
    """What a book of so many entries costs: a shard that begins, a page of a list."""
    file = folder / "large.sqlite"
    async with core_on(file, GROWING_BATCH) as core:
        for _ in range(max(1, entries // GROWING)):
            await core.authorise(GROWING, GROWING_BATCH)
    begun = perf_counter()
    async with core_on(file, BATCH, is_new=False) as core:
        await core.authorise(1, 1)
        restart_s = perf_counter() - begun
        store = SqlReadStore(core.database)
        page_ms = []
        for _ in range(PAGES):
            asked = perf_counter()
            found = await store.page("transaction", BOOK, PageBounds(PAGE), ListFilter())
            page_ms.append((perf_counter() - asked) * 1e3)
            assert len(found) == PAGE, "there are enough"
    table = Table("entries", "restart ms", "page of 50, ms", "p99", title="A large book")
    ordered = sorted(page_ms)
    restart = f"{restart_s * 1e3:,.0f}"
    table.add_row(
        f"{entries:,}", restart, f"{ordered[PAGES // 2]:.2f}", f"{ordered[PAGES * 99 // 100]:.2f}"
    )
    return table


@asynccontextmanager
async def core_on(file: Path, batch_max: int, *, is_new: bool = True) -> AsyncIterator[Core]:
    """A shard on this file, with a book in it."""
    url = f"sqlite:///{file}"
    await upgrade(url)
    database = await open_database(url)
    store = SqlJournalStore(database)
    try:
        await store.take_over(SHARD, "the benchmark's")
        core = Core(database, store, batch_max)
        if is_new:
            await core.give([OPEN_SHOP], 1)
        yield core
        await store.close()
    finally:
        await database.close()


def _ended(error: BaseException) -> None:
    raise error
