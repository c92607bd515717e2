"""The events of a book: a closed set of what has happened, kept for ever.

An event holds everything that its consequences follow from: ids, amounts, conversions and fees are
decided once and never computed again. Its tag, `<type>/<schema version>`, is stored with it; a
schema that changes gets the next version and a new class, while the class of the old version stays
and is translated when it is read (F12), so that every journal can be replayed for ever. A field
that is added with UNSET for its default is no change of a schema: entries before it are without it,
and nothing is written where it is not set.

`id` is the event's own id, the last one that its entry allocated. Amounts are in minor units and
not negative: what they do to the accounts is the law of accounts.py. Events are frozen Structs:
slotted values with a codec. Their JSON, fields in this order, is what is stored and hashed.
"""

from typing import get_args

from msgspec import UNSET, Struct, UnsetType

from tollgate.actors.ledger.law.lots import Taking
from tollgate.actors.ledger.law.money import Exchange, Fee
from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    Currency,
    EntityId,
    KeyMode,
    NetworkMark,
    Notice,
    Pricing,
    ProcessingError,
    Role,
)
from tollgate.actors.ledger.law.webhook_law import Happening, WebhookEvent


class SettledAmount(Struct, frozen=True):
    """An amount of a transaction, and what it is worth in the merchant's funding currency. The
    exponents: of both, where they are not the first ones (M9)."""

    currency: Currency
    amount: int
    funding: Currency
    worth: int
    exponent: int | UnsetType = UNSET
    funding_exponent: int | UnsetType = UNSET


class AppCreated(Happening, frozen=True, tag="app.created/1"):
    """`recovery_digest`: not set of an app without a recovery code. `expires_ms`, `mode`: not set
    of a key that does not expire, and of one for test and live merchants; here and in rotations."""

    app: EntityId
    name: str
    key_digest: str
    key_last4: str
    recovery_digest: str | UnsetType = UNSET
    expires_ms: int | UnsetType = UNSET
    mode: KeyMode | UnsetType = UNSET


class KeyRotated(Happening, frozen=True, tag="app.key_rotated/1"):
    app: EntityId
    key_digest: str
    key_last4: str
    expires_ms: int | UnsetType = UNSET
    mode: KeyMode | UnsetType = UNSET


class AppRecovered(Happening, frozen=True, tag="app.recovered/1"):
    """The key is the app's only one from now on. `recovery_digest`: not set when the recovery code
    is the one before."""

    app: EntityId
    key_digest: str
    key_last4: str
    recovery_digest: str | UnsetType = UNSET


class RecoveryCodeReplaced(Happening, frozen=True, tag="app.recovery_code_replaced/1"):
    """The recovery code before opens nothing any more."""

    app: EntityId
    recovery_digest: str


class MerchantReserved(Happening, frozen=True, tag="merchant.reserved/1"):
    merchant: BookId


class MerchantOpened(Happening, frozen=True, tag="merchant.opened/1"):
    """`is_pending`: set, and true, of a merchant that waits for the operator's approval."""

    public_key: str
    name: str
    currency: Currency
    is_test: bool
    email: str
    website: str
    descriptor: str
    company_country: str
    company_number: str
    iban: str
    pricing: Pricing
    creator: EntityId
    creator_name: str
    creator_created_ms: int
    exponent: int | UnsetType = UNSET
    is_pending: bool | UnsetType = UNSET


class MerchantApproved(Happening, frozen=True, tag="merchant.approved/1"):
    """By the operator: it waits no more. `version`: of what was approved; entries of before there
    were versions have none."""

    version: str | UnsetType = UNSET


class MerchantRejected(Happening, frozen=True, tag="merchant.rejected/1"):
    """By the operator: it waits no more, and does not trade."""


class MerchantPriced(Happening, frozen=True, tag="merchant.priced/1"):
    """By the operator: the fees from now on."""

    pricing: Pricing


class MerchantChanged(Happening, frozen=True, tag="merchant.changed/1"):
    """Only what changed is not None."""

    name: str | None
    email: str | None
    descriptor: str | None


class AppAdded(Happening, frozen=True, tag="app.added/1"):
    """`role`: not set of an owner, here and of users."""

    app: EntityId
    name: str
    created_ms: int
    role: Role | UnsetType = UNSET


class AppRevoked(Happening, frozen=True, tag="app.revoked/1"):
    app: EntityId


class AppRoleChanged(Happening, frozen=True, tag="app.role_changed/1"):
    app: EntityId
    role: Role


class UserInvited(Happening, frozen=True, tag="user.invited/1"):
    user: EntityId
    email: str
    role: Role | UnsetType = UNSET


class UserRoleChanged(Happening, frozen=True, tag="user.role_changed/1"):
    user: EntityId
    role: Role


class UserRevoked(Happening, frozen=True, tag="user.revoked/1"):
    user: EntityId


class TransactionCreated(Happening, frozen=True, tag="transaction.created/1"):
    """`error` None: it was authorised. `failures`: how many attempts in a row on the same source
    have failed, this one included. `network`: not set where nobody outside was asked. `intent`: the
    one that this settles."""

    transaction: EntityId
    currency: Currency
    exponent: int
    amount: int
    card: CardSummary
    descriptor: str
    custom: str
    error: ProcessingError | None
    tds: str
    source: EntityId | None
    failures: int
    network: NetworkMark | UnsetType = UNSET
    intent: EntityId | UnsetType = UNSET


