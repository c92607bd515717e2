"""The changes that a book can be asked for. A command is decided against the book's state: it gives
events, or a refusal that changes nothing (T8). Reads are no commands.

`Order` wraps a command with what makes it happen exactly once (F4, F5): the operation id was minted
before the actor was called, so asking again with it finds what became of it the first time.
"""

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    Currency,
    EntityId,
    KeyMode,
    NetworkDecision,
    Notice,
    Origin,
    Pricing,
    ProcessingError,
    Rate,
    RateTable,
    Role,
)
from tollgate.actors.ledger.law.webhook_law import WebhookCommand


@dataclass(frozen=True, slots=True)
class CreateApp:
    """Into the directory. `key_digest` is HMAC-SHA-256 of the key (part G), `recovery_digest` that
    of the recovery code, or empty; never the key or the code. `salt`: kept with the reply, by
    which the sender makes the key again for a repetition; of all commands that bring a secret."""

    name: str
    key_digest: str
    key_last4: str
    recovery_digest: str = ""
    salt: str = ""
    expires_ms: int | None = None
    mode: KeyMode | None = None


@dataclass(frozen=True, slots=True)
class RotateKey:
    """Into the directory: a second live key; the older one of two of its mode goes (part D, Key
    rotation). `expires_ms` None: never; `mode` None: for test and live merchants."""

    app: EntityId
    key_digest: str
    key_last4: str
    salt: str = ""
    expires_ms: int | None = None
    mode: KeyMode | None = None


@dataclass(frozen=True, slots=True)
class RecoverApp:
    """Into the directory: a new key in place of all that there are (part D, Recovery).

    `presented`: the digest of the recovery code that was presented; the operator needs none.
    `recovery_digest`: of a new recovery code, or empty, when the one that there is stays.
    """

    app: EntityId
    presented: str
    key_digest: str
    key_last4: str
    recovery_digest: str = ""
    salt: str = ""


@dataclass(frozen=True, slots=True)
class ReplaceRecoveryCode:
    """Into the directory: another recovery code in place of the one that is presented, whose digest
    is `presented` (part D, Recovery). `key_digest`: of the key that asks."""

    app: EntityId
    presented: str
    key_digest: str
    recovery_digest: str
    salt: str = ""


@dataclass(frozen=True, slots=True)
class ReserveMerchant:
    """Into the directory: the id, and so the book, of a merchant that is about to be opened. Asking
    again with the same operation gives the same one; one that is never opened is no harm."""


@dataclass(frozen=True, slots=True)
class OpenMerchant:
    """The first command of a merchant's book. Optional texts are empty when absent. `exponent`: of
    the currency, stamped on the merchant (M9). `needs_approval`: a live merchant waits for the
    operator; a test merchant never does."""

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
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class ApproveMerchant:
    """By the operator. `version`: of what they have read; of another one nothing is approved.
    Approving one that waits no more succeeds and changes nothing."""

    version: str


@dataclass(frozen=True, slots=True)
class RejectMerchant:
    """By the operator: a live merchant waits no more, and does not trade. Rejecting one again
    changes nothing."""


@dataclass(frozen=True, slots=True)
class PriceMerchant:
    """By the operator: the fees of what comes later, in the funding currency."""

    rate_ppm: int
    flat: int
    dispute: int


@dataclass(frozen=True, slots=True)
class ChangeMerchant:
    """None leaves a field as it is. `needs_approval`: a live merchant that was approved stays as it
    is, for this change is not the operator's."""

    name: str | None = None
    email: str | None = None
    descriptor: str | None = None
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class AddApp:
    """Adding one that is there already succeeds and changes nothing, unless another role is asked
    for, which is refused. `role` None: an owner's, or that which it has."""

    app: EntityId
    name: str
    created_ms: int
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class RevokeApp:
    app: EntityId


@dataclass(frozen=True, slots=True)
class InviteUser:
    """`role`: as of `AddApp`."""

    email: str
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class ChangeRole:
    """Of a member: an app, or a user."""

    member: EntityId
    role: Role
    is_app: bool


@dataclass(frozen=True, slots=True)
class RevokeUser:
    user: EntityId


@dataclass(frozen=True, slots=True)
class Authorise:
    """A customer's original transaction, or a server's recurring one, as the card network decided.

    `error` None: approved. `custom`: canonical JSON text, or empty. `source`: the transaction or
    card a recurring one is made from, else None; `card` is then the source's. `exponent`: of the
    currency, stamped on the transaction (M9). `tds`: "", "attempt" or "full".
    """

    currency: Currency
    exponent: int
    amount: int
    card: CardSummary
    descriptor: str
    custom: str
    error: ProcessingError | None
    tds: str = ""
    source: EntityId | None = None
    is_source_card: bool = False


