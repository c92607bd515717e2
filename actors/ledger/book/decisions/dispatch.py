"""Which rules decide which command: access first, then the book, then the command's own law."""

from dataclasses import replace
from typing import assert_never

from tollgate.actors.ledger.book.case import Case, Decision, Entities
from tollgate.actors.ledger.book.decisions.access import refuse_access
from tollgate.actors.ledger.book.decisions.directory import decide_in_directory
from tollgate.actors.ledger.book.decisions.disputes import (
    decide_dispute,
    open_dispute,
    report_fraud,
)
from tollgate.actors.ledger.book.decisions.imports import refuse_import, with_given_id
from tollgate.actors.ledger.book.decisions.membership import (
    add_app,
    add_webhook,
    change_merchant,
    invite_user,
    open_merchant,
    remove_webhook,
    replace_webhook_secret,
    revoke_app,
    revoke_user,
)
from tollgate.actors.ledger.book.decisions.transactions import (
    authorise,
    capture,
    pay_out,
    refund,
    save_card,
    void,
)
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law.commands import (
    AddApp,
    AddWebhook,
    Authorise,
    Capture,
    ChangeMerchant,
    CreateApp,
    DecideDispute,
    Import,
    InviteUser,
    OpenDispute,
    OpenMerchant,
    Order,
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
from tollgate.actors.ledger.law.refusals import absent, forbidden

MerchantCommand = (
    ChangeMerchant
    | AddApp
    | RevokeApp
    | InviteUser
    | RevokeUser
    | Authorise
    | Capture
    | Refund
    | Void
    | SaveCard
    | OpenDispute
    | DecideDispute
    | ReportFraud
    | PayOut
    | AddWebhook
    | ReplaceWebhookSecret
    | RemoveWebhook
)


def decide(head: Head, entities: Entities, order: Order, at_ms: int) -> Decision:
    """The events of an order, or why there are none. `at_ms`: the time its entry would have."""
    command = order.command
    if isinstance(command, Import):
        if refused := refuse_import(head, entities, command, order.origin.app, at_ms):
            return refused
        inner = replace(order, command=command.command)
        return with_given_id(decide(head, entities, inner, at_ms), command.id)
    is_for_directory = isinstance(command, CreateApp | RotateKey | ReserveMerchant)
    if is_for_directory != head.is_directory:
        return forbidden(f"{type(command).__name__} is not for the book {head.book}")
    if head.merchant is None and not (is_for_directory or isinstance(command, OpenMerchant)):
        return absent(f"there is no merchant {head.book}")
    if refused := refuse_access(head.merchant, command, order.origin.app):
        return refused
    if isinstance(command, CreateApp | RotateKey | ReserveMerchant):
        return decide_in_directory(head, entities, command, at_ms)
    if isinstance(command, OpenMerchant):
        return open_merchant(head, command, at_ms)
    assert head.merchant is not None
    case = Case(head, head.merchant, entities, at_ms, bool(order.idempotency_key))
    return _decide_in_book(case, command)


def _decide_in_book(case: Case, command: MerchantCommand) -> Decision:
    match command:
        case Capture():
            return capture(case, command)
        case Authorise():
            return authorise(case, command)
        case Refund():
            return refund(case, command)
        case Void():
            return void(case, command)
        case SaveCard():
            return save_card(case, command)
        case PayOut():
            return pay_out(case, command)
        case OpenDispute():
            return open_dispute(case, command)
        case DecideDispute():
            return decide_dispute(case, command)
        case ReportFraud():
            return report_fraud(case, command)
        case ChangeMerchant():
            return change_merchant(case, command)
        case AddApp():
            return add_app(case, command)
        case RevokeApp():
            return revoke_app(case, command)
        case InviteUser():
            return invite_user(case, command)
        case RevokeUser():
            return revoke_user(case, command)
        case AddWebhook():
            return add_webhook(case, command)
        case ReplaceWebhookSecret():
            return replace_webhook_secret(case, command)
        case RemoveWebhook():
            return remove_webhook(case, command)
        case _:
            assert_never(command)
