"""What is on the wire, as types of the API's document (parts A and B).

Nothing is validated with these at run time: what comes in is judged by constraints.py, field by
field, and what goes out was rendered by the books. A test holds every reply to them.
"""
# ruff: noqa: N815  (names are the wire's)

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.payments.api.bodies.constraints import (
    DESCRIPTOR_LENGTH_MAX,
    NAME_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)

ID_PATTERN = "^[0-9a-f]{24}$"
MOMENT_PATTERN = r"^[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"

Id = Annotated[str, Field(pattern=ID_PATTERN, examples=["560fd96b7973ff3d2362a78c"])]
Moment = Annotated[str, Field(pattern=MOMENT_PATTERN, examples=["2026-02-28T09:30:00.000Z"])]
Amount = Annotated[int, Field(ge=1, le=AMOUNT_MAX, description="minor units", examples=[995])]
Total = Annotated[int, Field(ge=0, le=AMOUNT_MAX, description="minor units")]
Signed = Annotated[int, Field(description="minor units of the funding currency")]
CurrencyCode = Annotated[str, Field(pattern="^[A-Z]{3}$", examples=["EUR"])]
FundingCurrency = Annotated[
    str,
    Field(
        json_schema_extra={
            "enum": [
                *("BGN", "CHF", "CZK", "DKK", "EUR", "GBP"),
                *("HUF", "NOK", "PLN", "RON", "SEK", "USD"),
            ]
        },
        examples=["DKK"],
    ),
]
Descriptor = Annotated[
    str,
    Field(max_length=DESCRIPTOR_LENGTH_MAX, pattern="^[ -~]*$", examples=["Coffee & Cake"]),
]
Name = Annotated[str, Field(max_length=NAME_LENGTH_MAX, examples=["Coffee & Cake"])]
Email = Annotated[str, Field(examples=["shop@example.com"])]
Text = Annotated[str, Field(max_length=TEXT_LENGTH_MAX)]
Custom = Annotated[dict[str, Any], Field(description="any data, at most 50 KB and 32 levels")]


class Document(BaseModel):
    """What is answered: these fields and no others."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Request(BaseModel):
    """What is taken; fields beyond these mean nothing."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class FieldProblem(Document):
    """What is wrong with one field. `field`: its dotted path, or empty."""

    field: str
    message: str


class TransactionRef(Document):
    id: Id


class AttemptStored(Document):
    transaction: TransactionRef


class ProcessingProblem(Document):
    """Why a payment failed, by the numeric codes of the documentation. `response` names the failed
    attempt, when it was stored."""

    code: int
    message: str
    text: str
    client: bool
    merchant: bool
    response: AttemptStored | None = None


class Problem(Document):
    """Any other error; sent only if Accept names JSON."""

    code: str
    message: str
    requestId: str


class AppCreate(Request):
    name: Name = ""


class AppWithKey(Document):
    id: Id
    name: str | None = None
    created: Moment
    key: str


class AppCreated(Document):
    app: AppWithKey


class App(Document):
    id: Id
    name: str | None = None
    created: Moment


class IdentityReply(Document):
    identity: App


class Key(Document):
    last4: str
    created: Moment
    lastUsed: Moment | None = None


class CompanyCreate(Request):
    country: Annotated[str, Field(pattern="^[A-Z]{2}$", examples=["DK"])]
    number: Annotated[str, Field(max_length=64)] = ""


class BankCreate(Request):
    iban: Annotated[str, Field(examples=["DK5000400440116243"])] = ""


class MerchantCreate(Request):
    name: Name = ""
    currency: FundingCurrency
    test: bool = False
    email: Email
    website: Annotated[str, Field(examples=["https://example.com"])]
    descriptor: Descriptor
    company: CompanyCreate
    bank: BankCreate | None = None


