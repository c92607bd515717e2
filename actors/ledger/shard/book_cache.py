"""The books in memory: heads and entities, fetched when an order needs them.

Both caches are bounded: a book that nobody asks for makes room, and is fetched again when somebody
does. They hold only what is durable. The shard is the only writer of its books, so what it holds is
what is stored, as long as its epoch is the newest.
"""

from collections.abc import Iterable, Sequence

from tollgate.actors.kernel.bounded_cache import LruCache
from tollgate.actors.ledger.book.entities import Entity, entity_of_row, head_of_row
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.book.machine import needs
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.shard.batch import SpeculativeState
from tollgate.actors.ledger.shard.idempotency import idempotency_key
from tollgate.actors.ledger.storage.store import JournalStore


class BookCache:
    """Loads what a batch needs into its speculative state, and keeps what is durable of it."""

    def __init__(self, store: JournalStore, books_max: int, entities_max: int) -> None:
        self._store = store
        self._heads: LruCache[BookId, Head] = LruCache(books_max)
        self._entities: LruCache[EntityId, Entity] = LruCache(entities_max)

    @property
    def books(self) -> int:
        """Books whose heads are in memory."""
        return len(self._heads)

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
        found = {book: self._heads.get(book) for book in sorted(books - state.heads.keys())}
        if absent := [book for book, head in found.items() if head is None]:
            stored = await self._store.heads(absent)
            found.update((book, head_of_row(row)) for book, row in stored.items())
        # (only now: what cannot be read is not known to be absent)
        state.heads.update(found)

    async def load_entities(self, orders: Iterable[Order], state: SpeculativeState) -> None:
        """Loads what the commands need, and what they turn out to need once that is known."""
        known = state.entities
        while wanted := {each for order in orders for each in needs(order.command, known)}:
            state.inherit((), wanted)
            found = {each: self._entities.get(each) for each in sorted(wanted - known.keys())}
            if absent := [each for each, entity in found.items() if entity is None]:
                stored = await self._store.entities(absent)
                found.update((each, entity_of_row(row)) for each, row in stored.items())
            known.update(found)

    def apply(self, state: SpeculativeState) -> None:
        """The speculative state is durable now. What was only read is kept as well, if it is of the
        books at hand: of others this shard is not the writer."""
        for book, head in state.heads.items():
            if head is not None:
                self._heads.put(book, head)
        for each, entity in state.entities.items():
            if entity is None:
                self._entities.discard(each)
            elif entity.book in state.heads:
                self._entities.put(each, entity)
