"""The entities that commands need, loaded on demand, and how their rows keep them.

A command may name what is not there: then the entity is None, which is known as well as any other.
What a row keeps is read by every later version: a field that is added needs a default.
"""

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder, Encoder

from tollgate.actors.ledger.law import events
from tollgate.actors.ledger.law.lots import Taking
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    Currency,
    EntityId,
    KeyMode,
    NetworkAction,
)


class AppKey(Struct, frozen=True):
    """A live key of an app, by its digest (part G). `expires_ms`: not set of one that does not;
    `mode`: not set of one for test and live merchants."""

    digest: str
    last4: str
    created_ms: int
    expires_ms: int | UnsetType = UNSET
    mode: KeyMode | UnsetType = UNSET

    def is_over(self, at_ms: int) -> bool:
        """True if the key has expired at that time."""
        return self.expires_ms is not UNSET and self.expires_ms <= at_ms


class App(Struct, frozen=True):
    """Of the directory. `keys`: one or two of each mode, the older ones first.
    `recovery`: the digest of the recovery code; not set of an app without one."""

    id: EntityId
    book: BookId
    name: str
    created_ms: int
    keys: tuple[AppKey, ...]
    recovery: str | UnsetType = UNSET


class SavedCard(Struct, frozen=True):
    """`failures`: attempts in a row that failed on it."""

    id: EntityId
    book: BookId
    is_test: bool
    created_ms: int
    transaction: EntityId
    summary: CardSummary
    notes: str
    failures: int = 0


class Dispute(Struct, frozen=True):
    """`amount` in the transaction's currency; `takings`: what goes back when it is won. `is_won`
    None while it is open (T10)."""

    id: EntityId
    book: BookId
    is_test: bool
    created_ms: int
    transaction: EntityId
    amount: int
    takings: tuple[Taking, ...]
    reason_code: int
    reason_title: str
    due_ms: int
    is_won: bool | None = None


class Webhook(Struct, frozen=True, omit_defaults=True):
    """`secret` as its sender sealed it. `types`: of the events that it gets; none: of all."""

    id: EntityId
    book: BookId
    is_test: bool
    created_ms: int
    url: str
    secret: str
    types: tuple[str, ...] = ()
    is_enabled: bool = True


def moved(move: events.Move) -> tuple[Currency, int]:
    """The amount of a move, in the transaction's currency."""
    about = move.sum if isinstance(move, events.Captured | events.Refunded) else move
    return about.currency, about.amount


class Intent(Struct, frozen=True):
    """A move that waits for a card network's answer: there until it is settled. Fields as those of
    `events.Intended`. Its id is the operation id that the network knows it by."""

    id: EntityId
    book: BookId
    is_test: bool
    created_ms: int
    network: str
    transaction: EntityId | None
    follows: str
    exponent: int
    then: events.Move
    has_key: bool

    @property
    def action(self) -> NetworkAction:
        return _ACTIONS[type(self.then)]

    @property
    def currency(self) -> Currency:
        return moved(self.then)[0]

    @property
    def amount(self) -> int:
        return moved(self.then)[1]

    @property
    def card_token(self) -> str:
        """Of an authorisation: how the network knows the card, if it does."""
        then = self.then
        return then.card.network_token if isinstance(then, events.TransactionCreated) else ""

    @property
    def descriptor(self) -> str:
        return "" if isinstance(self.then, events.Voided) else self.then.descriptor


_ACTIONS: dict[type[events.Move], NetworkAction] = {
    events.TransactionCreated: NetworkAction.AUTHORISE,
    events.Captured: NetworkAction.CAPTURE,
    events.Refunded: NetworkAction.REFUND,
    events.Voided: NetworkAction.VOID,
}


class TakenId(Struct, frozen=True):
    """An id whose row is only there to be read: a line's, an event's, a fraud's. No decision needs
    more of it than that it is taken."""

    id: EntityId
    book: BookId


class NetworkNotice(Struct, frozen=True):
    """A notice that was booked. `subject`: the dispute, fraud or settlement that came of it."""

    id: EntityId
    book: BookId
    is_test: bool
    network: str
    reference: str
    content: str
    subject: EntityId


class SettledDay(Struct, frozen=True):
    """The sum of what the network says it paid for a day, in a currency."""

    id: EntityId
    book: BookId
    is_test: bool
    settled: int


Entity = (
    App
    | Transaction
    | SavedCard
    | Dispute
    | Webhook
    | Intent
    | NetworkNotice
    | SettledDay
    | TakenId
)

KINDS: dict[type[Entity], str] = {
    App: "app",
    Transaction: "transaction",
    SavedCard: "card",
    Dispute: "dispute",
    Webhook: "webhook",
    NetworkNotice: "notice",
    SettledDay: "settled_day",
    Intent: "intent",
}
_encode = Encoder().encode
_decoders = {kind: Decoder(entity) for entity, kind in KINDS.items()}


def state_of(entity: Entity) -> str:
    """The text that a row keeps of an entity."""
    return _encode(entity).decode()


def entity_of_row(row: EntityRow) -> Entity | None:
    """The entity of a stored row; None for rows that are only there to be read."""
    decoder = _decoders.get(row.kind)
    return None if decoder is None else decoder.decode(row.state)


def known_of_row(row: EntityRow) -> Entity:
    """All that a decision may know of a stored row, which is no membership's."""
    return entity_of_row(row) or TakenId(row.id, row.book)
