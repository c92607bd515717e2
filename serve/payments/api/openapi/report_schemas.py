"""Replies of reports, books, webhooks and the operator's calls, as types of the API's document (see
reply_schemas.py)."""
# ruff: noqa: N815  (names are the wire's)

from typing import Annotated, Any, Literal

from pydantic import Field

from tollgate.serve.payments.api.bodies.wire_types import VERSION_PATTERN, Amount, CurrencyCode, Id
from tollgate.serve.payments.api.openapi.reply_schemas import (
    MerchantSchema,
    Moment,
    NonNegative,
    ReplyBody,
    SignedAmount,
    SumSchema,
    only,
)
from tollgate.serve.payments.network_files.outcomes import Mismatch


class WaitingMerchantSchema(MerchantSchema):
    version: Annotated[str, Field(description="what an approval names", pattern=VERSION_PATTERN)]


class DisputeReasonSchema(ReplyBody):
    code: int
    title: str


class DisputeSchema(ReplyBody):
    """Once it is decided, one of `won` and `lost` is there."""

    id: Id
    merchantId: Id
    transactionId: Id
    created: Moment
    amount: Amount
    reason: DisputeReasonSchema
    due: Moment
    won: Literal[True] | None = None
    lost: Literal[True] | None = None


class FraudSchema(ReplyBody):
    id: Id
    merchantId: Id
    transactionId: Id
    created: Moment
    reported: Moment | None = None
    reason: Annotated[int, Field(ge=0, le=8)] | None = None


class ExchangeSchema(ReplyBody):
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


class LineSchema(ReplyBody):
    """Exactly one of capture, refund, dispute and payout is there. `balance` and `fee` are in the
    funding currency, `amount` in the transaction's."""

    id: Id
    merchantId: Id
    test: bool
    created: Moment
    balance: SignedAmount
    fee: NonNegative
    amount: SumSchema
    transactionId: Id | None = None
    description: str | None = None
    capture: Literal[True] | None = None
    refund: Literal[True] | None = None
    dispute: Literal[True] | None = None
    payout: Literal[True] | None = None
    won: Literal[True] | None = None
    lost: Literal[True] | None = None
    exchange: ExchangeSchema | None = None


class BalanceSchema(ReplyBody):
    currency: CurrencyCode
    amount: SignedAmount
    at: Moment


class EventSchema(ReplyBody):
    id: Id
    seq: Annotated[int, Field(ge=1)]
    type: Annotated[str, Field(examples=["transaction.captured"])]
    created: Moment
    data: dict[str, Any]


class AuditEntrySchema(ReplyBody):
    """`appId` null: without credentials; `operator`: one of the operator's calls."""

    seq: Annotated[int, Field(ge=1)]
    created: Moment
    type: str
    appId: Id | Literal["operator"] | None
    keyLast4: str | None
    address: str | None
    requestId: str | None
    idempotencyKey: str | None
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class WebhookSchema(ReplyBody):
    """`types`: of the events that it gets; absent: of all."""

    id: Id
    url: str
    created: Moment
    types: list[str] | None = None
    enabled: bool


class WebhookWithSecretSchema(WebhookSchema):
    secret: str


class DeliverySchema(ReplyBody):
    """An attempt to deliver. `status`: of the answer, if there was one. `error`: why the receiver
    does not have the event. `nextAttempt`: absent if there will be none."""

    id: Id
    eventId: Id
    type: str
    created: Moment
    durationMs: Annotated[int, Field(ge=0)]
    delivered: bool
    status: int | None = None
    error: str | None = None
    nextAttempt: Moment | None = None


class DeliveryStatusSchema(ReplyBody):
    """`waiting`: events that failed and are tried again; the first of them since `failingSince`,
    the next at `nextAttempt`."""

    waiting: Annotated[int, Field(ge=0)]
    deadLetters: Annotated[int, Field(ge=0)]
    failingSince: Moment | None = None
    nextAttempt: Moment | None = None


class RetryCreatedSchema(ReplyBody):
    queued: Annotated[int, Field(ge=0)]


class DeadLetterSchema(ReplyBody):
    """`id`: the event's. `queued`: it is to be sent again."""

    id: Id
    failed: Moment
    reason: str
    queued: bool


class ReplayCreatedSchema(ReplyBody):
    queued: Annotated[int, Field(ge=0)]


class ImportedSchema(ReplyBody):
    apps: int
    merchants: int
    transactions: int
    lines: int
    cards: int


class SettlementSchema(ReplyBody):
    """What the network says it paid for a day. `settled`: with all that it said of this day before;
    `expected`: what the books say; `difference`: of these two."""

    id: Id
    merchantId: Id
    created: Moment
    network: str | None = None
    reference: str
    day: Annotated[str, Field(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
    currency: CurrencyCode
    amount: int
    settled: int
    expected: int
    difference: int


class FileFindingSchema(ReplyBody):
    """A record that was not booked. `line`: where it stands."""

    line: Annotated[int, Field(ge=1)]
    reference: str
    problem: Literal[tuple(each.value for each in Mismatch)]  # type: ignore[valid-type]
    message: str


class SettledDifferenceSchema(ReplyBody):
    merchantId: Id
    day: str
    currency: CurrencyCode
    settled: int
    expected: int
    difference: int


class FileReportSchema(ReplyBody):
    """`booked`, `unchanged`: how many records were new, and how many were told before."""

    dryRun: bool
    records: Annotated[int, Field(ge=1)]
    booked: Annotated[int, Field(ge=0)]
    unchanged: Annotated[int, Field(ge=0)]
    findings: list[FileFindingSchema]
    differences: list[SettledDifferenceSchema]


class AccountSumSchema(ReplyBody):
    account: str
    currency: str
    amount: int


class TrialBalanceSchema(ReplyBody):
    accounts: list[AccountSumSchema]
    balanced: bool
    strays: list[AccountSumSchema]


DisputeReply = only("DisputeReply", dispute=DisputeSchema)
FraudReply = only("FraudReply", fraud=FraudSchema)
LineReply = only("LineReply", line=LineSchema)
BalanceReply = only("BalanceReply", balance=BalanceSchema)
WebhookReply = only("WebhookReply", webhook=WebhookSchema)
DeliveryReply = only("DeliveryReply", delivery=DeliverySchema)
DeliveryStatusReply = only("DeliveryStatusReply", status=DeliveryStatusSchema)
WebhookCreated = only("WebhookCreated", webhook=WebhookWithSecretSchema)
ImportReply = only("ImportReply", imported=ImportedSchema)
FileReportReply = only("FileReportReply", report=FileReportSchema)
TrialBalanceReply = only("TrialBalanceReply", trialBalance=TrialBalanceSchema)
