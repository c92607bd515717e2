"""Replies of apps, merchants, transactions and cards, as types of the API's document (parts A, B).

What goes out is rendered by the books (actors/ledger/book/documents.py), which know no wire types
and keep a document as the text that was once sent: made of these it would be one more shape to keep
for ever, and each field would still be named here and filled in there. So nothing is validated with
these at run time, and a test holds every reply to them.
"""
# ruff: noqa: N815  (names are the wire's)

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.payments.api.bodies.wire_types import Amount, CurrencyCode, Id

MOMENT_PATTERN = r"^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"

Moment = Annotated[str, Field(pattern=MOMENT_PATTERN, examples=["2026-02-28T09:30:00.000Z"])]
NonNegative = Annotated[int, Field(ge=0, le=AMOUNT_MAX, description="minor units")]
SignedAmount = Annotated[int, Field(description="minor units of the funding currency")]
CustomData = Annotated[dict[str, Any], Field(description="any data, at most 50 KB and 32 levels")]


class ReplyBody(BaseModel):
    """The fields of a reply: these and no others."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def only(name: str, **field: Any) -> type[ReplyBody]:
    """A reply with one field, of this type."""
    return create_model(name, __base__=ReplyBody, **field)


class FieldProblem(ReplyBody):
    """A refused field. `field`: its dotted path, or empty."""

    field: str
    message: str


class TransactionRef(ReplyBody):
    id: Id


class AttemptStored(ReplyBody):
    transaction: TransactionRef


class ProcessingProblem(ReplyBody):
    """The reason why a payment failed, by the codes of part C. `response` names the failed
    attempt, when it was stored."""

    code: int
    message: str
    text: str
    client: bool
    merchant: bool
    response: AttemptStored | None = None


class Problem(ReplyBody):
    """Any other error; sent only if Accept names JSON."""

    code: str
    message: str
    requestId: str


class App(ReplyBody):
    id: Id
    name: str | None = None
    created: Moment


class AppWithKey(App):
    key: str


class Key(ReplyBody):
    last4: str
    created: Moment
    lastUsed: Moment | None = None


class Company(ReplyBody):
    country: str
    number: str | None = None


class Bank(ReplyBody):
    iban: str | None = None


class Claim(ReplyBody):
    canChargeCard: bool
    canSaveCard: bool
    canTransferToCard: bool
    canCapture: bool
    canRefund: bool
    canVoid: bool


class Sum(ReplyBody):
    currency: CurrencyCode
    amount: NonNegative


class Pricing(ReplyBody):
    """`rate`: the fraction of what is captured, 0.0135 for 1.35 %."""

    rate: Annotated[float, Field(ge=0, le=1)]
    flat: Sum
    dispute: Sum


class TdsMode(ReplyBody):
    mode: str


class Merchant(ReplyBody):
    id: Id
    key: Annotated[str, Field(description="public key, for payments and links; no secret")]
    name: str | None = None
    currency: CurrencyCode
    test: bool
    email: str
    website: str
    descriptor: str
    company: Company
    bank: Bank
    created: Moment
    balance: SignedAmount
    claim: Claim
    pricing: Pricing
    tds: TdsMode


class UserInvited(ReplyBody):
    """`isMember`: whether the address was a member before."""

    isMember: bool


class User(ReplyBody):
    id: Id
    email: str
    created: Moment
    name: str | None = None


class CodePresence(ReplyBody):
    present: bool


class TransactionCard(ReplyBody):
    bin: str
    last4: str
    expiry: Moment
    scheme: Literal["visa", "mastercard"]
    code: CodePresence


class FeeParts(ReplyBody):
    flat: NonNegative
    rate: NonNegative


class TrailDispute(ReplyBody):
    id: Id
    won: Literal[True] | None = None
    lost: Literal[True] | None = None


class TrailEntry(ReplyBody):
    """Exactly one of capture, refund, void and dispute is there."""

    capture: Literal[True] | None = None
    refund: Literal[True] | None = None
    void: Literal[True] | None = None
    dispute: TrailDispute | None = None
    created: Moment
    amount: Amount
    balance: SignedAmount
    fee: FeeParts
    descriptor: str
    lineId: Id | None = None


class StoredProblem(ReplyBody):
    code: int
    message: str
    client: bool
    merchant: bool


class RetryAdvice(ReplyBody):
    """Advice whether to try a failed payment of a server again, and not before when."""

    retry: bool
    attempts: int
    text: str
    after: Moment | None = None


class Transaction(ReplyBody):
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
    card: TransactionCard
    custom: CustomData | None = None
    tds: Literal["attempt", "full"] | None = None
    recurring: bool
    successful: bool
    error: Literal[False] | StoredProblem
    trail: list[TrailEntry]
    advice: RetryAdvice | None = None


class CardRef(ReplyBody):
    id: Id


class Card(ReplyBody):
    id: Id
    merchantId: Id
    created: Moment
    bin: str
    last4: str
    expiry: Moment
    scheme: Literal["visa", "mastercard"]
    notes: str | None
    deleted: Moment | None


AppCreated = only("AppCreated", app=AppWithKey)
IdentityReply = only("IdentityReply", identity=App)
MerchantReply = only("MerchantReply", merchant=Merchant)
TransactionCreated = only("TransactionCreated", transaction=TransactionRef)
TransactionReply = only("TransactionReply", transaction=Transaction)
CardCreated = only("CardCreated", card=CardRef)
CardReply = only("CardReply", card=Card)
