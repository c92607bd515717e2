"""A ledger shard: the single writer of many books, without Ray.

Theory of operation. Orders wait in a bounded mailbox; when it is full they are told so before
anything else happens (F11). One task empties it, batch by batch: while one batch is on its way to
the disk the next one gathers, so batches grow with the load and nothing waits for a timer.

    take <= N orders           those that nobody waits for any more, or whose deadline has passed,
                               are dropped undecided
    load                       earlier operations, heads, entities: what the caches do not have,
                               one query each
    decide, one after another  against the state that the orders before would leave behind
    append                     ONE durable transaction, which also checks the epoch (F1); a batch
                               without an effect writes nothing, and the epoch is checked all the
                               same: no refusal either comes from a stale writer's memory (C6)
    apply                      to the caches
    answer                     everybody, refusals included: they may rest on this batch's effects

What orders were told is remembered by their operation ids for a while. So a copy of one that was
refused or turned away, which comes late, is told the same instead of being done; and a copy of one
that was done is never told that it was not.

When anything on this way fails, what the batch has speculated is dropped and the shard has ended:
every waiter and every later order gets `Indefinite`, `on_end` is called once, and the process that
hosts the shard must go. The next incarnation reads what is durable. A waiter that was cancelled
leaves a future that nobody reads: the batch goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from actors.kernel.clock import Clock
from actors.ledger.answers import Answer, Busy, Indefinite, Refused
from actors.ledger.caching import LruCache
from actors.ledger.commands import Order
from actors.ledger.entities import Entity, entity_from, head_from
from actors.ledger.head import Head
from actors.ledger.machine import needs
from actors.ledger.speculation import Workspace, idempotency_key, missing
from actors.ledger.store import JournalStore
from actors.ledger.values import BookId, EntityId

RETRY_AFTER_S = 1
_DECIDED = Indefinite("it is being done, or was: ask again for its answer")


@dataclass(frozen=True, slots=True)
class ShardBounds:
    """The named ends of everything that grows. `told_max`: operations of which is remembered what
    they were told."""

    mailbox_max: int = 4_096
    batch_max: int = 256
    books_max: int = 4_096
    entities_max: int = 65_536
    told_max: int = 16_384


@dataclass(slots=True)
class Figures:
    """What a shard has done since it began."""

    orders: int = 0
    batches: int = 0
    effects: int = 0
    refused: int = 0
    replayed: int = 0
    expired: int = 0
    turned_away: int = 0


@dataclass(frozen=True, slots=True)
class _Waiter:
    order: Order
    answer: asyncio.Future[Answer]


class Shard:
    """Belongs to one event loop. `store` has taken the shard over already."""

    def __init__(
        self,
        store: JournalStore,
        clock: Clock,
        on_end: Callable[[BaseException], None],
        bounds: ShardBounds = ShardBounds(),
    ) -> None:
        self._store = store
        self._clock = clock
        self._on_end = on_end
        self._bounds = bounds
        self._mailbox: deque[_Waiter] = deque()
        self._batch: list[_Waiter] = []
        self._writing: asyncio.Task[None] | None = None
        self._end: BaseException | None = None
        self._heads: LruCache[BookId, Head] = LruCache(bounds.books_max)
        self._entities: LruCache[EntityId, Entity] = LruCache(bounds.entities_max)
        self._told: LruCache[str, Answer] = LruCache(bounds.told_max)
        self.figures = Figures()

    @property
    def depth(self) -> int:
        """Orders that wait."""
        return len(self._mailbox)

    @property
    def books(self) -> int:
        """Books whose heads are in memory."""
        return len(self._heads)

    async def execute(self, orders: Sequence[Order]) -> list[Answer]:
        """What becomes of each order, in order, once that is durable."""
        admitted = [self._admit(order) for order in orders]
        try:
            return [
                await place.answer if isinstance(place, _Waiter) else place for place in admitted
            ]
        finally:
            # Whoever is cancelled here waits for none of them any more.
            for place in admitted:
                if isinstance(place, _Waiter):
                    place.answer.cancel()

    def _admit(self, order: Order) -> _Waiter | Answer:
        self.figures.orders += 1
        if self._end is not None:
            return _indefinite(self._end)
        if len(self._mailbox) >= self._bounds.mailbox_max:
            self.figures.turned_away += 1
            return self._turned_away(order)
        loop = asyncio.get_running_loop()
        waiter = _Waiter(order, loop.create_future())
        self._mailbox.append(waiter)
        if self._writing is None:
            self._writing = loop.create_task(self._write())
            self._writing.add_done_callback(self._written)
        return waiter

    async def _write(self) -> None:
        while self._take():
            answers = await self._settle([waiter.order for waiter in self._batch])
            _deliver(self._batch, answers)
            self._batch = []
        # Here and not in the callback, which runs later: an order may come in between.
        self._writing = None

    def _written(self, writing: asyncio.Task[None]) -> None:
        end = asyncio.CancelledError() if writing.cancelled() else writing.exception()
        if end is None:
            return
        self._end = end
        waiters = [*self._batch, *self._mailbox]
        self._batch, self._mailbox = [], deque()
        _deliver(waiters, [_indefinite(end)] * len(waiters))
        self._on_end(end)

    def _take(self) -> bool:
        """The next batch from the mailbox; False when there is none."""
        now_ms = self._now_ms()
        while self._mailbox and len(self._batch) < self._bounds.batch_max:
            waiter = self._mailbox.popleft()
            if waiter.answer.done():
                continue
            if waiter.order.deadline_ms <= now_ms:
                self.figures.expired += 1
                waiter.answer.set_result(self._turned_away(waiter.order))
                continue
            self._batch.append(waiter)
        return bool(self._batch)

    async def _settle(self, orders: list[Order]) -> list[Answer]:
        """Load, decide, append, apply: the answers, all of them final."""
        workspace = Workspace()
        await self._load(orders, workspace)
        now_ms = self._now_ms()
        try:
            answers = [await self._decide(order, workspace, now_ms) for order in orders]
        except (AssertionError, LookupError):
            # A writer that was replaced may see newer entities beside its older head.
            await self._store.check_epoch()
            raise
        if workspace.has_effects:
            await self._store.append(workspace.commit)
        else:
            await self._store.check_epoch()
        self._apply(workspace)
        self.figures.batches += 1
        return answers

    async def _load(self, orders: Sequence[Order], workspace: Workspace) -> None:
        keys = {idempotency_key(order): None for order in orders if order.idempotency_key}
        operations = dict.fromkeys(order.operation for order in orders)
        workspace.remember(await self._store.operations(list(operations), list(keys)))
        new = [order for order in orders if workspace.earlier(order) is None]
        await self._load_heads(dict.fromkeys(order.book for order in new), workspace)
        await self._load_entities(new, workspace)

    async def _load_heads(self, books: Iterable[BookId], workspace: Workspace) -> None:
        absent = []
        for book in books:
            if (head := self._heads.get(book)) is None:
                absent.append(book)
            workspace.heads[book] = head
        if absent:
            stored = await self._store.heads(absent)
            workspace.heads.update((book, head_from(row)) for book, row in stored.items())

    async def _load_entities(self, orders: Sequence[Order], workspace: Workspace) -> None:
        """What the commands need, and what they turn out to need once that is known."""
        while wanted := missing(
            {each for order in orders for each in needs(order.command, workspace.entities)},
            workspace,
        ):
            absent = []
            for each in wanted:
                if (entity := self._entities.get(each)) is None:
                    absent.append(each)
                workspace.entities[each] = entity
            if absent:
                stored = await self._store.entities(absent)
                workspace.entities.update((each, entity_from(stored[each])) for each in stored)

    async def _decide(self, order: Order, workspace: Workspace, now_ms: int) -> Answer:
        if (earlier := workspace.earlier(order)) is not None:
            self.figures.replayed += 1
            return earlier
        if (told := self._told.get(order.operation)) is not None:
            return told
        # An order of this batch may have changed what this one needs.
        await self._load_entities([order], workspace)
        answer = workspace.decide(order, now_ms)
        if isinstance(answer, Refused):
            self.figures.refused += 1
            self._told.put(order.operation, answer)
        else:
            self.figures.effects += 1
            self._told.put(order.operation, _DECIDED)
        return answer

    def _apply(self, workspace: Workspace) -> None:
        """The state is durable now. What was only read is kept as well, if it is of these books:
        of others this shard is not the writer."""
        for book, head in workspace.heads.items():
            if head is not None:
                self._heads.put(book, head)
        for each, entity in workspace.entities.items():
            if entity is None:
                self._entities.discard(each)
            elif entity.book in workspace.heads:
                self._entities.put(each, entity)

    def _turned_away(self, order: Order) -> Answer:
        told = self._told.get(order.operation)
        if told is None:
            told = Busy(RETRY_AFTER_S)
            self._told.put(order.operation, told)
        return told

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)


def _deliver(waiters: Sequence[_Waiter], answers: Sequence[Answer]) -> None:
    for waiter, answer in zip(waiters, answers, strict=True):
        if not waiter.answer.done():
            waiter.answer.set_result(answer)


def _indefinite(end: BaseException) -> Indefinite:
    return Indefinite(f"the ledger shard has ended before it could tell: {end!r}")
