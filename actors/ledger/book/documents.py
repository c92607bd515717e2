"""The JSON documents of the wire (parts A and B), as a function of what they show.

Compact, UTF-8, without floats. Times are ISO 8601 in UTC with milliseconds; amounts are integers of
minor units, a fraction is an exact decimal. A reply holds the very document that the next read
returns (T9).
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from msgspec import UNSET, Raw
from msgspec.json import Encoder

from tollgate.actors.ledger.book.entities import (
    App,
    Dispute,
    Intent,
    NetworkNotice,
    SavedCard,
    SettledDay,
    Webhook,
)
from tollgate.actors.ledger.book.head import Member, Merchant, User
from tollgate.actors.ledger.law.events import FraudReported, SettlementReported
from tollgate.actors.ledger.law.transaction import Action, ActionKind, Transaction
from tollgate.actors.ledger.law.values import (
    BookId,
    CardSummary,
    EntityId,
    Price,
    Pricing,
    ProcessingError,
)

JsonDocument = Mapping[str, object]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS_KEPT_MAX = 65_536
_HOUR_MS = 3_600_000

_encode = Encoder(decimal_format="number").encode


def text_of(document: JsonDocument) -> str:
    """A document as it is stored and sent."""
    return _encode(document).decode()


@lru_cache(maxsize=_MOMENTS_KEPT_MAX)
def moment(at_ms: int) -> str:
    """A time of the wire: 2026-02-28T09:30:00.000Z."""
    at = _EPOCH + timedelta(milliseconds=at_ms)
    return f"{at.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def app_document(app: App | Member) -> JsonDocument:
    """An app in a list, or as the identity of /me: never its key."""
    return {
        "id": app.id if isinstance(app, App) else app.app,
        **_present(name=app.name),
        "created": moment(app.created_ms),
        **({} if isinstance(app, App) else _role(app)),
    }


def user_document(user: User) -> JsonDocument:
    told = {"id": user.id, "email": user.email, "created": moment(user.created_ms)}
    return {**told, **_role(user)}


def _role(member: Member | User) -> JsonDocument:
    """Of an owner there is nothing to say."""
    return {} if member.role is UNSET else {"role": member.role.value}


def merchant_document(book: BookId, merchant: Merchant, balance: int) -> JsonDocument:
    """`balance` in minor units of the funding currency."""
    rejected = {} if merchant.is_rejected is UNSET else {"rejected": True}
    return {
        "id": book,
        "key": merchant.public_key,
        **_present(name=merchant.name),
        "currency": merchant.currency,
        "test": merchant.is_test,
        "email": merchant.email,
        "website": merchant.website,
        "descriptor": merchant.descriptor,
        "company": {
            "country": merchant.company_country,
            **_present(number=merchant.company_number),
        },
        "bank": _present(iban=merchant.iban),
        "created": moment(merchant.created_ms),
        "balance": balance,
        "claim": _claim(merchant),
        **rejected,
        "pricing": pricing_document(merchant.pricing),
        "tds": _TDS,
    }


def pricing_document(pricing: Pricing) -> JsonDocument:
    """A merchant's fees."""
    return {
        "rate": _fraction(pricing.rate_ppm),
        "flat": _price(pricing.flat),
        "dispute": _price(pricing.dispute),
    }


def _claim(merchant: Merchant) -> JsonDocument:
    """The calls that a merchant may make: all there are, once it may trade. No call transfers money
    to a card."""
    may_trade = merchant.may_trade
    return {
        "canChargeCard": may_trade,
        "canSaveCard": may_trade,
        "canTransferToCard": False,
        "canCapture": may_trade,
        "canRefund": True,
        "canVoid": True,
    }


# 3-D Secure is tried, and a payment whose card does not take part in it is not refused for that.
_TDS = {"mode": "attempt"}


def _fraction(ppm: int) -> Decimal:
    """13500 parts per million are 0.0135: exactly, and with no more digits than that takes."""
    return Decimal(ppm).scaleb(-6).normalize()


def _price(price: Price) -> JsonDocument:
    return {"currency": price.currency, "amount": price.amount}


def _present(**texts: str) -> dict[str, str]:
    """Only the texts that are not empty."""
    return {name: value for name, value in texts.items() if value}


def transaction_document(transaction: Transaction) -> JsonDocument:
    document: dict[str, object] = {
        "id": transaction.id,
        "merchantId": transaction.book,
        "test": transaction.is_test,
        "created": moment(transaction.created_ms),
        "currency": transaction.currency,
        "amount": transaction.amount,
        "descriptor": transaction.descriptor,
        "pendingAmount": transaction.pending,
        "capturedAmount": transaction.captured,
        "refundedAmount": transaction.refunded,
        "voidedAmount": transaction.voided,
        "disputedAmount": transaction.disputed,
        "card": {**_card(transaction.card), "code": {"present": transaction.card.has_code}},
        "recurring": transaction.source is not None,
        "successful": transaction.is_successful,
        "error": False if transaction.error is None else error_document(transaction.error),
        "trail": [_trail_entry(action) for action in transaction.trail],
    }
    if transaction.intent is not UNSET:
        document["intentId"] = transaction.intent
    if transaction.tds:
        document["tds"] = transaction.tds
    if transaction.custom:
        document["custom"] = Raw(transaction.custom.encode())
    if advice := _advice(transaction):
        document["advice"] = advice
    return document