class MerchantChange(BaseModel):
    """Any other field is refused."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    email: Email | None = None
    descriptor: Descriptor | None = None


class Company(Document):
    country: str
    number: str | None = None


class Bank(Document):
    iban: str | None = None


class Claim(Document):
    canChargeCard: bool
    canSaveCard: bool
    canTransferToCard: bool
    canCapture: bool
    canRefund: bool
    canVoid: bool


class Sum(Document):
    currency: CurrencyCode
    amount: Total


class Pricing(Document):
    """`rate`: parts per million of what is captured."""

    rate: int
    flat: Sum
    dispute: Sum


class TdsMode(Document):
    mode: str


class Merchant(Document):
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
    balance: Signed
    claim: Claim
    pricing: Pricing
    tds: TdsMode


class MerchantReply(Document):
    merchant: Merchant


class UserInvite(Request):
    email: Email


class UserInvited(Document):
    """`isMember`: whether the address was a member before."""

    isMember: bool


class User(Document):
    id: Id
    email: str
    created: Moment
    name: str | None = None


class AppAdd(Request):
    appId: Id


class TransactionCreate(Request):
    """From an earlier transaction (`transactionId`, also called `authorizationId`) or from a saved
    card (`cardId`): one of the two. `false` and the empty text mean absent."""

    transactionId: Id | Literal["", False] | None = None
    authorizationId: Id | Literal["", False] | None = None
    cardId: Id | Literal["", False] | None = None
    descriptor: Descriptor = ""
    currency: CurrencyCode
    amount: Amount
    custom: Custom | None = None


class TransactionCreated(Document):
    transaction: TransactionRef


class CaptureCreate(Request):
    amount: Amount
    currency: Annotated[CurrencyCode, Field(description="must be the transaction's")] | None = None
    descriptor: Descriptor = ""


class RefundCreate(Request):
    amount: Amount
    descriptor: Descriptor = ""


class VoidCreate(Request):
    amount: Amount


class CodePresence(Document):
    present: bool


class TransactionCard(Document):
    bin: str
    last4: str
    expiry: Moment
    scheme: Literal["visa", "mastercard"]
    code: CodePresence


class FeeParts(Document):
    flat: Total
    rate: Total


class TrailDispute(Document):
    id: Id
    won: Literal[True] | None = None
    lost: Literal[True] | None = None


class TrailEntry(Document):
    """Exactly one of capture, refund, void and dispute is there."""

    capture: Literal[True] | None = None
    refund: Literal[True] | None = None
    void: Literal[True] | None = None
    dispute: TrailDispute | None = None
    created: Moment
    amount: Amount
    balance: Signed
    fee: FeeParts
    descriptor: str
    lineId: Id | None = None


class StoredProblem(Document):
    code: int
    message: str
    client: bool
    merchant: bool


class RetryAdvice(Document):
    """Whether a failed payment of a server should be tried again, and not before when."""

    retry: bool
    attempts: int
    text: str
    after: Moment | None = None


class Transaction(Document):
    id: Id
    merchantId: Id
    test: bool
    created: Moment
    currency: CurrencyCode
    amount: Amount
    descriptor: str
    pendingAmount: Total
    capturedAmount: Annotated[Total, Field(description="gross; never decreases")]
    refundedAmount: Total
    voidedAmount: Total
    disputedAmount: Total
    card: TransactionCard
    custom: Custom | None = None
    tds: Literal["attempt", "full"] | None = None
    recurring: bool
    successful: bool
    error: Literal[False] | StoredProblem
    trail: list[TrailEntry]
    advice: RetryAdvice | None = None


class TransactionReply(Document):
    transaction: Transaction


class CardCreate(Request):
    transactionId: Id
    notes: Text = ""


class CardRef(Document):
    id: Id


class CardCreated(Document):
    card: CardRef


class Card(Document):
    id: Id
    merchantId: Id
    created: Moment
    bin: str
    last4: str
    expiry: Moment
    scheme: Literal["visa", "mastercard"]
    notes: str | None
    deleted: Moment | None


class CardReply(Document):
    card: Card
