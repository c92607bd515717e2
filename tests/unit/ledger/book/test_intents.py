"""Moves that wait for a card network: booked when it agrees, and not before (I1)."""

import json

import pytest

from tests.support.ledger.books import (
    ABSENT,
    DECLINED,
    EUR,
    NOW_MS,
    USD,
    Shop,
    authorise,
    open_shop,
    rate,
)
from tollgate.actors.ledger.book.entities import Intent
from tollgate.actors.ledger.book.machine import OrderEffect
from tollgate.actors.ledger.law.commands import (
    Authorise,
    Capture,
    Command,
    Conclude,
    Intend,
    OpenDispute,
    Refund,
    Void,
)
from tollgate.actors.ledger.law.ids import result_of
from tollgate.actors.ledger.law.notices import authorisation_id
from tollgate.actors.ledger.law.outcomes import DoneKind, Refusal, RefusalReason
from tollgate.actors.ledger.law.values import (
    NOBODY,
    OPERATOR,
    EntityId,
    NetworkAction,
    NetworkApproved,
    NetworkDeclined,
    NetworkMark,
)

AGREED = NetworkApproved("reference-2")
REFUSED = NetworkDeclined(DECLINED)


@pytest.fixture
def shop() -> Shop:
    return open_shop()


def intend(shop: Shop, command: Authorise | Capture | Refund | Void, **options: str) -> Intent:
    step = shop.do(Intend(command, "acquirer"), **options)
    assert step.reply.kind is DoneKind.INTENDED
    intent = shop.books.entity(EntityId(json.loads(step.reply.body)["intent"]["id"]))
    assert isinstance(intent, Intent)
    return intent


def settle(shop: Shop, intent: Intent, decision: NetworkApproved | NetworkDeclined) -> OrderEffect:
    return shop.do(Conclude(intent.id, decision), OPERATOR)


def at_the_network(shop: Shop, amount: int) -> EntityId:
    """A transaction that the network has authorised."""
    intent = intend(shop, authorise(amount))
    step = settle(shop, intent, NetworkApproved("reference-1", "token-9", "full"))
    return EntityId(json.loads(step.reply.body)["transaction"]["id"])


def capture(transaction: EntityId, amount: int) -> Capture:
    return Capture(transaction, amount, None, "", None, None)


