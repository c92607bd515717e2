"""The documents of what an event leaves in lists: its line, and itself.

A line is never changed: when a dispute is decided, it gets another line that says how.
"""

from typing import assert_never

from msgspec import UNSET

from tollgate.actors.ledger.book.chain import event_kind
from tollgate.actors.ledger.book.documents import JsonDocument, error_document, moment
from tollgate.actors.ledger.law.accounts import balance_of
from tollgate.actors.ledger.law.events import (
    AppAdded,
    AppCreated,
    AppRecovered,
    AppRevoked,
    Booked,
    Captured,
    CardSaved,
    DisputeLost,
    DisputeOpened,
    DisputeWon,
    DuplicateSuspected,
    Event,
    FraudReported,
    KeyRotated,
    MerchantApproved,
    MerchantChanged,
    MerchantOpened,
    MerchantReserved,
    PaidOut,
    RecoveryCodeReplaced,
    Refunded,
    TransactionCreated,
    UserInvited,
    UserRevoked,
    Voided,
    WebhookAdded,
    WebhookChanged,
    WebhookRemoved,
    WebhookSecretReplaced,
)
from tollgate.actors.ledger.law.money import Exchange
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId


def line_document(book: BookId, is_test: bool, event: Booked, at_ms: int) -> JsonDocument:
    """`balance` and `fee` in the funding currency, `amount` in the transaction's (M1, M3)."""
    document: dict[str, object] = {
        "id": event.line,
        "merchantId": book,
        "test": is_test,
        "created": moment(at_ms),
        "balance": balance_of(event),
        "fee": _fee_of(event),
    }
    match event:
        case PaidOut():
            document["amount"] = {"currency": event.currency, "amount": event.amount}
            document["payout"] = True
            if event.description:
                document["description"] = event.description
            return document
        case Captured():
            document["capture"] = True
            if event.exchange is not None:
                document["exchange"] = _exchange(event.exchange)
        case Refunded():
            document["refund"] = True
        case DisputeOpened():
            document["dispute"] = True
        case DisputeWon():
            document["dispute"] = document["won"] = True
        case DisputeLost():
            document["dispute"] = document["lost"] = True
    document["transactionId"] = event.transaction
    document["amount"] = {"currency": event.sum.currency, "amount": event.sum.amount}
    return document


def _fee_of(event: Booked) -> int:
    return event.fee.total if isinstance(event, Captured | DisputeOpened) else 0


def _exchange(exchange: Exchange) -> JsonDocument:
    """The exact amount was the converted one plus `remainder` / `denominator`."""
    rate = exchange.rate
    return {
        "from": rate.source,
        "to": rate.target,
        "numerator": rate.numerator,
        "denominator": rate.denominator,
        "dated": rate.dated,
        "amount": exchange.amount,
        "remainder": exchange.remainder,
        "rounding": exchange.rounding,
    }


def event_document(event: Event, entry: Entry) -> JsonDocument:
    """An event in a merchant's list, and in a webhook's body."""
    return {
        "id": event.id,
        "seq": entry.seq,
        "type": event_kind(event),
        "created": moment(entry.at_ms),
        "data": _data_of(event),
    }


def _data_of(event: Event) -> JsonDocument:
    """The subject of an event: ids to read the rest by, and amounts. No keys, no secrets."""
    match event:
        case Captured() | Refunded():
            return _booked(event)
        case DisputeOpened() | DisputeWon() | DisputeLost():
            return {"disputeId": event.dispute, **_booked(event)}
        case TransactionCreated():
            return {
                "transactionId": event.transaction,
                "currency": event.currency,
                "amount": event.amount,
                "recurring": event.source is not None,
                "successful": event.error is None,
                "error": False if event.error is None else error_document(event.error),
            }
        case Voided():
            return {
                "transactionId": event.transaction,
                "currency": event.currency,
                "amount": event.amount,
            }
        case DuplicateSuspected():
            return {
                "transactionId": event.transaction,
                "lineId": event.line,
                "earlierLineId": event.earlier_line,
                "currency": event.currency,
                "amount": event.amount,
            }
        case PaidOut():
            return {
                "lineId": event.line,
                "currency": event.currency,
                "amount": event.amount,
                "balance": balance_of(event),
            }
        case CardSaved():
            return {"cardId": event.card, "transactionId": event.transaction}
        case FraudReported():
            return {"fraudId": event.fraud, "transactionId": event.transaction}
        case MerchantReserved():
            return {"merchantId": event.merchant}
        case MerchantOpened():
            return {"currency": event.currency, "test": event.is_test, "appId": event.creator}
        case MerchantApproved():
            return {} if event.version is UNSET else {"version": event.version}
        case MerchantChanged():
            changes = {"name": event.name, "email": event.email, "descriptor": event.descriptor}
            return {name: value for name, value in changes.items() if value is not None}
        case AppCreated() | RecoveryCodeReplaced() | AppAdded() | AppRevoked():
            return {"appId": event.app}
        case KeyRotated() | AppRecovered():
            return {"appId": event.app, "keyLast4": event.key_last4}
        case UserInvited():
            return {"userId": event.user, "email": event.email}
        case UserRevoked():
            return {"userId": event.user}
        case WebhookAdded():
            return {"webhookId": event.webhook, "url": event.url}
        case WebhookChanged():
            return _webhook_changes(event)
        case WebhookSecretReplaced():
            return {"webhookId": event.webhook}
        case WebhookRemoved():
            return {"webhookId": event.webhook}
        case _:
            assert_never(event)


def _booked(event: Captured | Refunded | DisputeOpened | DisputeWon | DisputeLost) -> JsonDocument:
    return {
        "transactionId": event.transaction,
        "lineId": event.line,
        "currency": event.sum.currency,
        "amount": event.sum.amount,
        "balance": balance_of(event),
        "fee": _fee_of(event),
    }


def _webhook_changes(event: WebhookChanged) -> JsonDocument:
    edits: dict[str, object] = {"url": event.url, "types": event.types, "enabled": event.is_enabled}
    changed = {name: value for name, value in edits.items() if value is not None}
    return {"webhookId": event.webhook, **changed}
