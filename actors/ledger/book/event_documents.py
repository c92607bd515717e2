"""The documents of what an event leaves in lists: its line, and itself.

A line is never changed: when a dispute is decided, it gets another line that says how.
"""

from typing import assert_never

from msgspec import UNSET, UnsetType

from tollgate.actors.ledger.book.chain import event_kind
from tollgate.actors.ledger.book.documents import (
    JsonDocument,
    error_document,
    moment,
    pricing_document,
)
from tollgate.actors.ledger.book.entities import moved
from tollgate.actors.ledger.law import events, webhook_law
from tollgate.actors.ledger.law.accounts import balance_of
from tollgate.actors.ledger.law.money import Exchange
from tollgate.actors.ledger.law.rows import Entry
from tollgate.actors.ledger.law.values import BookId, Role


def line_document(book: BookId, is_test: bool, event: events.Booked, at_ms: int) -> JsonDocument:
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
        case events.PaidOut():
            document["amount"] = {"currency": event.currency, "amount": event.amount}
            document["payout"] = True
            if event.description:
                document["description"] = event.description
            return document
        case events.Captured():
            document["capture"] = True
            if event.exchange is not None:
                document["exchange"] = _exchange(event.exchange)
        case events.Refunded():
            document["refund"] = True
        case events.DisputeOpened():
            document["dispute"] = True
        case events.DisputeWon():
            document["dispute"] = document["won"] = True
        case events.DisputeLost():
            document["dispute"] = document["lost"] = True
    document["transactionId"] = event.transaction
    document["amount"] = {"currency": event.sum.currency, "amount": event.sum.amount}
    return document


def _fee_of(event: events.Booked) -> int:
    return event.fee.total if isinstance(event, events.Captured | events.DisputeOpened) else 0


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


def event_document(event: events.Event, entry: Entry) -> JsonDocument:
    """An event in a merchant's list, and in a webhook's body."""
    return {
        "id": event.id,
        "seq": entry.seq,
        "type": event_kind(event),
        "created": moment(entry.at_ms),
        "data": _data_of(event),
    }


def _data_of(event: events.Event) -> JsonDocument:
    """The subject of an event: ids to read the rest by, and amounts. No keys, no secrets."""
    match event:
        case events.Captured() | events.Refunded():
            return _booked(event)
        case events.DisputeOpened() | events.DisputeWon() | events.DisputeLost():
            return {"disputeId": event.dispute, **_booked(event)}
        case events.TransactionCreated():
            return {
                "transactionId": event.transaction,
                "currency": event.currency,
                "amount": event.amount,
                "recurring": event.source is not None,
                "successful": event.error is None,
                "error": False if event.error is None else error_document(event.error),
            }
        case events.Voided():
            return {
                "transactionId": event.transaction,
                "currency": event.currency,
                "amount": event.amount,
            }
        case events.Intended() | events.NetworkRefused():
            return _at_network(event)
        case events.DuplicateSuspected():
            return {
                "transactionId": event.transaction,
                "lineId": event.line,
                "earlierLineId": event.earlier_line,
                "currency": event.currency,
                "amount": event.amount,
            }
        case events.PaidOut():
            return {
                "lineId": event.line,
                "currency": event.currency,
                "amount": event.amount,
                "balance": balance_of(event),
            }
        case events.CardSaved():
            return {"cardId": event.card, "transactionId": event.transaction}
        case events.FraudReported():
            return {"fraudId": event.fraud, "transactionId": event.transaction}
        case events.SettlementReported():
            return {
                "settlementId": event.settlement,
                "day": event.day,
                "currency": event.currency,
                "amount": event.amount,
                "settled": event.settled,
                "expected": event.expected,
            }
        case _:
            return _standing(event)


Standing = (
    events.OfNoMerchant
    | events.MerchantOpened
    | events.MerchantApproved
    | events.MerchantRejected
    | events.MerchantPriced
    | events.MerchantChanged
    | events.AppAdded
    | events.AppRevoked
    | events.AppRoleChanged
    | events.UserInvited
    | events.UserRoleChanged
    | events.UserRevoked
    | webhook_law.WebhookAdded
    | webhook_law.WebhookChanged
    | webhook_law.WebhookSecretReplaced
    | webhook_law.WebhookRemoved
)


def _standing(event: Standing) -> JsonDocument:
    """Of who a merchant is, and who has access: no money moves."""
    match event:
        case events.MerchantReserved():
            return {"merchantId": event.merchant}
        case events.MerchantOpened():
            return {"currency": event.currency, "test": event.is_test, "appId": event.creator}
        case events.MerchantApproved():
            return {} if event.version is UNSET else {"version": event.version}
        case events.MerchantRejected():
            return {}
        case events.MerchantPriced():
            return {"pricing": pricing_document(event.pricing)}
        case events.MerchantChanged():
            changes = {"name": event.name, "email": event.email, "descriptor": event.descriptor}
            return {name: value for name, value in changes.items() if value is not None}
        case events.AppCreated() | events.AppRevoked():
            return {"appId": event.app}
        case events.AppAdded() | events.AppRoleChanged():
            return {"appId": event.app, **_role(event.role)}
        case events.RecoveryCodeReplaced():
            return {"appId": event.app}
        case events.KeyRotated() | events.AppRecovered():
            return {"appId": event.app, "keyLast4": event.key_last4}
        case events.UserInvited():
            return {"userId": event.user, "email": event.email, **_role(event.role)}
        case events.UserRoleChanged():
            return {"userId": event.user, **_role(event.role)}
        case events.UserRevoked():
            return {"userId": event.user}
        case webhook_law.WebhookAdded():
            return {"webhookId": event.webhook, "url": event.url}
        case webhook_law.WebhookChanged():
            return _webhook_changes(event)
        case webhook_law.WebhookSecretReplaced() | webhook_law.WebhookRemoved():
            return {"webhookId": event.webhook}
        case _:
            assert_never(event)


def _role(role: Role | UnsetType) -> JsonDocument:
    return {} if role is UNSET else {"role": role.value}


def _booked(
    event: events.Captured
    | events.Refunded
    | events.DisputeOpened
    | events.DisputeWon
    | events.DisputeLost,
) -> JsonDocument:
    return {
        "transactionId": event.transaction,
        "lineId": event.line,
        "currency": event.sum.currency,
        "amount": event.sum.amount,
        "balance": balance_of(event),
        "fee": _fee_of(event),
    }


def _webhook_changes(event: webhook_law.WebhookChanged) -> JsonDocument:
    edits: dict[str, object] = {"url": event.url, "types": event.types, "enabled": event.is_enabled}
    changed = {name: value for name, value in edits.items() if value is not None}
    return {"webhookId": event.webhook, **changed}


def _at_network(event: events.Intended | events.NetworkRefused) -> JsonDocument:
    about = {} if event.transaction is None else {"transactionId": event.transaction}
    if isinstance(event, events.NetworkRefused):
        return {"intentId": event.intent, **about, "error": error_document(event.error)}
    currency, amount = moved(event.then)
    return {
        "intentId": event.intent,
        "type": event_kind(event.then),
        "currency": currency,
        "amount": amount,
        **about,
    }
