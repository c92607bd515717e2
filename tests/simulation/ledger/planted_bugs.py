"""Bugs that a ledger could have, planted into ours: the simulation must find every one of them.

Each replaces a piece of the real code for the time of a test.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

import pytest

from tests.support.ledger import memory_store
from tollgate.actors.kernel.bounded_cache import Key, LruCache, Value
from tollgate.actors.ledger.book import machine
from tollgate.actors.ledger.book.decisions import transactions as payments
from tollgate.actors.ledger.law import lots
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.money import Exchange
from tollgate.actors.ledger.law.outcomes import Done, Indefinite, OrderOutcome, Refusal, TurnedAway
from tollgate.actors.ledger.law.rows import Commit
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import BookId, EntityId, Pricing, Rate
from tollgate.actors.ledger.shard import client
from tollgate.actors.ledger.shard import pipeline as shard
from tollgate.actors.ledger.shard.batch import SpeculativeState
from tollgate.actors.ledger.shard.client import LedgerClient
from tollgate.actors.ledger.shard.pipeline import Shard, _Batch
from tollgate.actors.ledger.storage.store import OutcomeUnknown

Plant = Callable[[pytest.MonkeyPatch], None]


def no_epoch_check(patch: pytest.MonkeyPatch) -> None:
    """Whoever was a shard's owner once may write for ever."""

    async def check_epoch(self: memory_store.MemoryStore) -> None:
        return

    patch.setattr(memory_store.MemoryStore, "check_epoch", check_epoch)


def no_check_before_refusals(patch: pytest.MonkeyPatch) -> None:
    """A refusal writes nothing, so why ask the database?"""

    async def commit(self: Shard, batch: _Batch) -> None:
        if batch.state.has_effects:
            await self._store.append(batch.state.commit)
        _finish(self, batch)

    patch.setattr(Shard, "_commit", commit)


def told_before_durable(patch: pytest.MonkeyPatch) -> None:
    """The answer is known, the commit is on its way: tell them."""

    async def commit(self: Shard, batch: _Batch) -> None:
        shard._deliver(batch.waiters, batch.answers)
        await self._store.append(batch.state.commit)
        _finish(self, batch)

    patch.setattr(Shard, "_commit", commit)


def applied_before_durable(patch: pytest.MonkeyPatch) -> None:
    """The state is changed first, and a commit that failed is only reported."""

    async def commit(self: Shard, batch: _Batch) -> None:
        self._book_cache.apply(batch.state)
        try:
            await self._store.append(batch.state.commit)
        except OutcomeUnknown as error:
            batch.answers = [Indefinite(str(error))] * len(batch.answers)
        _finish(self, batch)

    patch.setattr(Shard, "_commit", commit)


def operations_written_apart(patch: pytest.MonkeyPatch) -> None:
    """What is needed for idempotency is written, but in a transaction of its own."""

    async def commit(self: Shard, batch: _Batch) -> None:
        written = batch.state.commit
        await self._store.append(replace(written, operations=[]))
        await self._store.append(Commit(operations=written.operations))
        _finish(self, batch)

    patch.setattr(Shard, "_commit", commit)


def _finish(self: Shard, batch: _Batch) -> None:
    self._book_cache.apply(batch.state)
    self._committing = None
    self._wake.set()
    shard._deliver(batch.waiters, batch.answers)


def batches_do_not_see_each_other(patch: pytest.MonkeyPatch) -> None:
    """What is on its way to the disk is not there yet, and so it does not count."""

    def inherit(
        self: SpeculativeState, books: Iterable[BookId], entities: Iterable[EntityId]
    ) -> None:
        return

    patch.setattr(SpeculativeState, "inherit", inherit)


def keys_on_their_way_are_unknown(patch: pytest.MonkeyPatch) -> None:
    """Keys are looked up in the database and in the batch, not in the batch before."""

    def close(self: Shard) -> None:
        _close(self)
        before = self._open.state.before
        if before is not None:
            before._operations, before._by_key = {}, {}

    _close = Shard._close
    patch.setattr(Shard, "_close", close)


def float_exchange(patch: pytest.MonkeyPatch) -> None:
    """Amounts are converted by floating point."""

    def convert(amount: int, rate: Rate) -> Exchange:
        return Exchange(round(amount * (rate.numerator / rate.denominator)), rate, 0)

    patch.setattr(payments, "convert", convert)


def refunds_ignore_disputes(patch: pytest.MonkeyPatch) -> None:
    """What was charged back may be refunded as well; what is left of the captures is no matter."""

    def take_from_lots(_: tuple[lots.Lot, ...], amount: int) -> tuple[lots.Taking, ...]:
        return (lots.Taking(0, amount, amount),)

    refundable = property(lambda self: self.captured - self.refunded)
    patch.setattr(Transaction, "refundable", refundable)
    patch.setattr(lots, "take_from_lots", take_from_lots)
    patch.setattr(machine, "check_invariants", lambda *_: None)


