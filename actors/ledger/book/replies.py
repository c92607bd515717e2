"""The documents that answer a command once it is done (the table of part A).

A document in a reply is the very text of the row that the next read returns (T9). Apps are answered
without their key and webhooks without their secret, which the books never show: the API, which made
it, adds it, and takes out the salt by which it makes it again.

What an order changed tells its reply, whatever the order was: so a verification makes it again from
the entries, and compares it with what is stored for replays (F5).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from msgspec.json import decode

from tollgate.actors.ledger.book.documents import JsonDocument, processing_document, text_of
from tollgate.actors.ledger.law.commands import (
    AddApp,
    ApproveMerchant,
    ChangeMerchant,
    ChangeRole,
    Command,
    CreateApp,
    InviteUser,
    OpenDispute,
    PriceMerchant,
    RecordSettlement,
    RecoverApp,
    RejectMerchant,
    ReplaceRecoveryCode,
    ReportFraud,
    RotateKey,
)
from tollgate.actors.ledger.law.events import (
    AppAdded,
    AppCreated,
    AppRecovered,
    AppRevoked,
    AppRoleChanged,
    Captured,
    CardSaved,
    DisputeLost,
    DisputeOpened,
    DisputeWon,
    DuplicateSuspected,
    Event,
    FraudReported,
    Intended,
    KeyRotated,
    MerchantApproved,
    MerchantChanged,
    MerchantOpened,
    MerchantPriced,
    MerchantRejected,
    MerchantReserved,
    NetworkRefused,
    PaidOut,
    RecoveryCodeReplaced,
    Refunded,
    SettlementReported,
    TransactionCreated,
    UserInvited,
    UserRevoked,
    UserRoleChanged,
    Voided,
)
from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.webhook_law import (
    AddWebhook,
    ChangeWebhook,
    ReplaceWebhookSecret,
    WebhookAdded,
    WebhookChanged,
    WebhookRemoved,
    WebhookSecretReplaced,
)

EMPTY = b""
Salted = (
    CreateApp | RotateKey | RecoverApp | ReplaceRecoveryCode | AddWebhook | ReplaceWebhookSecret
)


def reply_to(command: Command, events: Sequence[Event], rows: Sequence[EntityRow]) -> Done:
    """The reply to a command that led to `events` and `rows`; to none, when all was so already."""
    if events:
        return _salted(reply_about(events, rows), command)
    match command:
        case InviteUser():
            return _MEMBER_ALREADY
        case ApproveMerchant() | RejectMerchant() | PriceMerchant():
            return _CHANGED
        case ChangeMerchant() | ChangeRole() | ChangeWebhook():
            return _CHANGED
        case OpenDispute() | ReportFraud() | RecordSettlement():
            return _CHANGED  # (by a notice that was told before)
    assert isinstance(command, AddApp), "every other command changes something, or is refused"
    return _MADE


def reply_about(events: Sequence[Event], rows: Sequence[EntityRow]) -> Done:
    """The reply to the command that led to these events, the first of which says what it was.

    Raises LookupError when no command leads to such events and rows.
    """
    match events[0]:
        case Captured() | Refunded() | Voided() | DuplicateSuspected():
            return Done(DoneKind.MADE, _document_in(rows, "transaction"))
        case TransactionCreated() as event:
            return _authorised(event)
        case Intended() as event:
            return Done(DoneKind.INTENDED, _body({"intent": {"id": event.intent}}))
        case NetworkRefused() as event:
            refused = processing_document(event.transaction, event.error)
            return Done(DoneKind.ATTEMPT_FAILED, _body(refused))
        case AppCreated() | KeyRotated() | AppRecovered() | RecoveryCodeReplaced():
            return Done(DoneKind.MADE, _document_in(rows, "app"))
        case MerchantOpened():
            return Done(DoneKind.MADE, _document_in(rows, "merchant"))
        case DisputeOpened() | DisputeWon() | DisputeLost():
            return Done(DoneKind.MADE, _document_in(rows, "dispute"))
        case FraudReported():
            return Done(DoneKind.MADE, _document_in(rows, "fraud"))
        case SettlementReported():
            return Done(DoneKind.MADE, _document_in(rows, "settlement"))
        case PaidOut():
            return Done(DoneKind.MADE, _document_in(rows, "line"))
        case WebhookAdded() | WebhookSecretReplaced():
            return Done(DoneKind.MADE, _document_in(rows, "webhook"))
        case CardSaved() as event:
            return Done(DoneKind.MADE, _body({"card": {"id": event.card}}))
        case MerchantReserved() as event:
            return Done(DoneKind.MADE, _body({"merchant": {"id": event.merchant}}))
        case UserInvited():
            return Done(DoneKind.MADE, _body({"isMember": False}))
        case AppAdded():
            return _MADE
        case (
            MerchantApproved()
            | MerchantRejected()
            | MerchantPriced()
            | MerchantChanged()
            | AppRevoked()
            | AppRoleChanged()
            | UserRevoked()
            | UserRoleChanged()
            | WebhookChanged()
            | WebhookRemoved()
        ):
            return _CHANGED
        case event:
            assert_never(event)


def _salted(reply: Done, command: Command) -> Done:
    """The salt is no member of the document, and in no entry: it is worth something only as long as
    the reply is kept."""
    if not isinstance(command, Salted) or not command.salt:
        return reply
    what, document = next(iter(decode(reply.body, type=dict[str, dict[str, object]]).items()))
    return replace(reply, body=_body({what: {**document, "salt": command.salt}}))


def _body(document: JsonDocument) -> bytes:
    return text_of(document).encode()


_MADE = Done(DoneKind.MADE, EMPTY)
_CHANGED = Done(DoneKind.CHANGED, EMPTY)
_MEMBER_ALREADY = Done(DoneKind.MADE, _body({"isMember": True}))
# All replies to orders that found everything as it should be.
WITHOUT_EVENTS = (_MADE, _CHANGED, _MEMBER_ALREADY)


def _document_in(rows: Sequence[EntityRow], kind: str) -> bytes:
    for row in rows:
        if row.kind == kind:
            return f'{{"{kind}":{row.document}}}'.encode()
    raise LookupError(f"nothing was written about a {kind}")


def _authorised(event: TransactionCreated) -> Done:
    """A failed attempt is stored, and answered with its error (part A)."""
    if event.error is None:
        return Done(DoneKind.MADE, _body({"transaction": {"id": event.transaction}}))
    return Done(DoneKind.ATTEMPT_FAILED, _body(processing_document(event.transaction, event.error)))
