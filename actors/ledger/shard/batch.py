"""A batch of orders, decided one after another against what the ones before would have done.

    speculative state = what was loaded (heads, entities, operations)
                        + what this batch made of it so far
                        + what the batch before made, whose commit may still be on its way

Deciding an order changes nothing but this state, which is thrown away when its commit fails, or
that of the batch before: so nothing is ever applied that is not durable (F2). Of an entity or a
head that several orders change, the last state is written once; entries and operations are written
all.

An order that was done before, by what is stored or by an order of these batches, is answered as
idempotency.py says (F4, F5).
"""

from collections.abc import Iterable

from tollgate.actors.ledger.book.entities import Entity, known_of_row
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.book.machine import execute, rows
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import Done, Refusal
from tollgate.actors.ledger.law.rows import (
    MEMBERSHIP,
    Commit,
    EntityRow,
    Entry,
    HeadRow,
    KeyRow,
    OperationRow,
)
from tollgate.actors.ledger.law.values import BookId, EntityId
from tollgate.actors.ledger.shard.idempotency import KnownOperations, replayed


class SpeculativeState:
    """The books as one batch sees them. `heads`, `entities`: None for what is known not to exist.
    `sizes`: of those that do exist, the length of what is stored of them.
    `before`: the state of the batch before, closed; None when all it made can be read elsewhere."""

    def __init__(self, before: "SpeculativeState | None" = None) -> None:
        self.before = before
        self.heads: dict[BookId, Head | None] = {}
        self.entities: dict[EntityId, Entity | None] = {}
        self.sizes: dict[str, int] = {}
        self._operations = KnownOperations()
        self._entries: list[Entry] = []
        self._new_operations: list[OperationRow] = []
        self._head_rows: dict[BookId, HeadRow] = {}
        self._entity_rows: dict[tuple[str, BookId, EntityId], EntityRow] = {}
        self._key_rows: dict[str, KeyRow] = {}

    def remember(self, operations: Iterable[OperationRow]) -> None:
        """Takes in the stored rows of earlier operations."""
        self._operations.remember(operations)

    def earlier(self, order: Order) -> Done | Refusal | None:
        """The answer to an order that was done before; None: it was not."""
        row = self._operations.find(order)
        if row is None and self.before is not None:
            row = self.before._operations.find(order)
        return None if row is None else replayed(row, order)

    def inherit(self, books: Iterable[BookId], entities: Iterable[EntityId]) -> None:
        """Takes what the batch before has of these: it holds now, and what is stored does not."""
        if self.before is None:
            return
        books, entities = tuple(books), tuple(entities)
        heads, made = self.before.heads, self.before.entities
        self.heads.update((book, heads[book]) for book in books if book in heads)
        self.entities.update((each, made[each]) for each in entities if each in made)
        sizes = self.before.sizes
        self.sizes.update((each, sizes[each]) for each in (*books, *entities) if each in sizes)

    def decide(self, order: Order, now_ms: int) -> Done | Refusal:
        """Decide an order that is new, whose head and entities are here; its effect stays here."""
        step = execute(self.heads[order.book], self.entities, order, now_ms)
        if isinstance(step, Refusal):
            return step
        written = rows(order, step)
        self._add(written)
        if step.entries:
            self.heads[order.book] = step.head
        self.entities.update(step.entities)
        self.sizes.update((head.book, len(head.state)) for head in written.heads)
        self.sizes.update(
            (row.id, len(row.state)) for row in written.entities if row.id in step.entities
        )
        self._take_ids(written.entities)
        return step.reply

    def _take_ids(self, written: Iterable[EntityRow]) -> None:
        """Ids that an order asked for, and nothing had, are those of its rows now."""
        for row in written:
            if row.id not in self.entities or self.entities[row.id] is not None:
                continue
            if not row.is_deleted and row.kind != MEMBERSHIP:
                self.entities[row.id] = known_of_row(row)
                self.sizes[row.id] = len(row.state)

    def _add(self, part: Commit) -> None:
        self._entries.extend(part.entries)
        self._new_operations.extend(part.operations)
        self.remember(part.operations)
        for head in part.heads:
            self._head_rows[head.book] = head
        for row in part.entities:
            self._entity_rows[row.kind, row.book, row.id] = row
        for key in part.keys:
            self._key_rows[key.digest] = key

    @property
    def has_effects(self) -> bool:
        """Every effect leaves an operation, even one that found everything as it should be."""
        return bool(self._new_operations)

    @property
    def commit(self) -> Commit:
        """All that the batch would write."""
        return Commit(
            entries=self._entries,
            entities=list(self._entity_rows.values()),
            keys=list(self._key_rows.values()),
            heads=list(self._head_rows.values()),
            operations=self._new_operations,
        )
