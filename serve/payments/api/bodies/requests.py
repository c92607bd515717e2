"""The bodies of requests, field by field (part A). What is read and what the API's document says
both follow from these."""
# ruff: noqa: N815  (names are the wire's)

from typing import ClassVar

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tollgate.serve.payments.api.bodies.model_reader import RequestBody
from tollgate.serve.payments.api.bodies.wire_types import (
    Amount,
    ApprovalVersion,
    CardSchemeWord,
    CardStatusWord,
    CompanyNumber,
    Country,
    CurrencyCode,
    CustomText,
    Descriptor,
    DisputeReasonCode,
    Email,
    EventIds,
    EventTypes,
    Exponent,
    FingerprintWord,
    Flag,
    FraudReason,
    FundingCurrency,
    GivenAmount,
    GivenCard,
    GivenCurrency,
    GivenKey,
    Iban,
    Id,
    ImportFile,
    KnownCurrency,
    Name,
    OptionalId,
    RecoveryCode,
    SecurityCodeWord,
    TdsFingerprintWord,
    TdsStatusWord,
    Text,
    WebhookUrl,
    Website,
    WholeAmount,
)
from tollgate.serve.payments.network.simulated_behaviour import (
    CardScheme,
    CardStatus,
    Fingerprint,
    SecurityCode,
    TdsFingerprint,
    TdsStatus,
)

_TRUE: JsonSchemaValue = {"const": True}

CHANGEABLE = ("name", "email", "descriptor")


class AppCreate(RequestBody):
    name: Name = ""


class AppRecover(RequestBody):
    recoveryCode: RecoveryCode


class CompanyCreate(RequestBody):
    country: Country
    number: CompanyNumber = ""


class BankCreate(RequestBody):
    iban: Iban = ""


class MerchantCreate(RequestBody):
    name: Name = ""
    currency: FundingCurrency
    test: Flag = False
    email: Email
    website: Website
    descriptor: Descriptor
    company: CompanyCreate
    bank: BankCreate = BankCreate()


class MerchantChange(RequestBody):
    """Any other field is refused (A3). An empty name takes the name away."""

    keeps_empty: ClassVar[frozenset[str]] = frozenset({"name"})
    unknown: ClassVar[str] = f"cannot be changed; these can: {', '.join(CHANGEABLE)}"

    name: Name | None = None
    email: Email | None = None
    descriptor: Descriptor | None = None


class MerchantApprove(RequestBody):
    """`version`: of what was read in the list of waiting merchants."""

    version: ApprovalVersion


class UserInvite(RequestBody):
    email: Email


class AppAdd(RequestBody):
    appId: Id


class TransactionCreate(RequestBody):
    """From an earlier transaction (`transactionId`, also called `authorizationId`) or from a saved
    card (`cardId`): one of the two. `false` and the empty text mean absent."""

    transactionId: OptionalId = None
    authorizationId: OptionalId = None
    cardId: OptionalId = None
    currency: KnownCurrency
    amount: Amount
    descriptor: Descriptor = ""
    custom: CustomText = ""


class CaptureCreate(RequestBody):
    """`currency`: when given, the transaction's."""

    amount: Amount
    currency: CurrencyCode | None = None
    descriptor: Descriptor = ""


class RefundCreate(RequestBody):
    """`currency`: as of a capture."""

    amount: Amount
    currency: CurrencyCode | None = None
    descriptor: Descriptor = ""


class VoidCreate(RequestBody):
    """`currency`: as of a capture. The `descriptor` means nothing here: clients that have one
    request for all three send it."""

    amount: Amount
    currency: CurrencyCode | None = None
    descriptor: Descriptor = ""


class CardCreate(RequestBody):
    transactionId: Id
    notes: Text = ""


class WebhookCreate(RequestBody):
    """`types`: of the events that it gets; without any, all. While it is not `enabled`, events
    wait."""

    url: WebhookUrl
    types: EventTypes | None = None
    enabled: Flag = True


class WebhookChange(RequestBody):
    """What is not named stays. An empty list of `types` means all."""

    url: WebhookUrl | None = None
    types: EventTypes | None = None
    enabled: Flag | None = None


class RetryCreate(RequestBody):
    events: EventIds | None = None


class ReplayCreate(RequestBody):
    events: EventIds | None = None


class SandboxMoney(RequestBody):
    """`value` times ten to the minus `exponent`, in major units."""

    currency: CurrencyCode
    exponent: Exponent
    value: WholeAmount


class SandboxCard(RequestBody):
    """`limit`: what the card allows at once; `balance`: what is on its account."""

    scheme: CardSchemeWord = CardScheme.SUPPORTED
    code: SecurityCodeWord = SecurityCode.VALID
    status: CardStatusWord = CardStatus.VALID
    limit: SandboxMoney | None = None
    balance: SandboxMoney | None = None


class SandboxTds(RequestBody):
    """3-D Secure. `challenge`: the bank asks the holder to confirm."""

    fingerprint: TdsFingerprintWord = TdsFingerprint.SUCCESS
    challenge: Flag = False
    status: TdsStatusWord = TdsStatus.AUTHENTICATED


class SandboxTest(RequestBody):
    """The behaviour of the simulated card and its bank; everything left out is good, and without
    `tds` no 3-D Secure takes place. `true` is as good as `{}`."""

    card: SandboxCard | None = None
    fingerprint: FingerprintWord = Fingerprint.SUCCESS
    tds: SandboxTds | None = None

    @model_validator(mode="before")
    @classmethod
    def _true_is_empty(cls, given: object) -> object:
        return {} if given is True else given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [super().__get_pydantic_json_schema__(core_schema, handler), _TRUE]}


class SandboxPayment(RequestBody):
    judged_later: ClassVar[tuple[str, ...]] = ("key", "currency", "amount", "card")

    key: GivenKey
    currency: GivenCurrency
    amount: GivenAmount
    card: GivenCard
    custom: CustomText = ""
    test: SandboxTest | None = None


class DisputeReasonCreate(RequestBody):
    code: DisputeReasonCode = 0
    title: Text = ""


class SandboxDispute(RequestBody):
    transactionId: Id
    amount: Amount
    reason: DisputeReasonCreate = DisputeReasonCreate()


class SandboxFraud(RequestBody):
    transactionId: Id
    reason: FraudReason | None = None


class PayoutCreate(RequestBody):
    merchantId: Id
    amount: Amount
    description: Text = ""


class ImportCreate(RequestBody):
    file: ImportFile
    name: Name = ""
