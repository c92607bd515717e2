"""An order before its book: all that a decision may look at."""

from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.actors.ledger.book.entities import Dispute, Entity, SavedCard, Webhook
from tollgate.actors.ledger.book.head import Head, Merchant
from tollgate.actors.ledger.law.events import Event
from tollgate.actors.ledger.law.ids import next_ids
from tollgate.actors.ledger.law.outcomes import Refusal
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import EntityId

Entities = Mapping[EntityId, Entity | None]
BookDecision = tuple[Event, ...] | Refusal
"""The events that are to happen, none when all is so already; or the reason why they must not."""


@dataclass(frozen=True, slots=True)
class Case:
    """`at_ms`: the time of the entry that the order would become. `now_ms`: the time that it is,
    by which is judged what ends by itself: a book that was once written to by a clock far ahead
    keeps its entries there, and goes on trading. `operation`: the order's, from which ids are
    drawn. `has_key`: the order carries an idempotency key of its sender."""

    head: Head
    merchant: Merchant
    entities: Entities
    at_ms: int
    now_ms: int
    operation: str
    has_key: bool

    def ids(self, count: int) -> list[EntityId]:
        """The next ids of the book; an event's own is the last it takes."""
        return next_ids(self.head.last_id, self.at_ms, self.operation, count)

    def transaction(self, transaction: EntityId) -> Transaction | None:
        """A transaction of this book."""
        found = self.entities.get(transaction)
        return found if isinstance(found, Transaction) and self._is_ours(found) else None

    def card(self, card: EntityId) -> SavedCard | None:
        """A saved card of this book."""
        found = self.entities.get(card)
        return found if isinstance(found, SavedCard) and self._is_ours(found) else None

    def dispute(self, dispute: EntityId) -> Dispute | None:
        """A dispute of this book."""
        found = self.entities.get(dispute)
        return found if isinstance(found, Dispute) and self._is_ours(found) else None

    def webhook(self, webhook: EntityId) -> Webhook | None:
        """A webhook of this book."""
        found = self.entities.get(webhook)
        return found if isinstance(found, Webhook) and self._is_ours(found) else None

    def _is_ours(self, entity: Entity) -> bool:
        return entity.book == self.head.book
