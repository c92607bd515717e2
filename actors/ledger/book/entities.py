"""The entities that commands need, loaded on demand, and how their rows keep them.

A command may name what is not there: then the entity is None, which is known as well as any other.
What a row keeps is read by every later version: a field that is added needs a default.
"""

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Decoder, Encoder

from tollgate.actors.ledger.law.lots import Taking
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import BookId, CardSummary, EntityId, KeyMode


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


Entity = App | Transaction | SavedCard | Dispute | Webhook | NetworkNotice | SettledDay | TakenId

KINDS: dict[type[Entity], str] = {
    App: "app",
    Transaction: "transaction",
    SavedCard: "card",
    Dispute: "dispute",
    Webhook: "webhook",
    NetworkNotice: "notice",
    SettledDay: "settled_day",
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
