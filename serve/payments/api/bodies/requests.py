"""The bodies of requests, field by field (part A). What is read and what the API's document says
both follow from these."""
# ruff: noqa: N815  (names are the wire's)

from typing import ClassVar

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from tollgate.serve.payments.api.bodies import wire_types
from tollgate.serve.payments.api.bodies.model_reader import RequestBody
from tollgate.serve.payments.network.simulated_behaviour import (
    CardBehaviour,
    CardScheme,
    CardStatus,
    Fingerprint,
    Money,
    SecurityCode,
    TdsFingerprint,
    TdsOptions,
    TdsStatus,
)

_TRUE: JsonSchemaValue = {"const": True}

CHANGEABLE = ("name", "email", "descriptor")


class KeyCreate(RequestBody):
    """`expires`: when the key does; without it, never. `test`: it is for test merchants alone, or
    for live ones; without it, for both."""

    expires: wire_types.Moment | None = None
    test: wire_types.Flag | None = None


class AppCreate(KeyCreate):
    """`expires`, `test`: of its first key."""

    name: wire_types.Name = ""


class AppRecover(RequestBody):
    recoveryCode: wire_types.RecoveryCode


class CompanyCreate(RequestBody):
    country: wire_types.Country
    number: wire_types.CompanyNumber = ""


class BankCreate(RequestBody):
    iban: wire_types.Iban = ""


class MerchantCreate(RequestBody):
    name: wire_types.Name = ""
    currency: wire_types.FundingCurrency
    test: wire_types.Flag = False
    email: wire_types.Email
    website: wire_types.Website
    descriptor: wire_types.Descriptor
    company: CompanyCreate
    bank: BankCreate = BankCreate()


class MerchantChange(RequestBody):
    """Any other field is refused (A3). An empty name takes the name away."""

    keeps_empty: ClassVar[frozenset[str]] = frozenset({"name"})
    unknown: ClassVar[str] = f"cannot be changed; these can: {', '.join(CHANGEABLE)}"

    name: wire_types.Name | None = None
    email: wire_types.Email | None = None
    descriptor: wire_types.Descriptor | None = None


class MerchantApprove(RequestBody):
    """`version`: of what was read in the list of waiting merchants."""

    version: wire_types.ApprovalVersion


class MerchantPrice(RequestBody):
    """`ratePpm`: of what is captured, in parts per million; `flat`, `dispute`: of a capture and a
    dispute, in minor units of the funding currency."""

    ratePpm: wire_types.RatePpm
    flat: wire_types.WholeAmount
    dispute: wire_types.WholeAmount


class UserInvite(RequestBody):
    """`role`: of somebody new; without one, an owner's."""

    email: wire_types.Email
    role: wire_types.RoleWord | None = None


class AppAdd(RequestBody):
    """`role`: as of a user."""

    appId: wire_types.Id
    role: wire_types.RoleWord | None = None


class RoleChange(RequestBody):
    role: wire_types.RoleWord


class TransactionCreate(RequestBody):
    """From an earlier transaction (`transactionId`, also called `authorizationId`) or from a saved
    card (`cardId`): one of the two. `false` and the empty text mean absent."""

    transactionId: wire_types.OptionalId = None
    authorizationId: wire_types.OptionalId = None
    cardId: wire_types.OptionalId = None
    currency: wire_types.KnownCurrency
    amount: wire_types.Amount
    descriptor: wire_types.Descriptor = ""
    custom: wire_types.CustomText = ""


class CaptureCreate(RequestBody):
    """`currency`: when given, the transaction's."""

    amount: wire_types.Amount
    currency: wire_types.CurrencyCode | None = None
    descriptor: wire_types.Descriptor = ""


class RefundCreate(RequestBody):
    """`currency`: as of a capture."""

    amount: wire_types.Amount
    currency: wire_types.CurrencyCode | None = None
    descriptor: wire_types.Descriptor = ""


class VoidCreate(RequestBody):
    """`currency`: as of a capture. The `descriptor` means nothing here: clients that have one
    request for all three send it."""

    amount: wire_types.Amount
    currency: wire_types.CurrencyCode | None = None
    descriptor: wire_types.Descriptor = ""


