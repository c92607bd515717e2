"""The documents that answer a command once it is done (the table of part A).

A document in a reply is the very text of the row that the next read returns (T9). Apps are answered
without their key, which the books never see: the API, which made it, adds it.
"""

from collections.abc import Sequence
from typing import assert_never

from tollgate.actors.ledger.book.documents import JsonDocument, processing_document, text_of
from tollgate.actors.ledger.law.commands import (
    AddApp,
    AddWebhook,
    Authorise,
    Capture,
    ChangeMerchant,
    Command,
    CreateApp,
    DecideDispute,
    Import,
    InviteUser,
    OpenDispute,
    OpenMerchant,
    PayOut,
    Refund,
    RemoveWebhook,
    ReplaceWebhookSecret,
    ReportFraud,
    ReserveMerchant,
    RevokeApp,
    RevokeUser,
    RotateKey,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.events import CardSaved, Event, MerchantReserved, TransactionCreated
from tollgate.actors.ledger.law.outcomes import Done, DoneKind
from tollgate.actors.ledger.law.rows import EntityRow

EMPTY = b""


def reply_to(command: Command, events: Sequence[Event], rows: Sequence[EntityRow]) -> Done:
    """The reply to a command that led to `events` and `rows`; to none, when all was so already."""
    match command:
        case Capture() | Refund() | Void():
            return Done(DoneKind.MADE, _document_in(rows, "transaction"))
        case Authorise():
            return _authorised(events)
        case CreateApp() | RotateKey():
            return Done(DoneKind.MADE, _document_in(rows, "app"))
        case OpenMerchant():
            return Done(DoneKind.MADE, _document_in(rows, "merchant"))
        case OpenDispute() | DecideDispute():
            return Done(DoneKind.MADE, _document_in(rows, "dispute"))
        case ReportFraud():
            return Done(DoneKind.MADE, _document_in(rows, "fraud"))
        case PayOut():
            return Done(DoneKind.MADE, _document_in(rows, "line"))
        case AddWebhook() | ReplaceWebhookSecret():
            return Done(DoneKind.MADE, _document_in(rows, "webhook"))
        case SaveCard() | ReserveMerchant():
            return Done(DoneKind.MADE, _id_in(events))
        case InviteUser():
            return Done(DoneKind.MADE, _body({"isMember": not events}))
        case AddApp():
            return Done(DoneKind.MADE, EMPTY)
        case Import():
            return reply_to(command.command, events, rows)
        case ChangeMerchant() | RevokeApp() | RevokeUser() | RemoveWebhook():
            return Done(DoneKind.CHANGED, EMPTY)
        case _:
            assert_never(command)


def _body(document: JsonDocument) -> bytes:
    return text_of(document).encode()


def _document_in(rows: Sequence[EntityRow], kind: str) -> bytes:
    row = next(row for row in rows if row.kind == kind)
    return f'{{"{kind}":{row.document}}}'.encode()


def _id_in(events: Sequence[Event]) -> bytes:
    (event,) = events
    if isinstance(event, CardSaved):
        return _body({"card": {"id": event.card}})
    assert isinstance(event, MerchantReserved)
    return _body({"merchant": {"id": event.merchant}})


def _authorised(events: Sequence[Event]) -> Done:
    """A failed attempt is stored, and answered with its error (part A)."""
    (event,) = events
    assert isinstance(event, TransactionCreated)
    if event.error is None:
        return Done(DoneKind.MADE, _body({"transaction": {"id": event.transaction}}))
    return Done(DoneKind.ATTEMPT_FAILED, _body(processing_document(event.transaction, event.error)))