@dataclass(frozen=True, slots=True)
class Capture:
    """`rate` None when the transaction is in the funding currency; `flat_rate` likewise for the
    flat fee; both are kept with the entry. `table`: where `rate` was; None: never too old."""

    transaction: EntityId
    amount: int
    currency: Currency | None
    descriptor: str
    rate: Rate | None
    flat_rate: Rate | None
    table: RateTable | None = None


@dataclass(frozen=True, slots=True)
class Refund:
    transaction: EntityId
    amount: int
    descriptor: str


@dataclass(frozen=True, slots=True)
class Void:
    transaction: EntityId
    amount: int


@dataclass(frozen=True, slots=True)
class SaveCard:
    transaction: EntityId
    notes: str


@dataclass(frozen=True, slots=True)
class OpenDispute:
    """`dispute_rate`: for the dispute fee, None when it is in the funding currency. `notice`: of
    the network's file it comes from; told again, it changes nothing."""

    transaction: EntityId
    amount: int
    reason_code: int
    reason_title: str
    due_ms: int
    dispute_rate: Rate | None
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class DecideDispute:
    dispute: EntityId
    is_won: bool


@dataclass(frozen=True, slots=True)
class ReportFraud:
    """`notice`: as of `OpenDispute`."""

    transaction: EntityId
    reported_ms: int | None
    reason: int | None
    notice: Notice | None = None


@dataclass(frozen=True, slots=True)
class RecordSettlement:
    """By the operator: what the network says it paid for a day that is over, in UTC. `expected`:
    what the books say it owes for that day. Nothing is booked by it. `until_ms`: the day's end.
    `settled_day`: the id of its sum (notices.py)."""

    notice: Notice
    settled_day: EntityId
    day: str
    until_ms: int
    currency: Currency
    exponent: int
    amount: int
    expected: int


@dataclass(frozen=True, slots=True)
class PayOut:
    """`amount` in the funding currency; at most the balance."""

    amount: int
    description: str


@dataclass(frozen=True, slots=True)
class Import:
    """Of test data that already has its ids: a command whose entity gets the id `id` instead of a
    new one. By the operator alone (imports.py)."""

    command: CreateApp | Authorise | Capture | Refund | SaveCard | PayOut
    id: EntityId


Movement = Authorise | Capture | Refund | Void


@dataclass(frozen=True, slots=True)
class Intend:
    """To do this once the card network `network` has agreed: nothing moves before (part I)."""

    command: Movement
    network: str


@dataclass(frozen=True, slots=True)
class Conclude:
    """By the house: what the network has decided about an intent."""

    intent: EntityId
    decision: NetworkDecision


NetworkCommand = Intend | Conclude
MerchantCommand = (
    ApproveMerchant
    | RejectMerchant
    | PriceMerchant
    | ChangeMerchant
    | AddApp
    | RevokeApp
    | InviteUser
    | RevokeUser
    | ChangeRole
    | Movement
    | NetworkCommand
    | SaveCard
    | OpenDispute
    | DecideDispute
    | ReportFraud
    | RecordSettlement
    | PayOut
    | WebhookCommand
)
"""On a merchant's book that is open."""

DirectoryCommand = CreateApp | RotateKey | RecoverApp | ReplaceRecoveryCode | ReserveMerchant
Command = DirectoryCommand | OpenMerchant | MerchantCommand | Import


@dataclass(frozen=True, slots=True)
class Order:
    """A command on its way to its book.

    `operation`: unique per request, kept over re-sends. `idempotency_key`: the caller's, or empty;
    `fingerprint` then tells whether the request is the same one (method, path, body).
    `time_left_ms`: how long it is waited for, from when it is given; if it is not decided by then,
    it is dropped (F11). No time of day: the clocks of two machines differ. `is_checked`: the API
    saw that the book allowed it, so that a refusal means that another came first (C1). `is_test`:
    of a test merchant, or on the way to one; live ones have more turns (F11).
    """

    operation: str
    book: BookId
    command: Command
    origin: Origin
    time_left_ms: int
    idempotency_key: str = ""
    fingerprint: str = ""
    is_checked: bool = False
    is_test: bool = False
