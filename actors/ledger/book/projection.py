"""The rows that reads are answered from, after an event: a function of the event and the state.

every event          itself
one with a line      the line, and the merchant, whose document shows the balance
one on the merchant  the merchant; memberships and users as they come and go
entities that changed  each its row; keys of apps where authentication looks
"""

from typing import assert_never

from msgspec import UNSET

from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.documents import (
    JsonDocument,
    app_document,
    card_document,
    dispute_document,
    fraud_document,
    intent_document,
    merchant_document,
    notice_document,
    settled_day_document,
    settlement_document,
    text_of,
    transaction_document,
    user_document,
    webhook_document,
)
from tollgate.actors.ledger.book.entities import (
    KINDS,
    App,
    AppKey,
    Dispute,
    Entity,
    Intent,
    NetworkNotice,
    SavedCard,
    SettledDay,
    TakenId,
    Webhook,
    state_of,
)
from tollgate.actors.ledger.book.event_documents import event_document, line_document
from tollgate.actors.ledger.book.head import Head, Merchant
from tollgate.actors.ledger.book.transitions import Changed
from tollgate.actors.ledger.law import events, webhook_law
from tollgate.actors.ledger.law.accounts import merchant_balance
from tollgate.actors.ledger.law.notices import authorisation_id
from tollgate.actors.ledger.law.rows import MEMBERSHIP, EntityRow, Entry, KeyRow
from tollgate.actors.ledger.law.transaction import Transaction
from tollgate.actors.ledger.law.values import BookId, EntityId


def entity_rows_of(
    head: Head, changed: Changed, event: events.Event, entry: Entry
) -> list[EntityRow]:
    """The rows to write for an event; `head` and `changed` are after it."""
    rows = [_entity_row(entity) for entity in changed.values() if entity is not None]
    if isinstance(event, events.Move | events.NetworkRefused) and event.intent is not UNSET:
        rows.append(EntityRow("intent", event.intent, head.book, "", is_deleted=True))
    if head.merchant is not None:
        rows += _merchant_rows(head, head.merchant, event, entry)
    event_text = text_of(event_document(event, entry))
    rows.append(EntityRow("event", event.id, head.book, event_text))
    return rows


def _entity_row(entity: Entity) -> EntityRow:
    match entity:
        case Transaction():
            return _row(
                entity,
                transaction_document(entity),
                is_test=entity.is_test,
                is_successful=entity.is_successful,
            )
        case SavedCard():
            return _row(entity, card_document(entity), entity.transaction, entity.is_test)
        case Dispute():
            return _row(entity, dispute_document(entity), entity.transaction, entity.is_test)
        case Intent():
            return _row(entity, intent_document(entity), entity.transaction, entity.is_test)
        case Webhook():
            return _row(entity, webhook_document(entity), is_test=entity.is_test)
        case NetworkNotice():
            return _row(entity, notice_document(entity), is_test=entity.is_test)
        case SettledDay():
            return _row(entity, settled_day_document(entity), is_test=entity.is_test)
        case App():
            return _row(entity, app_document(entity))
        case TakenId():
            raise AssertionError(f"no event changes {entity.id}, which is only read")
        case _:
            assert_never(entity)


def _row(
    entity: Entity,
    document: JsonDocument,
    transaction: EntityId | None = None,
    is_test: bool | None = None,
    is_successful: bool | None = None,
) -> EntityRow:
    return EntityRow(
        kind=KINDS[type(entity)],
        id=entity.id,
        book=entity.book,
        document=text_of(document),
        state=state_of(entity),
        transaction=transaction,
        is_test=is_test,
        is_successful=is_successful,
    )


def _merchant_rows(
    head: Head, merchant: Merchant, event: events.Event, entry: Entry
) -> list[EntityRow]:
    book, is_test = head.book, merchant.is_test
    match event:
        case (
            events.Captured()
            | events.Refunded()
            | events.DisputeOpened()
            | events.DisputeWon()
            | events.DisputeLost()
            | events.PaidOut()
        ):
            line = text_of(line_document(book, is_test, event, entry.at_ms))
            transaction = None if isinstance(event, events.PaidOut) else event.transaction
            return [
                EntityRow("line", event.line, book, line, "", transaction, is_test),
                _merchant_row(head, merchant),
            ]
        case events.FraudReported():
            fraud = text_of(fraud_document(book, event, entry.at_ms))
            return [EntityRow("fraud", event.fraud, book, fraud, "", event.transaction, is_test)]
        case events.TransactionCreated() if event.network is not UNSET:
            mark = event.network
            known = authorisation_id(book, mark.name, mark.reference)
            found = {"id": known, "merchantId": book, "transactionId": event.transaction}
            text, transaction = text_of(found), event.transaction
            return [EntityRow("authorisation", known, book, text, "", transaction, is_test)]
        case events.SettlementReported():
            settlement = text_of(settlement_document(book, event, entry.at_ms))
            return [EntityRow("settlement", event.settlement, book, settlement, is_test=is_test)]
        case events.MerchantOpened():
            return [_merchant_row(head, merchant), _membership_row(book, merchant, event.creator)]
        case events.MerchantChanged() | events.MerchantApproved() | events.MerchantRejected():
            return [_merchant_row(head, merchant)]
        case events.MerchantPriced():
            return [_merchant_row(head, merchant)]
        case events.AppAdded() | events.AppRoleChanged():
            return [_membership_row(book, merchant, event.app)]
        case events.AppRevoked():
            return [EntityRow(MEMBERSHIP, event.app, book, "", is_deleted=True)]
        case events.UserInvited() | events.UserRoleChanged():
            user = next(user for user in merchant.users if user.id == event.user)
            return [EntityRow("user", user.id, book, text_of(user_document(user)))]
        case events.UserRevoked():
            return [EntityRow("user", event.user, book, "", is_deleted=True)]
        case webhook_law.WebhookRemoved():
            return [EntityRow("webhook", event.webhook, book, "", is_deleted=True)]
        case _:
            return []


def _merchant_row(head: Head, merchant: Merchant) -> EntityRow:
    document = merchant_document(head.book, merchant, merchant_balance(head.accounts))
    return EntityRow(
        kind="merchant",
        id=EntityId(head.book),
        book=head.book,
        document=text_of(document),
        is_test=merchant.is_test,
        public_key=merchant.public_key,
    )


def _membership_row(book: BookId, merchant: Merchant, app: EntityId) -> EntityRow:
    member = next(member for member in merchant.apps if member.app == app)
    return EntityRow(MEMBERSHIP, app, book, text_of(app_document(member)))


def key_rows_of(entities: Entities, changed: Changed) -> list[KeyRow]:
    """The keys that an event made live, and those that it ended; `entities` are before it."""
    rows = []
    for app in changed.values():
        if not isinstance(app, App):
            continue
        before = entities.get(app.id)
        known = before.keys if isinstance(before, App) else ()
        rows += [_key_row(app, key, is_deleted=True) for key in known if key not in app.keys]
        rows += [_key_row(app, key) for key in app.keys if key not in known]
    return rows


def _key_row(app: App, key: AppKey, *, is_deleted: bool = False) -> KeyRow:
    return KeyRow(key.digest, app.id, key.last4, key.created_ms, is_deleted)