class Captured(Happening, frozen=True, tag="transaction.captured/1"):
    """`exchange`, `flat_exchange`: how the amount and the flat fee were converted, if at all.
    `intent`, `reference`: of a move that a network has made."""

    transaction: EntityId
    line: EntityId
    sum: SettledAmount
    fee: Fee
    descriptor: str
    exchange: Exchange | None
    flat_exchange: Exchange | None
    intent: EntityId | UnsetType = UNSET
    reference: str | UnsetType = UNSET


class Refunded(Happening, frozen=True, tag="transaction.refunded/1"):
    transaction: EntityId
    line: EntityId
    sum: SettledAmount
    takings: tuple[Taking, ...]
    descriptor: str
    intent: EntityId | UnsetType = UNSET
    reference: str | UnsetType = UNSET


class Voided(Happening, frozen=True, tag="transaction.voided/1"):
    transaction: EntityId
    currency: Currency
    amount: int
    intent: EntityId | UnsetType = UNSET
    reference: str | UnsetType = UNSET


Move = TransactionCreated | Captured | Refunded | Voided
"""The events that a card network may have to agree to first."""


class Intended(Happening, frozen=True, tag="network.intended/1"):
    """Before a network is asked (I1). `then`: what happens if it agrees, with ids of its own then.
    `transaction`: None of an authorisation. `follows`: the network's reference of that one.
    `has_key`: whoever ordered it can ask for its outcome."""

    intent: EntityId
    network: str
    transaction: EntityId | None
    follows: str
    exponent: int
    then: Move
    has_key: bool


class NetworkRefused(Happening, frozen=True, tag="network.refused/1"):
    """The network has not done what was intended with a transaction, and will not."""

    intent: EntityId
    transaction: EntityId
    error: ProcessingError


class DuplicateSuspected(Happening, frozen=True, tag="transaction.possible_duplicate/1"):
    """The captures of these two lines are equal and within a minute of each other (C3)."""

    transaction: EntityId
    line: EntityId
    earlier_line: EntityId
    currency: Currency
    amount: int


class CardSaved(Happening, frozen=True, tag="card.saved/1"):
    card: EntityId
    transaction: EntityId
    summary: CardSummary
    notes: str


class DisputeOpened(Happening, frozen=True, tag="dispute.opened/1"):
    """`fee_exchange`: how the dispute fee was converted, if it was. `notice`: not set unless it
    came in a file of the network."""

    dispute: EntityId
    transaction: EntityId
    line: EntityId
    sum: SettledAmount
    takings: tuple[Taking, ...]
    fee: Fee
    fee_exchange: Exchange | None
    reason_code: int
    reason_title: str
    due_ms: int
    notice: Notice | UnsetType = UNSET


class DisputeWon(Happening, frozen=True, tag="dispute.won/1"):
    dispute: EntityId
    transaction: EntityId
    line: EntityId
    sum: SettledAmount


class DisputeLost(Happening, frozen=True, tag="dispute.lost/1"):
    """Its line says so and books nothing: opening did (T10)."""

    dispute: EntityId
    transaction: EntityId
    line: EntityId
    sum: SettledAmount


class FraudReported(Happening, frozen=True, tag="fraud.reported/1"):
    """`notice`: as of a dispute."""

    fraud: EntityId
    transaction: EntityId
    reported_ms: int | None
    reason: int | None
    notice: Notice | UnsetType = UNSET


class SettlementReported(Happening, frozen=True, tag="settlement.reported/1"):
    """The network says that it paid `amount` for the day. `settled`: with all that it said before
    of this day and currency; `expected`: what the books say it owes for it."""

    settlement: EntityId
    notice: Notice
    settled_day: EntityId
    day: str
    currency: Currency
    amount: int
    settled: int
    expected: int
    exponent: int | UnsetType = UNSET


class PaidOut(Happening, frozen=True, tag="merchant.paid_out/1"):
    line: EntityId
    currency: Currency
    amount: int
    description: str
    exponent: int | UnsetType = UNSET


Booked = Captured | Refunded | DisputeOpened | DisputeWon | DisputeLost | PaidOut
"""The events that have a line (M1)."""

OfNoMerchant = AppCreated | KeyRotated | AppRecovered | RecoveryCodeReplaced | MerchantReserved
"""The events of the directory, which are in no merchant's list."""

Event = (
    AppCreated
    | KeyRotated
    | AppRecovered
    | RecoveryCodeReplaced
    | MerchantReserved
    | MerchantOpened
    | MerchantApproved
    | MerchantRejected
    | MerchantPriced
    | MerchantChanged
    | AppAdded
    | AppRevoked
    | AppRoleChanged
    | UserInvited
    | UserRoleChanged
    | UserRevoked
    | WebhookEvent
    | TransactionCreated
    | Voided
    | Intended
    | NetworkRefused
    | DuplicateSuspected
    | CardSaved
    | FraudReported
    | SettlementReported
    | Booked
)


def event_types(kinds: object) -> frozenset[str]:
    """The types of these kinds of events, without their schema versions."""
    return frozenset(str(k.__struct_config__.tag).partition("/")[0] for k in get_args(kinds))


MERCHANT_EVENT_TYPES = event_types(Event) - event_types(OfNoMerchant)
