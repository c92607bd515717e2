"""A live merchant waits for the operator's approval (part B, Approval)."""

import pytest

from tests.support.ledger.books import ABSENT, EUR, PRICING, Shop, authorise, open_shop, opening
from tollgate.actors.ledger.law.commands import (
    AddWebhook,
    ApproveMerchant,
    Capture,
    ChangeMerchant,
    Command,
    InviteUser,
    PayOut,
    Refund,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.events import MerchantApproved
from tollgate.actors.ledger.law.outcomes import DoneKind, RefusalReason
from tollgate.actors.ledger.law.values import OPERATOR

CAPTURE = Capture(ABSENT, 1, None, "", None, None)
CLAIMS = ("canChargeCard", "canSaveCard", "canCapture", "canRefund", "canVoid")


def waiting() -> Shop:
    return open_shop(is_test=False, needs_approval=True)


def claims(shop: Shop) -> list[bool]:
    claim = shop.books.document("merchant", shop.book)["claim"]
    return [claim[name] for name in CLAIMS]


@pytest.mark.parametrize(
    ("command", "code"),
    [(authorise(1), 27), (SaveCard(ABSENT, ""), 28), (CAPTURE, 0), (PayOut(1, ""), 0)],
    ids=["authorise", "save a card", "capture", "pay out"],
)
def test_until_then_no_money_moves(command: Command, code: int) -> None:
    shop = waiting()
    refused = shop.refusal(command, OPERATOR)
    assert (refused.kind, refused.code) == (RefusalReason.UNAPPROVED, code)
    assert refused.message == "the merchant is live and waits for the operator's approval"
    # That is not what is said of one that may trade.
    shop.do(ApproveMerchant(), OPERATOR)
    after = shop.books.attempt(shop.book, command, OPERATOR)
    assert getattr(after, "kind", None) is not RefusalReason.UNAPPROVED


def test_it_can_be_read_and_configured() -> None:
    shop = waiting()
    assert claims(shop) == [False, False, False, True, True]
    shop.do(ChangeMerchant(name="Coffee"))
    shop.do(AddWebhook("https://example.com", "sealed"))
    shop.do(InviteUser("ann@example.com"))
    for command in (Refund(ABSENT, 1, ""), Void(ABSENT, 1)):
        assert shop.refusal(command).kind is RefusalReason.NOT_FOUND


def test_the_operator_approves_once_and_for_good() -> None:
    shop = waiting()
    step = shop.do(ApproveMerchant(), OPERATOR)
    assert (step.reply.kind, step.reply.body) == (DoneKind.CHANGED, b"")
    assert claims(shop) == [True] * 5
    assert shop.event_types() == ["merchant.opened", "merchant.approved"]
    assert shop.books.log[-1].origin.startswith('{"app":"operator"')
    again = shop.do(ApproveMerchant(), OPERATOR)
    assert (again.events, again.reply) == ((), step.reply)
    shop.do(ChangeMerchant(name="Coffee"))
    assert claims(shop) == [True] * 5


def test_nobody_else_approves() -> None:
    shop = waiting()
    refused = shop.refusal(ApproveMerchant())
    assert refused.kind is RefusalReason.FORBIDDEN


@pytest.mark.parametrize(
    ("is_test", "needs_approval"), [(True, True), (True, False), (False, False)]
)
def test_test_merchants_and_those_of_before_never_wait(is_test: bool, needs_approval: bool) -> None:
    shop = open_shop(is_test=is_test, needs_approval=needs_approval)
    assert claims(shop) == [True] * 5
    shop.authorised(1)
    assert shop.do(ApproveMerchant(), OPERATOR).events == ()
    assert not any("is_pending" in entry.event for entry in shop.books.log)


def test_approval_is_an_event_of_its_own() -> None:
    shop = waiting()
    (event,) = shop.do(ApproveMerchant(), OPERATOR).events
    assert isinstance(event, MerchantApproved)
    command = opening(shop.app, EUR, PRICING, is_test=False)
    assert shop.refusal(command).message == f"the merchant {shop.book} is open already"
