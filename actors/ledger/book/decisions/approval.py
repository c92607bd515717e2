"""Decisions on a live merchant that waits for the operator's approval (part B, Approval).

Anybody may open one, and may read and configure it; until the operator has approved it, it neither
takes money nor is paid any. What it may do is the law of `may_trade`, which its document shows.

An approval is of what the operator has read, and names it by a version: a merchant that was changed
meanwhile still waits. Once it is approved, only the operator changes what was approved. One that is
rejected waits no more, and does not trade unless it is approved after all.
"""

from hashlib import sha256

from msgspec import UNSET
from msgspec.json import Encoder

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.documents import JsonDocument, merchant_document
from tollgate.actors.ledger.book.head import Merchant
from tollgate.actors.ledger.law.commands import (
    ApproveMerchant,
    Authorise,
    Capture,
    Command,
    PayOut,
    SaveCard,
)
from tollgate.actors.ledger.law.events import MerchantApproved, MerchantRejected
from tollgate.actors.ledger.law.outcomes import ErrorCode, Refusal, RefusalReason, constraint
from tollgate.actors.ledger.law.values import BookId

WAITS = "the merchant is live and waits for the operator's approval"
REJECTED = "the merchant is live, and the operator has rejected it"
CHANGED = "the merchant is not as this version has it: look at it again"
# Who opens a merchant chooses the texts: shorter, two of them with one hash could be found.
VERSION_LENGTH = 32
_APPROVED = ("id", "name", "currency", "email", "website", "descriptor", "company", "bank")
_encode = Encoder(order="sorted").encode


def approval_version(document: JsonDocument) -> str:
    """The version of what an approval is about, of a merchant's document: a hash, in hex."""
    texts = _encode([document.get(name) for name in _APPROVED])
    return sha256(texts).hexdigest()[:VERSION_LENGTH]


def merchant_version(book: BookId, merchant: Merchant) -> str:
    """The same, of the merchant as its book knows it."""
    return approval_version(merchant_document(book, merchant, balance=0))


def decide_approval(case: Case, command: ApproveMerchant) -> BookDecision:
    """Once, and for good."""
    version = merchant_version(case.head.book, case.merchant)
    if command.version != version:
        return Refusal(RefusalReason.LOST_RACE, CHANGED)
    if case.merchant.may_trade:
        return ()
    (own,) = case.ids(1)
    return (MerchantApproved(own, version),)


def decide_rejection(case: Case) -> BookDecision:
    """It stays so unless the operator approves it after all."""
    if case.merchant.may_trade:
        return constraint("the merchant may trade: only one that waits is rejected")
    if case.merchant.is_rejected is not UNSET:
        return ()
    (own,) = case.ids(1)
    return (MerchantRejected(own),)


def refuse_unapproved(merchant: Merchant, command: Command) -> Refusal | None:
    """None when the merchant may do this."""
    if merchant.may_trade:
        return None
    why = WAITS if merchant.is_rejected is UNSET else REJECTED
    match command:
        case Authorise():
            return Refusal(RefusalReason.UNAPPROVED, why, code=int(ErrorCode.MAY_NOT_PAY))
        case SaveCard():
            return Refusal(RefusalReason.UNAPPROVED, why, code=int(ErrorCode.MAY_NOT_SAVE_CARDS))
        case Capture() | PayOut():
            return Refusal(RefusalReason.UNAPPROVED, why)
    return None
