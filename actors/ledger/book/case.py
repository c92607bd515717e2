"""An order before its book: all that a decision may look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from tollgate.actors.ledger.book.entities import (
    Dispute,
    Entity,
    Intent,
    NetworkNotice,
    SavedCard,
    SettledDay,
    Webhook,
)
from tollgate.actors.ledger.book.head import Head, Merchant
from tollgate.actors.ledger.law.events import Event, SettledAmount
from tollgate.actors.ledger.law.exponents import posted_exponent
from tollgate.actors.ledger.law.ids import next_ids
from tollgate.actors.ledger.law.outcomes import Refusal
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import EntityId

E = TypeVar("E", Transaction, SavedCard, Dispute, Webhook, Intent, NetworkNotice, SettledDay)
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

    def settled(self, transaction: Transaction, amount: int, worth: int) -> SettledAmount:
        """An amount of a transaction, worth so much in this merchant's funding currency."""
        funding = self.merchant.currency
        return SettledAmount(
            currency=transaction.currency,
            amount=amount,
            funding=funding,
            worth=worth,
            exponent=posted_exponent(transaction.currency, transaction.exponent),
            funding_exponent=posted_exponent(funding, self.merchant.funding_exponent),
        )

    def ids(self, count: int) -> list[EntityId]:
        """The next ids of the book; an event's own is the last it takes."""
        return next_ids(self.head.last_id, self.at_ms, self.operation, count)

    def find(self, kind: type[E], entity: EntityId) -> E | None:
        """An entity of this kind and of this book."""
        found = self.entities.get(entity)
        return found if isinstance(found, kind) and found.book == self.head.book else None
