"""Replies of apps, merchants, transactions and cards, as types of the API's document (parts A, B).

What goes out is rendered by the books (actors/ledger/book/documents.py), which know no wire types
and keep a document as the text that was once sent: made of these it would be one more shape to keep
for ever, and each field would still be named here and filled in there. So nothing is validated with
these at run time, and a test holds every reply to them. The document calls each by its name without
`Schema`.
"""
# ruff: noqa: N815  (names are the wire's)

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.payments.api.bodies.wire_types import Amount, CurrencyCode, Id

SUFFIX = "Schema"
MOMENT_PATTERN = r"^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"

Moment = Annotated[str, Field(pattern=MOMENT_PATTERN, examples=["2026-02-28T09:30:00.000Z"])]
NonNegative = Annotated[int, Field(ge=0, le=AMOUNT_MAX, description="minor units")]
SignedAmount = Annotated[int, Field(description="minor units of the funding currency")]
CustomData = Annotated[dict[str, Any], Field(description="any data, at most 50 KB and 32 levels")]


class ReplyBody(BaseModel):
    """The fields of a reply: these and no others."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        defer_build=True,  # (until the document is asked for)
        model_title_generator=lambda model: model.__name__.removesuffix(SUFFIX),
    )


def only(name: str, **field: Any) -> type[ReplyBody]:
    """A reply with one field, of this type."""
    return create_model(name, __base__=ReplyBody, **field)


class FieldProblemSchema(ReplyBody):
    """A refused field. `field`: its dotted path, or empty."""

    field: str
    message: str


class TransactionRefSchema(ReplyBody):
    id: Id


class AttemptStoredSchema(ReplyBody):
    transaction: TransactionRefSchema


class ProcessingProblemSchema(ReplyBody):
    """The reason why a payment failed, by the codes of part C. `response` names the failed
    attempt, when it was stored."""

    code: int
    message: str
    text: str
    client: bool
    merchant: bool
    response: AttemptStoredSchema | None = None


class ProblemSchema(ReplyBody):
    """Any other error; sent only if Accept names JSON."""

    code: str
    message: str
    requestId: str


class AppSchema(ReplyBody):
    id: Id
    name: str | None = None
    created: Moment


class MemberAppSchema(AppSchema):
    """`role`: absent of an owner."""

    role: Literal["refunds", "read-only"] | None = None


class AppWithKeySchema(AppSchema):
    key: str
    recoveryCode: str | None = None


class AppWithCodeSchema(AppSchema):
    recoveryCode: str


class KeySchema(ReplyBody):
    """`expires`: absent of a key that does not. `test`: absent of a key for test and live
    merchants."""

    last4: str
    created: Moment
    expires: Moment | None = None
    test: bool | None = None
    lastUsed: Moment | None = None


class CompanySchema(ReplyBody):
    country: str
    number: str | None = None


class BankSchema(ReplyBody):
    iban: str | None = None


class ClaimSchema(ReplyBody):
    canChargeCard: bool
    canSaveCard: bool
    canTransferToCard: bool
    canCapture: bool
    canRefund: bool
    canVoid: bool


class SumSchema(ReplyBody):
    currency: CurrencyCode
    amount: NonNegative


class PricingSchema(ReplyBody):
    """`rate`: the fraction of what is captured, 0.0135 for 1.35 %."""

    rate: Annotated[float, Field(ge=0, le=1)]
    flat: SumSchema
    dispute: SumSchema


class TdsModeSchema(ReplyBody):
    mode: str


class MerchantSchema(ReplyBody):
    id: Id
    key: Annotated[str, Field(description="public key, for payments and links; no secret")]
    name: str | None = None
    currency: CurrencyCode
    test: bool
    email: str
    website: str
    descriptor: str
    company: CompanySchema
    bank: BankSchema
    created: Moment
    balance: SignedAmount
    claim: ClaimSchema
    rejected: Literal[True] | None = None
    pricing: PricingSchema
    tds: TdsModeSchema


class UserInvitedSchema(ReplyBody):
    """`isMember`: whether the address was a member before."""

    isMember: bool


class UserSchema(ReplyBody):
    """`role`: absent of an owner."""

    id: Id
    email: str
    created: Moment
    name: str | None = None
    role: Literal["refunds", "read-only"] | None = None


class CodePresenceSchema(ReplyBody):
    present: bool


class TransactionCardSchema(ReplyBody):
    bin: str
    last4: str
    expiry: Moment
    scheme: Literal["visa", "mastercard"]
    code: CodePresenceSchema


class FeePartsSchema(ReplyBody):
    flat: NonNegative
    rate: NonNegative


class TrailDisputeSchema(ReplyBody):
    id: Id
    won: Literal[True] | None = None
    lost: Literal[True] | None = None


class TrailEntrySchema(ReplyBody):
    """Exactly one of capture, refund, void and dispute is there."""

    capture: Literal[True] | None = None
    refund: Literal[True] | None = None
    void: Literal[True] | None = None
    dispute: TrailDisputeSchema | None = None
    created: Moment
    amount: Amount
    balance: SignedAmount
    fee: FeePartsSchema
    descriptor: str
    lineId: Id | None = None


class StoredProblemSchema(ReplyBody):
    code: int
    message: str
    client: bool
    merchant: bool


class RetryAdviceSchema(ReplyBody):
    """Advice whether to try a failed payment of a server again, and not before when."""

    retry: bool
    attempts: int
    text: str
    after: Moment | None = None


class TransactionSchema(ReplyBody):
    id: Id
    merchantId: Id
    test: bool
    created: Moment
    currency: CurrencyCode
    amount: Amount
    descriptor: str
    pendingAmount: NonNegative
    capturedAmount: Annotated[NonNegative, Field(description="gross; never decreases")]
    refundedAmount: NonNegative
    voidedAmount: NonNegative
    disputedAmount: NonNegative
    card: TransactionCardSchema
    custom: CustomData | None = None
    tds: Literal["attempt", "full"] | None = None
    recurring: bool
    successful: bool
    error: Literal[False] | StoredProblemSchema
    trail: list[TrailEntrySchema]
    advice: RetryAdviceSchema | None = None


class CardRefSchema(ReplyBody):
    id: Id


class CardSchema(ReplyBody):
    id: Id
    merchantId: Id
    created: Moment
    bin: str
    last4: str
    expiry: Moment
    scheme: Literal["visa", "mastercard"]
    notes: str | None
    deleted: Moment | None


AppCreated = only("AppCreated", app=AppWithKeySchema)
RecoveryCodeReply = only("RecoveryCodeReply", app=AppWithCodeSchema)
IdentityReply = only("IdentityReply", identity=AppSchema)
MerchantReply = only("MerchantReply", merchant=MerchantSchema)
TransactionCreated = only("TransactionCreated", transaction=TransactionRefSchema)
TransactionReply = only("TransactionReply", transaction=TransactionSchema)
CardCreated = only("CardCreated", card=CardRefSchema)
CardReply = only("CardReply", card=CardSchema)