def fees_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """Every part of a capture pays for its own fraction."""

    def rate_fee(captured: int, pricing: Pricing) -> int:
        return -(-captured * pricing.rate_ppm // 1_000_000)

    patch.setattr(payments, "rate_fee", rate_fee)


def ids_from_the_clock(patch: pytest.MonkeyPatch) -> None:
    """An id is when it was made, as the clock has it, and some of that time's digits."""

    def next_ids(last: str, at_ms: int, operation: str, count: int) -> list[EntityId]:
        del operation
        start = at_ms % 1000 * 7919
        return [
            EntityId(f"{at_ms // 1000:08x}{last[8:18]}{start + number:06x}")
            for number in range(count)
        ]

    for module in ("case", "decisions.directory", "decisions.membership"):
        patch.setattr(f"tollgate.actors.ledger.book.{module}.next_ids", next_ids)
    patch.setattr(machine, "check_invariants", lambda *_: None)


def new_operation_when_asking_again(patch: pytest.MonkeyPatch) -> None:
    """The way to the shard numbers its own calls."""
    ask = LedgerClient._ask

    async def ask_anew(self: LedgerClient, lane: client._Lane, batch: list[client._Waiter]) -> None:
        for waiter in batch:
            if waiter.is_uncertain:
                operation = f"{waiter.order.operation} again"
                waiter.order = replace(waiter.order, operation=operation)
        await ask(self, lane, batch)

    patch.setattr(LedgerClient, "_ask", ask_anew)


def busy_after_a_lost_call(patch: pytest.MonkeyPatch) -> None:
    """The shard says that it is busy, so it is."""
    deliver = LedgerClient._deliver

    def deliver_all(
        self: LedgerClient,
        lane: client._Lane,
        batch: Sequence[client._Waiter],
        answers: Sequence[OrderOutcome],
    ) -> None:
        for waiter, answer in zip(batch, answers, strict=True):
            if isinstance(answer, TurnedAway) and answer is not client._NOT_SENT:
                waiter.is_uncertain = False
        deliver(self, lane, list(batch), list(answers))

    patch.setattr(LedgerClient, "_deliver", deliver_all)


def copies_of_the_undone_are_done(patch: pytest.MonkeyPatch) -> None:
    """What was told is forgotten."""

    def put(self: LruCache[Key, Value], key: Key, value: Value) -> None:
        if not isinstance(value, Refusal | TurnedAway | Indefinite):
            _put(self, key, value)

    _put = LruCache.put
    patch.setattr(LruCache, "put", put)


def keys_of_the_same_batch_are_unknown(patch: pytest.MonkeyPatch) -> None:
    """Keys are looked up in the database, where those of this batch are not yet."""

    def add(self: SpeculativeState, part: Commit) -> None:
        _add(self, replace(part, operations=[]))
        self._new_operations.extend(part.operations)

    _add = SpeculativeState._add
    patch.setattr(SpeculativeState, "_add", add)


def eviction_loses_updates(patch: pytest.MonkeyPatch) -> None:
    """A full cache keeps what it has."""

    def put(self: LruCache[Key, Value], key: Key, value: Value) -> None:
        if len(self._entries) < self._entries_max:
            self._entries.setdefault(key, value)

    patch.setattr(LruCache, "put", put)


def the_cancelled_disturb(patch: pytest.MonkeyPatch) -> None:
    """Answers are delivered to everybody, and the first who has gone ends it."""

    def deliver(waiters: Sequence[shard._Waiter], answers: Sequence[OrderOutcome]) -> None:
        for waiter, answer in zip(waiters, answers, strict=True):
            waiter.answer.set_result(answer)

    patch.setattr(shard, "_deliver", deliver)


def replays_are_made_anew(patch: pytest.MonkeyPatch) -> None:
    """The stored operation tells that it was done; what was answered then is not kept."""

    def earlier(self: SpeculativeState, order: Order) -> OrderOutcome | None:
        answer = _earlier(self, order)
        if isinstance(answer, Done) and answer.is_replay:
            return replace(answer, body=answer.body.replace(b'"', b' "', 1))
        return answer

    _earlier = SpeculativeState.earlier
    patch.setattr(SpeculativeState, "earlier", earlier)


def orders_of_a_batch_ignore_each_other(patch: pytest.MonkeyPatch) -> None:
    """Orders of a batch are decided against what was loaded, not against each other."""

    def decide(self: SpeculativeState, order: Order, now_ms: int) -> OrderOutcome:
        entities = dict(self.entities)
        answer = _decide(self, order, now_ms)
        self.entities = entities | {
            each: entity for each, entity in self.entities.items() if each not in entities
        }
        return answer

    _decide = SpeculativeState.decide
    patch.setattr(SpeculativeState, "decide", decide)


BUGS: Collection[Plant] = (
    no_epoch_check,
    no_check_before_refusals,
    told_before_durable,
    applied_before_durable,
    operations_written_apart,
    batches_do_not_see_each_other,
    keys_on_their_way_are_unknown,
    float_exchange,
    refunds_ignore_disputes,
    fees_rounded_up,
    ids_from_the_clock,
    new_operation_when_asking_again,
    busy_after_a_lost_call,
    copies_of_the_undone_are_done,
    keys_of_the_same_batch_are_unknown,
    eviction_loses_updates,
    the_cancelled_disturb,
    replays_are_made_anew,
    orders_of_a_batch_ignore_each_other,
)
