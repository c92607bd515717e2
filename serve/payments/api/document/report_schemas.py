"""More types of the API's document: reports, books, webhooks, the sandbox (see schemas.py)."""
# ruff: noqa: N815  (names are the wire's)

from typing import Annotated, Any, Literal

from pydantic import Field

from tollgate.serve.payments.api.document.schemas import (
    Amount,
    CurrencyCode,
    Custom,
    Document,
    Id,
    Moment,
    Request,
    Signed,
    Sum,
    Text,
    Total,
)


class DisputeReason(Document):
    code: int
    title: str


class Dispute(Document):
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


class DisputeReply(Document):
    dispute: Dispute


class Fraud(Document):
    id: Id
    merchantId: Id
    transactionId: Id
    created: Moment
    reported: Moment | None = None
    reason: Annotated[int, Field(ge=0, le=8)] | None = None


class FraudReply(Document):
    fraud: Fraud


class Exchange(Document):
    """A conversion as it was booked: the exact result was `amount` + `remainder` /
    `denominator`. (`from` is the currency it came from.)"""

    from_: CurrencyCode = Field(alias="from")
    to: CurrencyCode
    numerator: int
    denominator: int
    dated: str
    amount: Total
    remainder: int
    rounding: str


class Line(Document):
    """Exactly one of capture, refund, dispute and payout is there. `balance` and `fee` are in the
    funding currency, `amount` in the transaction's."""

    id: Id
    merchantId: Id
    test: bool
    created: Moment
    balance: Signed
    fee: Total
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


class LineReply(Document):
    line: Line


class Balance(Document):
    currency: CurrencyCode
    amount: Signed
    at: Moment


class BalanceReply(Document):
    balance: Balance


class Event(Document):
    id: Id
    seq: Annotated[int, Field(ge=1)]
    type: Annotated[str, Field(examples=["transaction.captured"])]
    created: Moment
    data: dict[str, Any]


class AuditEntry(Document):
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


class WebhookCreate(Request):
    url: Annotated[str, Field(max_length=2_048, examples=["https://example.com/hook"])]


class Webhook(Document):
    id: Id
    url: str
    created: Moment


class WebhookWithSecret(Document):
    id: Id
    url: str
    created: Moment
    secret: str


class WebhookCreated(Document):
    webhook: WebhookWithSecret


class DeadLetter(Document):
    """`id`: the event's. `queued`: it is to be sent again."""

    id: Id
    failed: Moment
    reason: str
    queued: bool


class ReplayCreate(Request):
    events: Annotated[list[Id], Field(min_length=1, max_length=1_000)] | None = None


class ReplayCreated(Document):
    queued: Annotated[int, Field(ge=0)]


class CardExpiry(Request):
    month: Annotated[int, Field(ge=1, le=12, examples=[8])]
    year: Annotated[int, Field(ge=2000, le=2099, examples=[2066])]


class PlainCard(Request):
    number: Annotated[str, Field(examples=["4100000000000000"])]
    expiry: CardExpiry
    code: Annotated[str, Field(pattern="^[0-9]{3,4}$", examples=["123"])]


class SandboxPayment(Request):
    """`test`: how the simulated card and its bank behave; everything left out is good."""

    key: Annotated[str, Field(description="the merchant's public key")]
    amount: Amount
    currency: CurrencyCode
    card: PlainCard
    custom: Custom | None = None
    test: dict[str, Any] | None = None


class DisputeReasonCreate(Request):
    code: Annotated[int, Field(ge=0, le=9_999)] = 0
    title: Text = ""


class SandboxDispute(Request):
    transactionId: Id
    amount: Amount
    reason: DisputeReasonCreate | None = None


class SandboxFraud(Request):
    transactionId: Id
    reason: Annotated[int, Field(ge=0, le=8)] | None = None


class PayoutCreate(Request):
    merchantId: Id
    amount: Amount
    description: Text = ""


class ImportCreate(Request):
    file: Annotated[str, Field(description="The text of the file, YAML or JSON.")]
    name: Annotated[str, Field(description="What refusals call the file.")] = ""


class Imported(Document):
    apps: int
    merchants: int
    transactions: int
    lines: int
    cards: int


class ImportReply(Document):
    imported: Imported


class AccountSum(Document):
    account: str
    currency: CurrencyCode
    amount: int


class TrialBalance(Document):
    accounts: list[AccountSum]
    balanced: bool


class TrialBalanceReply(Document):
    trialBalance: TrialBalance
