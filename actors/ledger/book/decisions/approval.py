"""Decisions on a live merchant that waits for the operator's approval (part B, Approval).

Anybody may open one, and may read and configure it; until the operator has approved it, it neither
takes money nor is paid any. What it may do is the law of `may_trade`, which its document shows.
"""

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.head import Merchant
from tollgate.actors.ledger.law.commands import Authorise, Capture, Command, PayOut, SaveCard
from tollgate.actors.ledger.law.events import MerchantApproved
from tollgate.actors.ledger.law.outcomes import ErrorCode, Refusal, RefusalReason

WAITS = "the merchant is live and waits for the operator's approval"


def decide_approval(case: Case) -> BookDecision:
    """Once, and for good."""
    if case.merchant.may_trade:
        return ()
    (own,) = case.ids(1)
    return (MerchantApproved(own),)


def refuse_unapproved(merchant: Merchant, command: Command) -> Refusal | None:
    """None when the merchant may do this."""
    if merchant.may_trade:
        return None
    match command:
        case Authorise():
            return Refusal(RefusalReason.UNAPPROVED, WAITS, code=int(ErrorCode.MAY_NOT_PAY))
        case SaveCard():
            return Refusal(RefusalReason.UNAPPROVED, WAITS, code=int(ErrorCode.MAY_NOT_SAVE_CARDS))
        case Capture() | PayOut():
            return Refusal(RefusalReason.UNAPPROVED, WAITS)
    return None