def _trail_entry(action: Action) -> JsonDocument:
    entry: dict[str, object] = {
        "created": moment(action.at_ms),
        "amount": action.amount,
        "balance": action.balance,
        "descriptor": action.descriptor,
        "fee": {"flat": action.fee.flat, "rate": action.fee.rate},
    }
    if action.line is not None:
        entry["lineId"] = action.line
    match action.kind:
        case ActionKind.DISPUTE:
            entry["dispute"] = {"id": action.dispute}
        case ActionKind.DISPUTE_WON:
            entry["dispute"] = {"id": action.dispute, "won": True}
        case ActionKind.DISPUTE_LOST:
            entry["dispute"] = {"id": action.dispute, "lost": True}
        case ActionKind.CAPTURE:
            entry["capture"] = True
        case ActionKind.REFUND:
            entry["refund"] = True
        case ActionKind.VOID:
            entry["void"] = True
    return entry


def _advice(transaction: Transaction) -> JsonDocument | None:
    """On a failed attempt of a server: whether another one makes sense, and from when (part C)."""
    error = transaction.error
    if error is None or error.advice is None or transaction.source is None:
        return None
    advice = error.advice
    document = {
        "retry": transaction.failures < advice.attempts_max,
        "attempts": transaction.failures,
        "text": advice.text,
    }
    if document["retry"]:
        document["after"] = moment(transaction.created_ms + advice.retry_after_hours * _HOUR_MS)
    return document


def error_document(error: ProcessingError) -> JsonDocument:
    """The error of a stored attempt."""
    return {
        "code": error.code,
        "message": error.message,
        "client": error.is_client,
        "merchant": error.is_merchant,
    }


def processing_document(transaction: EntityId, error: ProcessingError) -> JsonDocument:
    """The reply to an attempt that failed."""
    return {
        **error_document(error),
        "text": error.text or error.message,
        "response": {"transaction": {"id": transaction}},
    }


def _card(card: CardSummary) -> JsonDocument:
    return {
        "bin": card.bin,
        "last4": card.last4,
        "expiry": moment(card.expiry_ms),
        "scheme": card.scheme,
    }


def card_document(card: SavedCard) -> JsonDocument:
    return {
        "id": card.id,
        "merchantId": card.book,
        "created": moment(card.created_ms),
        **_card(card.summary),
        "notes": card.notes or None,
        "deleted": None,
    }


def dispute_document(dispute: Dispute) -> JsonDocument:
    """Once it is decided it says so, as its trail entry does."""
    document = {
        "id": dispute.id,
        "merchantId": dispute.book,
        "transactionId": dispute.transaction,
        "created": moment(dispute.created_ms),
        "amount": dispute.amount,
        "reason": {"code": dispute.reason_code, "title": dispute.reason_title},
        "due": moment(dispute.due_ms),
    }
    if dispute.is_won is not None:
        document["won" if dispute.is_won else "lost"] = True
    return document


def fraud_document(book: BookId, event: FraudReported, at_ms: int) -> JsonDocument:
    document: dict[str, object] = {
        "id": event.fraud,
        "merchantId": book,
        "transactionId": event.transaction,
        "created": moment(at_ms),
    }
    if event.reported_ms is not None:
        document["reported"] = moment(event.reported_ms)
    if event.reason is not None:
        document["reason"] = event.reason
    return document


def settlement_document(book: BookId, event: SettlementReported, at_ms: int) -> JsonDocument:
    """`settled` and `difference` are of the day, with all that was said of it until then."""
    return {
        "id": event.settlement,
        "merchantId": book,
        "created": moment(at_ms),
        **_present(network=event.notice.network),
        "reference": event.notice.reference,
        "day": event.day,
        "currency": event.currency,
        "amount": event.amount,
        "settled": event.settled,
        "expected": event.expected,
        "difference": event.settled - event.expected,
    }


def settled_day_document(day: SettledDay) -> JsonDocument:
    """In no list: settlements show it."""
    return {"id": day.id, "merchantId": day.book, "settled": day.settled}


def notice_document(notice: NetworkNotice) -> JsonDocument:
    """In no list: the network's files are compared with it."""
    return {
        "id": notice.id,
        "merchantId": notice.book,
        **_present(network=notice.network),
        "reference": notice.reference,
        "subject": notice.subject,
    }


def webhook_document(webhook: Webhook) -> JsonDocument:
    """Its secret is shown to nobody."""
    document: dict[str, object] = {
        "id": webhook.id,
        "url": webhook.url,
        "created": moment(webhook.created_ms),
    }
    if webhook.types:
        document["types"] = webhook.types
    document["enabled"] = webhook.is_enabled
    return document


def intent_document(intent: Intent) -> JsonDocument:
    """A move that waits for a card network's answer."""
    document: dict[str, object] = {
        "id": intent.id,
        "merchantId": intent.book,
        "test": intent.is_test,
        "created": moment(intent.created_ms),
        intent.action.value: True,
        "amount": {"currency": intent.currency, "amount": intent.amount},
    }
    if intent.transaction is not None:
        document["transactionId"] = intent.transaction
    return document
