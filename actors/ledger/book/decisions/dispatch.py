"""Chooses the rules that decide a command: access, then the book, then the command's own law."""

from dataclasses import replace
from typing import assert_never

from tollgate.actors.ledger.book.case import BookDecision, Case, Entities
from tollgate.actors.ledger.book.decisions.access import refuse_access
from tollgate.actors.ledger.book.decisions.approval import (
    decide_approval,
    decide_rejection,
    refuse_unapproved,
)
from tollgate.actors.ledger.book.decisions.directory import decide_in_directory
from tollgate.actors.ledger.book.decisions.disputes import (
    decide_dispute_end,
    decide_dispute_opening,
    decide_fraud_report,
)
from tollgate.actors.ledger.book.decisions.imports import refuse_import, with_given_id
from tollgate.actors.ledger.book.decisions.intents import decide_conclusion, decide_intent
from tollgate.actors.ledger.book.decisions.membership import (
    decide_app_addition,
    decide_app_revocation,
    decide_invitation,
    decide_merchant_change,
    decide_merchant_opening,
    decide_pricing,
    decide_role_change,
    decide_user_revocation,
    decide_webhook_addition,
    decide_webhook_change,
    decide_webhook_removal,
    decide_webhook_secret,
)
from tollgate.actors.ledger.book.decisions.notices import decide_settlement
from tollgate.actors.ledger.book.decisions.transactions import (
    decide_authorisation,
    decide_capture,
    decide_payout,
    decide_refund,
    decide_saved_card,
    decide_void,
)
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law import commands, webhook_law
from tollgate.actors.ledger.law.outcomes import absent, forbidden


def decide(
    head: Head, entities: Entities, order: commands.Order, at_ms: int, now_ms: int
) -> BookDecision:
    """The events of an order, or why there are none. `at_ms`: the time its entry would have, which
    is not before the book's; `now_ms`: the time that it is."""
    command = order.command
    if isinstance(command, commands.Import):
        if refused := refuse_import(head, entities, command, order.origin.app, at_ms):
            return refused
        inner = replace(order, command=command.command)
        return with_given_id(decide(head, entities, inner, at_ms, now_ms), command.id)
    is_for_directory = isinstance(command, commands.DirectoryCommand)
    if is_for_directory != head.is_directory:
        return forbidden(f"{type(command).__name__} is not for the book {head.book}")
    if head.merchant is None and not (
        is_for_directory or isinstance(command, commands.OpenMerchant)
    ):
        return absent(f"there is no merchant {head.book}")
    asked = command.command if isinstance(command, commands.Intend) else command
    if refused := refuse_access(head.merchant, asked, order.origin.app):
        return refused
    if isinstance(command, commands.DirectoryCommand):
        return decide_in_directory(head, entities, command, order, at_ms, now_ms)
    if isinstance(command, commands.OpenMerchant):
        return decide_merchant_opening(head, command, order, at_ms)
    assert head.merchant is not None
    case = Case(
        head=head,
        merchant=head.merchant,
        entities=entities,
        at_ms=at_ms,
        now_ms=now_ms,
        operation=order.operation,
        has_key=bool(order.idempotency_key),
    )
    return refuse_unapproved(case.merchant, asked) or _decide_in_book(case, command)


def _decide_in_book(case: Case, command: commands.MerchantCommand) -> BookDecision:
    match command:
        case commands.Capture():
            return decide_capture(case, command)
        case commands.Authorise():
            return decide_authorisation(case, command)
        case commands.Refund():
            return decide_refund(case, command)
        case commands.Void():
            return decide_void(case, command)
        case commands.Intend():
            return decide_intent(case, command)
        case commands.Conclude():
            return decide_conclusion(case, command)
        case commands.SaveCard():
            return decide_saved_card(case, command)
        case commands.PayOut():
            return decide_payout(case, command)
        case commands.OpenDispute():
            return decide_dispute_opening(case, command)
        case commands.DecideDispute():
            return decide_dispute_end(case, command)
        case commands.ReportFraud():
            return decide_fraud_report(case, command)
        case commands.RecordSettlement():
            return decide_settlement(case, command)
        case commands.ApproveMerchant():
            return decide_approval(case, command)
        case commands.RejectMerchant():
            return decide_rejection(case)
        case commands.PriceMerchant():
            return decide_pricing(case, command)
        case commands.ChangeMerchant():
            return decide_merchant_change(case, command)
        case commands.AddApp():
            return decide_app_addition(case, command)
        case commands.RevokeApp():
            return decide_app_revocation(case, command)
        case commands.InviteUser():
            return decide_invitation(case, command)
        case commands.RevokeUser():
            return decide_user_revocation(case, command)
        case commands.ChangeRole():
            return decide_role_change(case, command)
        case webhook_law.AddWebhook():
            return decide_webhook_addition(case, command)
        case webhook_law.ChangeWebhook():
            return decide_webhook_change(case, command)
        case webhook_law.ReplaceWebhookSecret():
            return decide_webhook_secret(case, command)
        case webhook_law.RemoveWebhook():
            return decide_webhook_removal(case, command)
        case _:
            assert_never(command)