def test_a_transaction_is_found_by_the_networks_reference(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    (found,) = shop.books.documents("authorisation", shop.book)
    assert found["id"] == authorisation_id(shop.book, "acquirer", "reference-1")
    assert found["transactionId"] == transaction


def test_an_authorisation_is_a_transaction_once_the_network_agrees(shop: Shop) -> None:
    intent = intend(shop, authorise(500))
    assert (intent.action, intent.currency, intent.amount, intent.exponent, intent.follows) == (
        *(NetworkAction.AUTHORISE, EUR, 500, 2, ""),
    )
    assert shop.books.documents("transaction") == []
    step = settle(shop, intent, NetworkApproved("reference-1", "token-9", "full"))
    (made,) = shop.books.documents("transaction")
    assert json.loads(step.reply.body) == {"transaction": {"id": made["id"]}}
    assert (made["pendingAmount"], made["tds"], made["successful"]) == (500, "full", True)
    transaction = shop.transaction(made["id"])
    assert transaction.network == NetworkMark("acquirer", "reference-1")
    assert transaction.card.network_token == "token-9"
    assert shop.books.entity(intent.id) is None
    assert shop.books.documents("intent") == []


def test_an_authorisation_that_is_refused_is_a_failed_attempt(shop: Shop) -> None:
    step = settle(shop, intend(shop, authorise(500)), REFUSED)
    assert step.reply.kind is DoneKind.ATTEMPT_FAILED
    (made,) = shop.books.documents("transaction")
    assert (made["successful"], made["pendingAmount"]) == (False, 0)
    assert json.loads(step.reply.body)["response"] == {"transaction": {"id": made["id"]}}


def test_a_failed_attempt_on_a_source_is_counted_when_it_fails(shop: Shop) -> None:
    source = shop.authorised(100)
    intent = intend(shop, authorise(100, source=source))
    assert shop.transaction(source).failures == 0
    settle(shop, intent, REFUSED)
    assert shop.transaction(source).failures == 1


def test_what_follows_names_the_reference_of_the_authorisation(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    assert intend(shop, capture(transaction, 200)).follows == "reference-1"
    again = intend(
        shop, authorise(100, source=transaction, card=shop.transaction(transaction).card)
    )
    assert again.follows == "reference-1"


def test_nothing_is_booked_before_the_network_agrees(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    intent = intend(shop, capture(transaction, 200))
    waiting = shop.books.document("transaction", transaction)
    assert (waiting["pendingAmount"], waiting["capturedAmount"], waiting["trail"]) == (500, 0, [])
    assert waiting["intentId"] == intent.id
    assert (shop.balance, shop.lines) == (0, [])
    (document,) = shop.books.documents("intent")
    assert document == {
        "id": intent.id,
        "merchantId": shop.book,
        "test": True,
        "created": document["created"],
        "capture": True,
        "amount": {"currency": "EUR", "amount": 200},
        "transactionId": transaction,
    }
    step = settle(shop, intent, AGREED)
    booked = shop.books.document("transaction", transaction)
    assert json.loads(step.reply.body) == {"transaction": booked}
    assert (booked["pendingAmount"], booked["capturedAmount"]) == (300, 200)
    assert "intentId" not in booked
    assert [line["balance"] for line in shop.lines] == [shop.balance]


@pytest.mark.parametrize("kind", ["capture", "refund", "void"])
def test_a_move_that_the_network_refuses_changes_no_money(shop: Shop, kind: str) -> None:
    transaction = at_the_network(shop, 500)
    shop.capture(transaction, 100)
    commands: dict[str, Capture | Refund | Void] = {
        "capture": capture(transaction, 50),
        "refund": Refund(transaction, 50, ""),
        "void": Void(transaction, 50),
    }
    before = shop.books.document("transaction", transaction)
    step = settle(shop, intend(shop, commands[kind]), REFUSED)
    assert step.reply.kind is DoneKind.ATTEMPT_FAILED
    assert json.loads(step.reply.body)["code"] == DECLINED.code
    assert shop.books.document("transaction", transaction) == before
    assert shop.event_types()[-2:] == ["network.intended", "network.refused"]


def test_a_refund_and_a_void_are_booked_when_the_network_agrees(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    shop.capture(transaction, 100)
    settle(shop, intend(shop, Refund(transaction, 60, "")), AGREED)
    settle(shop, intend(shop, Void(transaction, 400)), AGREED)
    made = shop.books.document("transaction", transaction)
    assert (made["refundedAmount"], made["voidedAmount"], made["pendingAmount"]) == (60, 400, 0)


def test_a_transaction_with_an_open_intent_allows_nothing_else(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    shop.capture(transaction, 100)
    intent = intend(shop, Refund(transaction, 100, ""))
    others: list[Command] = [
        capture(transaction, 10),
        Refund(transaction, 10, ""),
        Void(transaction, 10),
        Intend(capture(transaction, 10), "acquirer"),
        OpenDispute(transaction, 10, 1, "", NOW_MS, None),
    ]
    for command in others:
        refused = shop.refusal(command, OPERATOR, is_checked=True)
        assert refused.kind is RefusalReason.AT_NETWORK
    settle(shop, intent, AGREED)
    shop.do(capture(transaction, 10))


def test_an_intent_is_settled_once_and_under_one_operation(shop: Shop) -> None:
    intent = intend(shop, authorise(500))
    step = settle(shop, intent, AGREED)
    assert {entry.operation for entry in step.entries} == {result_of(intent.id)}
    for decision in (AGREED, REFUSED):
        refused = shop.refusal(Conclude(intent.id, decision), OPERATOR)
        assert refused.kind is RefusalReason.NOT_FOUND
    assert shop.refusal(Conclude(ABSENT, AGREED), OPERATOR).kind is RefusalReason.NOT_FOUND


@pytest.mark.parametrize("app", [NOBODY, None])
def test_only_the_house_settles(shop: Shop, app: EntityId | None) -> None:
    intent = intend(shop, authorise(500))
    refused = shop.refusal(Conclude(intent.id, AGREED), app)
    assert refused.kind is RefusalReason.FORBIDDEN


def test_an_intent_is_refused_wherever_its_move_would_be(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    for command in (capture(transaction, 501), Refund(transaction, 1, ""), Void(ABSENT, 1)):
        assert shop.refusal(Intend(command, "acquirer")) == shop.refusal(command)
    assert shop.refusal(Intend(authorise(1), "acquirer"), ABSENT).kind is RefusalReason.FORBIDDEN


def test_a_capture_is_booked_at_the_rate_of_its_intent(shop: Shop) -> None:
    intent = intend(shop, authorise(500, USD))
    step = settle(shop, intent, AGREED)
    transaction = EntityId(json.loads(step.reply.body)["transaction"]["id"])
    half = rate(USD, EUR, 1, 2)
    settle(shop, intend(shop, Capture(transaction, 500, None, "", half, None)), AGREED)
    assert shop.lines[-1]["exchange"]["amount"] == 250


def test_equal_captures_are_suspected_unless_they_have_keys(shop: Shop) -> None:
    transaction = at_the_network(shop, 500)
    for key in ("", "k-1", ""):
        settle(shop, intend(shop, capture(transaction, 100), idempotency_key=key), AGREED)
    suspicions = [each for each in shop.event_types() if each.endswith("possible_duplicate")]
    assert len(suspicions) == 1


def test_an_intent_knows_whether_its_outcome_can_be_asked_for(shop: Shop) -> None:
    assert not intend(shop, authorise(1)).has_key
    assert intend(shop, authorise(1), idempotency_key="k-1").has_key
    assert isinstance(shop.refusal(Intend(authorise(0), "acquirer")), Refusal)
