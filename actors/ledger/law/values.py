"""The words of the books. Amounts are integers in minor units; times are milliseconds of the epoch.

Ids are 24 lowercase hex digits: 8 of seconds, 16 of a number. The single writer of a book
allocates them, so within a book they rise in the order of commits (L4, F13; ids.py).
"""

from dataclasses import dataclass
from enum import Enum
from typing import NewType

from msgspec import UNSET, UnsetType

BookId = NewType("BookId", str)
"""A merchant's id, or DIRECTORY for the book that apps and keys live in."""
EntityId = NewType("EntityId", str)
IdempotencyKey = tuple[EntityId, BookId, str]
"""An app, a book, and the key that the app gave for it (C2)."""
Currency = NewType("Currency", str)

DIRECTORY = BookId("0" * 24)
NOBODY = EntityId("")
"""The app of an order without credentials: to create an app, or to pay by a public key."""
OPERATOR = EntityId("operator")
"""The app of an order of the house: operator, card network, sandbox. No app has such an id."""
AMOUNT_MAX = 2**53 - 1


class CardBrand(Enum):
    """Card schemes."""

    VISA = "visa"
    MASTERCARD = "mastercard"


class KeyMode(Enum):
    """The merchants that a key is for (T11)."""

    TEST = "test"
    LIVE = "live"


class Role(Enum):
    """What a member of a merchant may do (roles.py)."""

    OWNER = "owner"
    REFUNDS = "refunds"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class CardSummary:
    """The part of a card that may be kept (part G, PCI): never its number, never its security code.

    `expiry_ms`: the last millisecond of the expiry month, UTC. `network_token`: how the card
    network knows the card again for recurring payments; opaque, useless to anybody else.
    """

    bin: str
    last4: str
    expiry_ms: int
    scheme: CardBrand
    has_code: bool
    network_token: str = ""


@dataclass(frozen=True, slots=True)
class Price:
    """An amount in a currency. `exponent`: the currency's when the price was set; not set on
    prices that are older than these stamps (exponents.py)."""

    currency: Currency
    amount: int
    exponent: int | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Pricing:
    """A merchant's fees: `rate_ppm` of the captured amount in parts per million, plus `flat`."""

    rate_ppm: int
    flat: Price
    dispute: Price


@dataclass(frozen=True, slots=True)
class Rate:
    """An exchange rate: 1 minor unit of `source` is `numerator / denominator` minor units of
    `target`, whose exponents were these, as dated in the table it was read from. `provider`: who
    says so, as far as the table tells."""

    source: Currency
    target: Currency
    numerator: int
    denominator: int
    dated: str
    source_exponent: int | UnsetType = UNSET
    target_exponent: int | UnsetType = UNSET
    provider: str | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class RateTable:
    """The table that rates were looked up in: the name of its file, the day it is dated, and the
    time until which live merchants may exchange by it."""

    file: str
    dated: str
    until_ms: int


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice whether a server should try again after an error: not before so many hours, up to so
    many attempts. Both are 0 when that is pointless (part C)."""

    retry_after_hours: int
    attempts_max: int
    text: str


@dataclass(frozen=True, slots=True)
class ProcessingError:
    """The reason why an authorisation failed (part C). `is_client`, `is_merchant`: who may be at
    fault. `text`: what a customer may be told, if it is not the message."""

    code: int
    message: str
    is_client: bool
    is_merchant: bool
    text: str = ""
    advice: Advice | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A record of one of the card network's files, by the reference that it has there. `id`: the
    same for the same reference (notices.py). `content`: a digest of what it says, by which it is
    told from another one with its reference. `network`: whose file it was; may be empty."""

    id: EntityId
    network: str
    reference: str
    content: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The author of a change, for the audit (part D): the app, its key's last four characters."""

    app: EntityId
    key_last4: str
    address: str
    request_id: str


class NetworkAction(Enum):
    """The moves of money that a card network is asked for."""

    AUTHORISE = "authorise"
    CAPTURE = "capture"
    REFUND = "refund"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class NetworkMark:
    """The network that authorised a transaction, and its reference of that, which whatever follows
    names."""

    name: str
    reference: str


@dataclass(frozen=True, slots=True)
class NetworkApproved:
    """It was done. `card_token`, `tds`: of an authorisation."""

    reference: str
    card_token: str = ""
    tds: str = ""


@dataclass(frozen=True, slots=True)
class NetworkDeclined:
    """It was not done, and will not be."""

    error: ProcessingError


NetworkDecision = NetworkApproved | NetworkDeclined
