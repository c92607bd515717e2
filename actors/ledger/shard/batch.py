"""A batch of orders, decided one after another against what the ones before would have done.

    workspace = what was loaded (heads, entities, operations) + what this batch made of it so far
                + what the batch before made, whose commit may still be on its way

Deciding an order changes nothing but the workspace, which is thrown away when its commit fails, or
that of the batch before: so nothing is ever applied that is not durable (F2). Of an entity or a
head that several orders change, the last state is written once; entries and operations are written
all.

An order is the same one again when its operation id, or its app's idempotency key for this book,
was used before: by what is stored, or by an order of these batches (F4, F5). Then it is answered
like the first time, byte for byte; if it asks for something else, it is refused.
"""

from collections.abc import Iterable

from tollgate.actors.ledger.book.entities import Entity
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.book.machine import execute, rows
from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import Done, Refusal, RefusalReason
from tollgate.actors.ledger.law.rows import Commit, EntityRow, Entry, HeadRow, KeyRow, OperationRow
from tollgate.actors.ledger.law.values import BookId, EntityId

IdempotencyKey = tuple[EntityId, BookId, str]


class SpeculativeState:
    """What one batch works on. `heads`, `entities`: None for what is known not to exist. `before`:
    the workspace of the batch before, closed; None when all it made can be read elsewhere."""

    def __init__(self, before: "SpeculativeState | None" = None) -> None:
        self.before = before
        self.heads: dict[BookId, Head | None] = {}
        self.entities: dict[EntityId, Entity | None] = {}
        self._operations: dict[str, OperationRow] = {}
        self._by_key: dict[IdempotencyKey, OperationRow] = {}
        self._entries: list[Entry] = []
        self._new_operations: list[OperationRow] = []
        self._head_rows: dict[BookId, HeadRow] = {}
        self._entity_rows: dict[tuple[str, BookId, EntityId], EntityRow] = {}
        self._key_rows: dict[str, KeyRow] = {}

    def remember(self, operations: Iterable[OperationRow]) -> None:
        """What is stored of earlier operations."""
        for row in operations:
            self._operations[row.operation] = row
            if row.key:
                self._by_key[row.app, row.book, row.key] = row

    def earlier(self, order: Order) -> Done | Refusal | None:
        """The answer to an order that was done before; None: it was not.

        A replay is marked when another request did it: asking again with the operation id of one
        request is how that request's own answer is fetched.
        """
        row = self._row(order)
        if row is None and self.before is not None:
            row = self.before._row(order)
        if row is None:
            return None
        if (row.fingerprint, row.book) != (order.fingerprint, order.book):
            return Refusal(
                RefusalReason.KEY_REUSED,
                "the idempotency key was used for another request: take a new one for this one",
            )
        return Done(row.done, row.body, is_replay=row.operation != order.operation)

    def _row(self, order: Order) -> OperationRow | None:
        row = self._operations.get(order.operation)
        if row is None and order.idempotency_key:
            row = self._by_key.get(idempotency_key(order))
        return row

    def inherit(self, books: Iterable[BookId], entities: Iterable[EntityId]) -> None:
        """What the batch before has of these is what holds now, not what is stored."""
        if self.before is None:
            return
        heads, made = self.before.heads, self.before.entities
        self.heads.update((book, heads[book]) for book in books if book in heads)
        self.entities.update((each, made[each]) for each in entities if each in made)

    def decide(self, order: Order, now_ms: int) -> Done | Refusal:
        """Decide an order that is new, whose head and entities are here; its effect stays here."""
        step = execute(self.heads[order.book], self.entities, order, now_ms)
        if isinstance(step, Refusal):
            return step
        self._add(rows(order, step))
        if step.entries:
            self.heads[order.book] = step.head
        self.entities.update(step.entities)
        return step.reply

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


def idempotency_key(order: Order) -> IdempotencyKey:
    """The scope of an idempotency key is the app and the book (C2)."""
    return order.origin.app, order.book, order.idempotency_key
