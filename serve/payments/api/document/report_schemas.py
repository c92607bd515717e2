"""Replies of reports, books, webhooks and the operator's calls, as types of the API's document (see
reply_schemas.py)."""
# ruff: noqa: N815  (names are the wire's)

from typing import Annotated, Any, Literal

from pydantic import Field

from tollgate.serve.payments.api.bodies.wire_types import Amount, CurrencyCode, Id
from tollgate.serve.payments.api.document.reply_schemas import (
    Moment,
    NonNegative,
    ReplyBody,
    SignedAmount,
    Sum,
    only,
)


class DisputeReason(ReplyBody):
    code: int
    title: str


class Dispute(ReplyBody):
    """Once it is decided, one of `won` and `lost` is there."""

    id: Id
    merchantId: Id
    transactionId: Id
    created: Moment
    amount: Amount
    reason: DisputeReason
    due: Moment
    won: Literal[True] | None = None
    lost: Literal[True] | None = None


class Fraud(ReplyBody):
    id: Id
    merchantId: Id
    transactionId: Id
    created: Moment
    reported: Moment | None = None
    reason: Annotated[int, Field(ge=0, le=8)] | None = None


class Exchange(ReplyBody):
    """A conversion as it was booked: the exact result was `amount` + `remainder` /
    `denominator`. (`from` is the currency it came from.)"""

    from_: CurrencyCode = Field(alias="from")
    to: CurrencyCode
    numerator: int
    denominator: int
    dated: str
    amount: NonNegative
    remainder: int
    rounding: str


class Line(ReplyBody):
    """Exactly one of capture, refund, dispute and payout is there. `balance` and `fee` are in the
    funding currency, `amount` in the transaction's."""

    id: Id
    merchantId: Id
    test: bool
    created: Moment
    balance: SignedAmount
    fee: NonNegative
    amount: Sum
    transactionId: Id | None = None
    description: str | None = None
    capture: Literal[True] | None = None
    refund: Literal[True] | None = None
    dispute: Literal[True] | None = None
    payout: Literal[True] | None = None
    won: Literal[True] | None = None
    lost: Literal[True] | None = None
    exchange: Exchange | None = None


class Balance(ReplyBody):
    currency: CurrencyCode
    amount: SignedAmount
    at: Moment


class Event(ReplyBody):
    id: Id
    seq: Annotated[int, Field(ge=1)]
    type: Annotated[str, Field(examples=["transaction.captured"])]
    created: Moment
    data: dict[str, Any]


class AuditEntry(ReplyBody):
    """`appId` null: without credentials."""

    seq: Annotated[int, Field(ge=1)]
    created: Moment
    type: str
    appId: str | None
    keyLast4: str | None
    address: str | None
    requestId: str | None
    idempotencyKey: str | None
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Webhook(ReplyBody):
    id: Id
    url: str
    created: Moment


class WebhookWithSecret(Webhook):
    secret: str


class DeadLetter(ReplyBody):
    """`id`: the event's. `queued`: it is to be sent again."""

    id: Id
    failed: Moment
    reason: str
    queued: bool


class ReplayCreated(ReplyBody):
    queued: Annotated[int, Field(ge=0)]


class Imported(ReplyBody):
    apps: int
    merchants: int
    transactions: int
    lines: int
    cards: int


class AccountSum(ReplyBody):
    account: str
    currency: CurrencyCode
    amount: int


class TrialBalance(ReplyBody):
    accounts: list[AccountSum]
    balanced: bool


DisputeReply = only("DisputeReply", dispute=Dispute)
FraudReply = only("FraudReply", fraud=Fraud)
LineReply = only("LineReply", line=Line)
BalanceReply = only("BalanceReply", balance=Balance)
WebhookCreated = only("WebhookCreated", webhook=WebhookWithSecret)
ImportReply = only("ImportReply", imported=Imported)
TrialBalanceReply = only("TrialBalanceReply", trialBalance=TrialBalance)