class CardCreate(RequestBody):
    transactionId: wire_types.Id
    notes: wire_types.Text = ""


class WebhookCreate(RequestBody):
    """`types`: of the events that it gets; without any, all. While it is not `enabled`, events
    wait."""

    url: wire_types.WebhookUrl
    types: wire_types.EventTypes | None = None
    enabled: wire_types.Flag = True


class WebhookChange(RequestBody):
    """What is not named stays. An empty list of `types` means all."""

    url: wire_types.WebhookUrl | None = None
    types: wire_types.EventTypes | None = None
    enabled: wire_types.Flag | None = None


class RetryCreate(RequestBody):
    events: wire_types.EventIds | None = None


class ReplayCreate(RequestBody):
    events: wire_types.EventIds | None = None


class SandboxMoney(RequestBody):
    """`value` times ten to the minus `exponent`, in major units."""

    currency: wire_types.CurrencyCode
    exponent: wire_types.Exponent
    value: wire_types.WholeAmount


class SandboxCard(RequestBody):
    """`limit`: what the card allows at once; `balance`: what is on its account."""

    scheme: wire_types.CardSchemeWord = CardScheme.SUPPORTED
    code: wire_types.SecurityCodeWord = SecurityCode.VALID
    status: wire_types.CardStatusWord = CardStatus.VALID
    limit: SandboxMoney | None = None
    balance: SandboxMoney | None = None


class SandboxTds(RequestBody):
    """3-D Secure. `challenge`: the bank asks the holder to confirm."""

    fingerprint: wire_types.TdsFingerprintWord = TdsFingerprint.SUCCESS
    challenge: wire_types.Flag = False
    status: wire_types.TdsStatusWord = TdsStatus.AUTHENTICATED


class SandboxTest(RequestBody):
    """The behaviour of the simulated card and its bank; everything left out is good, and without
    `tds` no 3-D Secure takes place. `true` is as good as `{}`."""

    card: SandboxCard | None = None
    fingerprint: wire_types.FingerprintWord = Fingerprint.SUCCESS
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


def behaviour_of(test: SandboxTest | None) -> CardBehaviour:
    """The card and bank that a `test` object asks for."""
    if test is None:
        return CardBehaviour()
    card, tds = test.card or SandboxCard(), test.tds
    return CardBehaviour(
        scheme=card.scheme,
        code=card.code,
        status=card.status,
        limit=_money_of(card.limit),
        balance=_money_of(card.balance),
        fingerprint=test.fingerprint,
        tds=None if tds is None else TdsOptions(tds.fingerprint, tds.challenge, tds.status),
    )


def _money_of(money: SandboxMoney | None) -> Money | None:
    return None if money is None else Money(money.currency, money.exponent, money.value)


class SandboxPayment(RequestBody):
    judged_later: ClassVar[tuple[str, ...]] = ("key", "currency", "amount", "card")

    key: wire_types.GivenKey
    currency: wire_types.GivenCurrency
    amount: wire_types.GivenAmount
    card: wire_types.GivenCard
    custom: wire_types.CustomText = ""
    test: SandboxTest | None = None


class DisputeReasonCreate(RequestBody):
    code: wire_types.DisputeReasonCode = 0
    title: wire_types.Text = ""


class SandboxDispute(RequestBody):
    transactionId: wire_types.Id
    amount: wire_types.Amount
    reason: DisputeReasonCreate = DisputeReasonCreate()


class SandboxFraud(RequestBody):
    transactionId: wire_types.Id
    reason: wire_types.FraudReason | None = None


class PayoutCreate(RequestBody):
    merchantId: wire_types.Id
    amount: wire_types.Amount
    description: wire_types.Text = ""


class ImportCreate(RequestBody):
    file: wire_types.ImportFile
    name: wire_types.Name = ""


class NetworkFile(RequestBody):
    """`network`: whose file it is; the same reference of two networks is two. `dryRun`: nothing is
    booked."""

    file: wire_types.NetworkFileText
    network: wire_types.Name = ""
    dryRun: wire_types.Flag = False
