"""A ledger shard: the single writer of many books, without Ray.

Theory of operation. Orders wait in a bounded mailbox; when it is full they are told so before
anything else happens (F11). One task takes them out, each book in its turn (fair_queue.py), and
decides them into the open batch; when the disk is free, the open batch is committed, and the next
one is opened. So batches grow with the load, deciding and writing go on side by side, and nothing
waits for a timer.

    take      orders that nobody waits for any more, or whose time is up, are dropped; it counts
              from their arrival, by this machine's monotonic clock: no two clocks need to agree
    load      earlier operations, heads, entities: what the caches do not have, one query each
    decide    one after another, against the state that the orders before would leave behind, those
              of the batch on its way to the disk included
    commit    ONE durable transaction at a time, which also checks the epoch (F1); a batch without
              an effect writes nothing, and the epoch is checked all the same: no refusal either
              comes from a stale writer's memory (C6)
    apply     to the caches
    answer    everybody, refusals included: they may rest on this batch's effects

What orders were told is remembered by their operation ids for a while. So a copy of one that was
refused or turned away, which comes late, is told the same instead of being done; and a copy of one
that was done is never told that it was not.

An order that breaks a rule of the books is refused for it, and no other order with it. Reading what
it needs and deciding it changes nothing until it is through, so whatever is raised there, foreseen
or not, is one order's own: ending the shard for it would end every next one, as clients ask again.
Storage that fails is nobody's own, and neither is memory that has run out. When the tables
refuse a commit for what is in it, nothing was written, and nobody knows whose fault it is: all that
was speculated is dropped, and its orders are decided again, each in a commit of its own.

When anything else on this way fails, all that was speculated is dropped and the shard has ended:
every waiter and every later order gets `Indefinite`, `on_end` is called once, and the process that
hosts the shard must go. The next incarnation reads what is durable. A waiter that was cancelled
leaves a future that nobody reads: the batch goes on.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.kernel.clock import Clock
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import (
    Done,
    Indefinite,
    OrderOutcome,
    Refusal,
    RefusalReason,
    TurnedAway,
)
from tollgate.actors.ledger.shard.batch import SpeculativeState
from tollgate.actors.ledger.shard.book_cache import BookCache
from tollgate.actors.ledger.shard.fair_queue import FairQueue
from tollgate.actors.ledger.shard.figures import REPEATED, ShardFigures, ShardTally, became
from tollgate.actors.ledger.storage.store import (
    BrokenCommit,
    Fenced,
    JournalStore,
    OutcomeUnknown,
    StorageDown,
)

LOG = logging.getLogger("tollgate.ledger")
NOT_OF_ONE_ORDER = (StorageDown, OutcomeUnknown, Fenced, MemoryError)
# By operation: why what an order needs cannot be read.
_Unread = dict[str, Exception]
RETRY_AFTER_S = 1
_DECIDED = Indefinite("it is being done, or was: ask again for its answer")


@dataclass(frozen=True, slots=True)
class ShardBounds:
    """The named ends of everything that grows. `cache_bytes_max`: of heads and entities together.
    `recent_outcomes_max`: operations whose outcome is remembered, so that a late copy hears the
    same."""

    mailbox_max: int = 4_096
    batch_max: int = 256
    books_max: int = 4_096
    entities_max: int = 65_536
    cache_bytes_max: int = 128 * 2**20
    recent_outcomes_max: int = 16_384


@dataclass(frozen=True, slots=True)
class _Waiter:
    """`until_s`: of monotonic time."""

    order: Order
    answer: asyncio.Future[OrderOutcome]
    until_s: float


@dataclass(slots=True)
class _Batch:
    """`answers`: of the waiters that were decided, in their order. `decided`: operations whose
    outcome is remembered, and forgotten when the commit is refused. `repeated`: those that were
    asked again."""

    state: SpeculativeState
    waiters: list[_Waiter] = field(default_factory=list)
    answers: list[OrderOutcome] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    repeated: set[str] = field(default_factory=set)


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
        self._mailbox: FairQueue[_Waiter] = FairQueue(bounds.mailbox_max)
        self._open = _Batch(SpeculativeState())
        self._committing: _Batch | None = None
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_writing = False
        # Orders that are to be decided in batches of their own, from the next one on.
        self._alone = 0
        self._refused_commit: BrokenCommit | None = None
        self._end: BaseException | None = None
        self._book_cache = BookCache(
            store, bounds.books_max, bounds.entities_max, bounds.cache_bytes_max
        )
        self._recent_outcomes: LruCache[str, OrderOutcome] = LruCache(bounds.recent_outcomes_max)
        self.figures = ShardFigures()
        self.tally = ShardTally()

    @property
    def depth(self) -> int:
        """Orders that wait to be decided."""
        return len(self._mailbox)

    @property
    def books(self) -> int:
        """Books whose heads are in memory."""
        return self._book_cache.books

    @property
    def cached_bytes(self) -> int:
        """The weight of heads and entities in memory."""
        return self._book_cache.bytes

    async def execute(self, orders: Sequence[Order]) -> list[OrderOutcome]:
        """The outcome of each order, in order, once that is durable."""
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

    def _admit(self, order: Order) -> _Waiter | OrderOutcome:
        self.figures.orders += 1
        if self._end is not None:
            return _indefinite(self._end)
        until_s = self._clock.monotonic_s() + order.time_left_ms / 1000
        waiter = _Waiter(order, asyncio.get_running_loop().create_future(), until_s)
        if not self._mailbox.put(order.book, waiter, is_test=order.is_test):
            self.figures.turned_away += 1
            return self._turned_away(order)
        self._wake.set()
        if not self._is_writing:
            self._is_writing = True
            self._start(self._write())
        return waiter

    def _turned_away(self, order: Order) -> OrderOutcome:
        told = self._recent_outcomes.get(order.operation)
        if told is None:
            told = TurnedAway(RETRY_AFTER_S)
            self._recent_outcomes.put(order.operation, told)
            self.tally.count(order, became(told))
        return told

    async def _write(self) -> None:
        while self._mailbox or self._open.waiters or self._committing is not None:
            self._wake.clear()
            taken = self._take()
            if taken:
                await self._decide(taken)
            if self._refused_commit is not None:
                self._begin_again(self._refused_commit)
            elif self._committing is None:
                self._close()
            elif not taken:
                await self._wake.wait()
        # Nothing is on its way any more: all that was made can be read.
        self._open = _Batch(SpeculativeState())
        self._is_writing = False

    def _take(self) -> list[_Waiter]:
        """The orders that fit into the open batch, each book in its turn."""
        now_s = self._clock.monotonic_s()
        taken: list[_Waiter] = []
        room = self._room()
        while self._mailbox and len(taken) < room:
            waiter = self._mailbox.pop()
            if waiter.answer.done():
                continue
            if waiter.until_s <= now_s:
                self.figures.expired += 1
                waiter.answer.set_result(self._turned_away(waiter.order))
                continue
            taken.append(waiter)
        return taken

    def _room(self) -> int:
        if self._alone:
            # One at a time, and nothing beside it.
            is_free = self._committing is None and not self._open.waiters
            self._alone -= is_free
            return int(is_free)
        return self._bounds.batch_max - len(self._open.waiters)

    async def _decide(self, waiters: list[_Waiter]) -> None:
        """Load what the orders need and decide them, into the open batch."""
        batch = self._open
        batch.waiters.extend(waiters)
        orders = [waiter.order for waiter in waiters]
        unread = await self._load(orders, batch.state)
        # (a day that was anchored stays as it is, though the clock was set back)
        now_ms = max(self._now_ms(), self._store.anchored_until_ms)
        for order in orders:
            batch.answers.append(await self._answer(order, batch, now_ms, unread))

    async def _load(self, orders: Sequence[Order], state: SpeculativeState) -> _Unread:
        """Load what the orders need, together, or else one by one; for whom it cannot be read."""
        try:
            await self._book_cache.load(orders, state)
        except NOT_OF_ONE_ORDER:
            raise
        except Exception as error:
            if len(orders) == 1:
                return {orders[0].operation: error}
            unread: _Unread = {}
            for order in orders:
                unread.update(await self._load([order], state))
            return unread
        return {}

    def _close(self) -> None:
        """Send the open batch to the disk, if there is anything in it, and open the next."""
        if not self._open.waiters:
            return
        batch = self._committing = self._open
        batch.state.before = None
        self._open = _Batch(SpeculativeState(before=batch.state))
        self._start(self._commit(batch))

    async def _commit(self, batch: _Batch) -> None:
        begun_s = self._clock.monotonic_s()
        try:
            if batch.state.has_effects:
                await self._store.append(batch.state.commit)
            else:
                await self._store.check_epoch()
        except BrokenCommit as error:
            self._refused_commit = error
            self._wake.set()
            return
        self._book_cache.apply(batch.state)
        self._count(batch, self._clock.monotonic_s() - begun_s)
        self._committing = None
        self._wake.set()
        _deliver(batch.waiters, batch.answers)

    def _count(self, batch: _Batch, seconds: float) -> None:
        self.figures.batches += 1
        told = (
            (waiter.order, REPEATED if waiter.order.operation in batch.repeated else became(answer))
            for waiter, answer in zip(batch.waiters, batch.answers, strict=True)
        )
        self.tally.committed(told, len(batch.waiters), seconds)

    async def _answer(
        self, order: Order, batch: _Batch, now_ms: int, unread: _Unread
    ) -> OrderOutcome:
        """To be told once the batch is durable."""
        state = batch.state
        if (earlier := state.earlier(order)) is not None:
            self.figures.replayed += 1
            if isinstance(earlier, Done) and not earlier.is_replay:
                batch.repeated.add(order.operation)
            return earlier
        if (told := self._recent_outcomes.get(order.operation)) is not None:
            batch.repeated.add(order.operation)
            return told
        try:
            if (error := unread.get(order.operation)) is not None:
                raise error
            # An order of this batch may have changed what this one needs.
            await self._book_cache.load_entities((order,), state)
            answer: OrderOutcome = state.decide(order, now_ms)
        except NOT_OF_ONE_ORDER:
            raise
        except Exception as error:
            # A writer that was replaced may see newer entities beside its older head.
            await self._store.check_epoch()
            answer = self._broken(order, error)
        batch.decided.append(order.operation)
        if isinstance(answer, Done):
            self.figures.effects += 1
            self._recent_outcomes.put(order.operation, _DECIDED)
        else:
            self.figures.refused += 1
            self._recent_outcomes.put(order.operation, answer)
        return answer

    def _broken(self, order: Order, error: Exception) -> Refusal:
        """An order that no shard may try again: it would end each of them."""
        self.figures.broken += 1
        LOG.critical(
            "operation %s of book %s breaks a rule of the books and was not done: %s: %r",
            order.operation,
            order.book,
            type(order.command).__name__,
            error,
            exc_info=error,
        )
        return Refusal(RefusalReason.BROKEN, "it breaks a rule of the books: nothing was done")

    def _begin_again(self, error: BrokenCommit) -> None:
        """After a commit that the tables refused: of one order, it is answered; of several, each is
        decided alone. Nothing of theirs was told to anybody."""
        batch, self._committing, self._refused_commit = self._committing, None, None
        assert batch is not None, "a commit was refused"
        for operation in (*batch.decided, *self._open.decided):
            self._recent_outcomes.discard(operation)
        dropped = [*batch.waiters, *self._open.waiters]
        if len(batch.waiters) == 1:
            guilty, *dropped = dropped
            answer = self._broken(guilty.order, error)
            self._recent_outcomes.put(guilty.order.operation, answer)
            _deliver([guilty], [answer])
        self._open = _Batch(SpeculativeState())
        self._mailbox.put_back(dropped)
        self._alone = max(self._alone, len(dropped))

    # The end

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._stopped)

    def _stopped(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        end = asyncio.CancelledError() if task.cancelled() else task.exception()
        if end is None or self._end is not None:
            return
        self._end = end
        for other in self._tasks:
            other.cancel()
        committing = [] if self._committing is None else self._committing.waiters
        waiters = [*committing, *self._open.waiters, *self._mailbox]
        self._mailbox = FairQueue(self._bounds.mailbox_max)
        _deliver(waiters, [_indefinite(end)] * len(waiters))
        self._on_end(end)

    def _now_ms(self) -> int:
        return int(self._clock.now_s() * 1000)


def _deliver(waiters: Sequence[_Waiter], answers: Sequence[OrderOutcome]) -> None:
    for waiter, answer in zip(waiters, answers, strict=True):
        if not waiter.answer.done():
            waiter.answer.set_result(answer)


def _indefinite(end: BaseException) -> Indefinite:
    return Indefinite(f"the ledger shard has ended before it could tell: {end!r}")
