"""One incarnation of a shard: a process that can be slow, stop, go on, and die at every await.

A step is where a real process would wait for the disk or the network. At each one time passes, and
there the process may be paused for a while (SIGSTOP; its timers and sockets wait for it) or die:
then nothing it was about to do happens, and nobody hears from it again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.simulation.ledger.faults import NONE, Faults
from tests.support.ledger.memory_store import MemoryStore, MemoryTables
from tests.support.virtual_loop import VirtualLoop
from tollgate.actors.ledger.law.rows import Commit, EntityRow, HeadRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.shard.pipeline import Shard, ShardBounds
from tollgate.actors.ledger.storage.store import Fenced, OutcomeUnknown

EPOCH_S = 1_700_000_000
# Small, so that everything overflows; but what was refused is remembered as long as in earnest.
TIGHT = ShardBounds(mailbox_max=2, batch_max=3, books_max=1, entities_max=2)
WIDE = ShardBounds(mailbox_max=16, batch_max=8, books_max=8, entities_max=64)
STEP_S = 0.004
# Several reads fit into one commit.
COMMIT_S = 0.04
PAUSE_S = 3.0
FULL_S = 1.0
FAREWELL_S = 0.05


class JumpingClock:
    """The clock of one machine: the true time, and what is wrong with it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.error_s = 0.0

    def now_s(self) -> float:
        return EPOCH_S + self._loop.now_s + self.error_s

    def monotonic_s(self) -> float:
        return self._loop.now_s


class Disk:
    """What survives, and its log: (shard, epoch) of every commit, in order."""

    def __init__(self) -> None:
        self.tables = MemoryTables()
        self.log: list[tuple[str, int]] = []
        self.full_until_s = 0.0


@dataclass(frozen=True, slots=True)
class End:
    """Why a shard ended, and whether another incarnation had taken over by then."""

    error: BaseException
    was_replaced: bool


class Process:
    """`name`: the shard's. The world hears of its death by `is_alive`."""

    def __init__(
        self,
        name: str,
        number: int,
        disk: Disk,
        chance: Random,
        faults: Faults,
        bounds: ShardBounds,
    ) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.name = name
        self.number = number
        self.disk = disk
        self.chance = chance
        self.faults = faults
        self.bounds = bounds
        self.loop = loop
        self.clock = JumpingClock(loop)
        self.is_alive = True
        self.epoch = 0
        self.shard: Shard | None = None
        self.end: End | None = None
        self._paused_until_s = 0.0

    async def start(self) -> None:
        store = DiskStore(self)
        await self.step()
        self.epoch = await store.take_over(self.name, f"incarnation {self.number}")
        await self.step()
        self.shard = Shard(store, self.clock, self._ended, self.bounds)

    def _ended(self, error: BaseException) -> None:
        self.end = End(error, self.disk.tables.epochs[self.name] > self.epoch)
        self.loop.call_later(FAREWELL_S, self.die)

    def die(self) -> None:
        self.is_alive = False

    def storm(self, faults: Faults) -> None:
        self.faults = faults

    def heal(self) -> None:
        """From now on nothing goes wrong any more."""
        self.faults = NONE
        self.clock.error_s = 0.0
        self._paused_until_s = 0.0

    def pause(self) -> None:
        self._paused_until_s = self.loop.now_s + self.chance.random() * PAUSE_S

    async def step(self) -> None:
        """One await of this process. Never returns once it is dead."""
        await self.loop.rest(self.chance.random() * STEP_S)
        dice, faults = self.chance.random, self.faults
        if faults.pause and dice() < faults.pause:
            self.pause()
        if faults.clock_jump and dice() < faults.clock_jump:
            self.clock.error_s = self.chance.choice((0.0, 0.0, -3600.0, -2.0, 2.0, 60.0))
        await self.go_on()

    async def go_on(self) -> None:
        """The end of an await: does it come to that?"""
        if self.faults.crash and self.chance.random() < self.faults.crash:
            self.die()
        while self.is_alive and self._paused_until_s > self.loop.now_s:
            await self.loop.rest(self._paused_until_s - self.loop.now_s)
        if not self.is_alive:
            await never()


async def never() -> None:
    """What waits for a dead process waits for ever."""
    await asyncio.get_running_loop().create_future()


class DiskStore:
    """A process's way to the disk. Commits are all or nothing; whether, is not always told."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._store = MemoryStore(process.disk.tables)

    async def take_over(self, shard: str, incarnation: str) -> int:
        return await self._store.take_over(shard, incarnation)

    async def append(self, commit: Commit) -> None:
        process = self._process
        await process.step()
        self._refuse_when_full()
        dice, faults = process.chance.random, process.faults
        await process.loop.rest(dice() * COMMIT_S)
        await process.step()
        if dice() < faults.commit_late:
            # The connection breaks; the database may still commit what it was given, or not.
            loop = process.loop
            loop.call_later(dice() * PAUSE_S, lambda: loop.create_task(self._late(commit)))
            raise OutcomeUnknown("the connection broke")
        if dice() < faults.commit_unknown:
            # A failing fsync, a torn write: it is there after recovery, or it is not.
            if dice() < 0.5:
                await self._write(commit)
            raise OutcomeUnknown("input/output error")
        await self._write(commit)
        await process.go_on()

    def _refuse_when_full(self) -> None:
        process, disk = self._process, self._process.disk
        if process.chance.random() < process.faults.disk_full:
            disk.full_until_s = process.loop.now_s + process.chance.random() * FULL_S
        if process.loop.now_s < disk.full_until_s:
            raise OutcomeUnknown("no space left on device")

    async def _late(self, commit: Commit) -> None:
        try:
            await self._write(commit)
        except Fenced:
            return

    async def _write(self, commit: Commit) -> None:
        await self._store.append(commit)
        self._process.disk.log.append((self._process.name, self._process.epoch))

    @property
    def anchored_until_ms(self) -> int:
        return self._store.anchored_until_ms

    async def check_epoch(self) -> None:
        await self._process.step()
        await self._store.check_epoch()
        await self._process.go_on()

    async def heads(self, books: Sequence[BookId]) -> dict[BookId, HeadRow]:
        await self._process.step()
        found = await self._store.heads(books)
        await self._process.go_on()
        return found

    async def entities(self, ids: Sequence[EntityId]) -> dict[EntityId, EntityRow]:
        await self._process.step()
        found = await self._store.entities(ids)
        await self._process.go_on()
        return found

    async def operations(
        self, operations: Sequence[str], keys: Sequence[tuple[EntityId, BookId, str]]
    ) -> list[OperationRow]:
        await self._process.step()
        found = await self._store.operations(operations, keys)
        await self._process.go_on()
        return found
