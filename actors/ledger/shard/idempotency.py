"""Replays of orders that were done before (F4, F5).

An order is the same one again when its operation id, or its app's idempotency key for this book,
was used before: by what is stored, or by an order that is on its way to the disk. Then it is
answered like the first time, byte for byte; if it asks for something else, it is refused.
"""

from collections.abc import Iterable

from tollgate.actors.ledger.law.commands import Order
from tollgate.actors.ledger.law.outcomes import Done, Refusal, RefusalReason
from tollgate.actors.ledger.law.rows import OperationRow
from tollgate.actors.ledger.law.values import IdempotencyKey


def idempotency_key(order: Order) -> IdempotencyKey:
    """The scope of an idempotency key is the app and the book (C2)."""
    return order.origin.app, order.book, order.idempotency_key


class KnownOperations:
    """The outcomes of the operations that a batch has to know of."""

    def __init__(self) -> None:
        self._by_id: dict[str, OperationRow] = {}
        self._by_key: dict[IdempotencyKey, OperationRow] = {}

    def remember(self, operations: Iterable[OperationRow]) -> None:
        """Stored ones, and those that the batch makes."""
        for row in operations:
            self._by_id[row.operation] = row
            if row.key:
                self._by_key[row.app, row.book, row.key] = row

    def find(self, order: Order) -> OperationRow | None:
        """The earlier operation of an order; None when it is new."""
        row = self._by_id.get(order.operation)
        if row is None and order.idempotency_key:
            row = self._by_key.get(idempotency_key(order))
        return row


def replayed(row: OperationRow, order: Order) -> Done | Refusal:
    """The first answer again, if the order asks for the same.

    It is marked as a replay when another request did it: asking again with the operation id of one
    request is how that request's own answer is fetched.
    """
    if (row.fingerprint, row.book) != (order.fingerprint, order.book):
        return Refusal(
            RefusalReason.KEY_REUSED,
            "the idempotency key was used for another request: take a new one for this one",
        )
    return Done(row.done, row.body, is_replay=row.operation != order.operation)
