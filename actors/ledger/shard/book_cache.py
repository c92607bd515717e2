"""The books in memory: heads and entities, fetched when an order needs them.

Both caches are bounded, in entries and in bytes, half of the budget each: what nobody asks for
makes room, and is fetched again when somebody does. What is stored of a thing as text takes twice
as much as values, as measured, and its place in a cache some more; what is larger than the budget
is fetched each time. They hold only what is durable. The shard is the only writer of its books, so
what it holds is what is stored, as long as its epoch is the newest.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.ledger.book.entities import Entity, known_of_row
from tollgate.actors.ledger.book.head import Head, head_of_row
from tollgate.actors.ledger.book.machine import needs
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.shard.batch import SpeculativeState
from tollgate.actors.ledger.shard.idempotency import idempotency_key
from tollgate.actors.ledger.storage.store import JournalStore

Value = TypeVar("Value", covariant=True)
PLACE_BYTES = 256
BYTES_PER_CHARACTER = 2


class _Kept(NamedTuple, Generic[Value]):
    """`size`: the length of what is stored of it."""

    value: Value
    size: int


def _weight(kept: _Kept[Any]) -> int:
    return PLACE_BYTES + BYTES_PER_CHARACTER * kept.size


class BookCache:
    """Loads what a batch needs into its speculative state, and keeps what is durable of it."""

    def __init__(
        self, store: JournalStore, books_max: int, entities_max: int, bytes_max: int
    ) -> None:
        half = bytes_max // 2
        self._store = store
        self._heads: LruCache[BookId, _Kept[Head]] = LruCache(books_max, half, _weight)
        self._entities: LruCache[EntityId, _Kept[Entity]] = LruCache(entities_max, half, _weight)

    @property
    def books(self) -> int:
        """Books whose heads are in memory."""
        return len(self._heads)

    @property
    def bytes(self) -> int:
        """The weight of heads and entities in memory."""
        return self._heads.weight + self._entities.weight

    async def load(self, orders: Sequence[Order], state: SpeculativeState) -> None:
        """Loads what deciding these orders takes: one query each for operations, heads and
        entities, as far as they are not here."""
        keys = {idempotency_key(order): None for order in orders if order.idempotency_key}
        operations = dict.fromkeys(order.operation for order in orders)
        state.remember(await self._store.operations(list(operations), list(keys)))
        new = [order for order in orders if state.earlier(order) is None]
        await self._load_heads({order.book for order in new}, state)
        await self.load_entities(new, state)

    async def _load_heads(self, books: set[BookId], state: SpeculativeState) -> None:
        state.inherit(books - state.heads.keys(), ())
        wanted = sorted(books - state.heads.keys())
        found = {book: self._heads.get(book) for book in wanted}
        if absent := [book for book, kept in found.items() if kept is None]:
            stored = await self._store.heads(absent)
            found.update(
                (book, _Kept(head_of_row(row), len(row.state))) for book, row in stored.items()
            )
        # (only now: what cannot be read is not known to be absent)
        state.heads.update((book, kept and kept.value) for book, kept in found.items())
        state.sizes.update((book, kept.size) for book, kept in found.items() if kept)

    async def load_entities(self, orders: Iterable[Order], state: SpeculativeState) -> None:
        """Loads what the commands need, and what they turn out to need once that is known."""
        known = state.entities
        while wanted := {each for order in orders for each in needs(order.command, known)}:
            state.inherit((), wanted)
            found = {each: self._entities.get(each) for each in sorted(wanted - known.keys())}
            if absent := [each for each, kept in found.items() if kept is None]:
                found.update(await self._stored(absent))
            known.update((each, kept and kept.value) for each, kept in found.items())
            state.sizes.update((each, kept.size) for each, kept in found.items() if kept)

    async def _stored(self, absent: Sequence[EntityId]) -> dict[EntityId, _Kept[Entity] | None]:
        found: dict[EntityId, _Kept[Entity] | None] = {}
        for each, row in (await self._store.entities(absent)).items():
            found[each] = _Kept(known_of_row(row), len(row.state))
        return found

    def apply(self, state: SpeculativeState) -> None:
        """The speculative state is durable now. What was only read is kept as well, if it is of the
        books at hand: of others this shard is not the writer."""
        for book, head in state.heads.items():
            if head is not None:
                self._heads.put(book, _Kept(head, state.sizes[book]))
        for each, entity in state.entities.items():
            if entity is None:
                self._entities.discard(each)
            elif entity.book in state.heads:
                self._entities.put(each, _Kept(entity, state.sizes[each]))
