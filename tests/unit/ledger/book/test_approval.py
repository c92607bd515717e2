"""A live merchant waits for the operator's approval (part B, Approval)."""

from dataclasses import replace

import pytest

from tests.support.ledger.books import ABSENT, EUR, PRICING, Shop, authorise, open_shop, opening
from tollgate.actors.ledger.law.commands import (
    Capture,
    ChangeMerchant,
    Command,
    InviteUser,
    PayOut,
    Refund,
    RejectMerchant,
    SaveCard,
    Void,
)
from tollgate.actors.ledger.law.events import MerchantApproved
from tollgate.actors.ledger.law.outcomes import DoneKind, RefusalReason
from tollgate.actors.ledger.law.values import OPERATOR
from tollgate.actors.ledger.law.webhook_law import AddWebhook

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
    shop.do(shop.approval(), OPERATOR)
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
    step = shop.do(shop.approval(), OPERATOR)
    assert (step.reply.kind, step.reply.body) == (DoneKind.CHANGED, b"")
    assert claims(shop) == [True] * 5
    assert shop.event_types() == ["merchant.opened", "merchant.approved"]
    assert shop.books.log[-1].origin.startswith('{"app":"operator"')
    again = shop.do(shop.approval(), OPERATOR)
    assert (again.events, again.reply) == ((), step.reply)
    shop.do(ChangeMerchant(name="Coffee"))
    assert claims(shop) == [True] * 5


@pytest.mark.parametrize(
    "change",
    [ChangeMerchant(name="x"), ChangeMerchant(email="x@x.org"), ChangeMerchant(None, "", "x")],
    ids=["name", "email", "descriptor"],
)
def test_nothing_is_approved_but_what_was_read(change: ChangeMerchant) -> None:
    shop = waiting()
    read = shop.approval()
    shop.do(change)
    refused = shop.refusal(read, OPERATOR)
    assert refused.kind is RefusalReason.LOST_RACE
    assert refused.message == "the merchant is not as this version has it: look at it again"
    (event,) = shop.do(shop.approval(), OPERATOR).events
    assert isinstance(event, MerchantApproved)
    assert event.version == shop.approval().version != read.version
    # Somebody else who read what was before is not told that this was approved.
    assert shop.refusal(read, OPERATOR).kind is RefusalReason.LOST_RACE


def test_another_merchant_with_the_same_texts_has_another_version() -> None:
    assert waiting().approval() == waiting().approval()
    shop = waiting()
    twin = open_shop(is_test=False, needs_approval=True, books=shop.books)
    assert shop.approval() != twin.approval()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (ChangeMerchant(name="x", needs_approval=True), "name"),
        (ChangeMerchant(email="x@example.com", needs_approval=True), "email"),
        (ChangeMerchant(descriptor="x", needs_approval=True), "descriptor"),
    ],
)
def test_what_was_approved_is_changed_by_the_operator(change: ChangeMerchant, field: str) -> None:
    shop = waiting()
    shop.do(replace(change, **{field: "before"}))
    shop.do(shop.approval(), OPERATOR)
    refused = shop.refusal(change)
    assert (refused.kind, refused.field) == (RefusalReason.CONSTRAINT, field)
    assert "only the operator changes it now" in refused.message
    # What is so already is no change.
    assert shop.do(replace(change, **{field: "before"})).events == ()
    assert shop.do(replace(change, needs_approval=False), OPERATOR).events


def test_test_merchants_are_changed_at_will() -> None:
    shop = open_shop()
    assert shop.do(ChangeMerchant(name="x", needs_approval=True)).events


def test_one_that_is_rejected_does_not_trade() -> None:
    shop = waiting()
    step = shop.do(RejectMerchant(), OPERATOR)
    assert (step.reply.kind, step.reply.body) == (DoneKind.CHANGED, b"")
    assert shop.do(RejectMerchant(), OPERATOR).events == ()
    assert shop.event_types() == ["merchant.opened", "merchant.rejected"]
    assert shop.books.document("merchant", shop.book)["rejected"] is True
    assert claims(shop) == [False, False, False, True, True]
    refused = shop.refusal(authorise(1), OPERATOR)
    assert refused.message == "the merchant is live, and the operator has rejected it"
    shop.do(shop.approval(), OPERATOR)
    assert claims(shop) == [True] * 5
    assert "rejected" not in shop.books.document("merchant", shop.book)


def test_one_that_may_trade_is_not_rejected() -> None:
    shop = waiting()
    shop.do(shop.approval(), OPERATOR)
    for each in (shop, open_shop()):
        assert "only one that waits is rejected" in each.refusal(RejectMerchant(), OPERATOR).message


def test_nobody_else_approves() -> None:
    shop = waiting()
    assert shop.refusal(RejectMerchant()).kind is RefusalReason.FORBIDDEN
    refused = shop.refusal(shop.approval())
    assert refused.kind is RefusalReason.FORBIDDEN


@pytest.mark.parametrize(
    ("is_test", "needs_approval"), [(True, True), (True, False), (False, False)]
)
def test_test_merchants_and_those_of_before_never_wait(is_test: bool, needs_approval: bool) -> None:
    shop = open_shop(is_test=is_test, needs_approval=needs_approval)
    assert claims(shop) == [True] * 5
    shop.authorised(1)
    assert shop.do(shop.approval(), OPERATOR).events == ()
    assert not any("is_pending" in entry.event for entry in shop.books.log)


def test_approval_is_an_event_of_its_own() -> None:
    shop = waiting()
    (event,) = shop.do(shop.approval(), OPERATOR).events
    assert isinstance(event, MerchantApproved)
    command = opening(shop.app, EUR, PRICING, is_test=False)
    assert shop.refusal(command).message == f"the merchant {shop.book} is open already"
