"""Moves whose answer does not come: unknown, enquired, then told by the same key (I1 to I4)."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.support.payments.api import GOOD_CARD, OPERATOR_KEY, App, PaymentsApi, done
from tests.support.payments.enquiries import enquire
from tollgate.actors.ledger.law.commands import Conclude, Intend
from tollgate.actors.ledger.proof.verification import verify_all
from tollgate.actors.ledger.storage.open_intents import SqlOpenIntents

Merchant = Mapping[str, Any]
LATE, SLOW, NEVER, REFUSED = 667_001, 667_002, 667_003, 667_004
KEY = {"idempotency-key": "order-1"}


def pay(api: PaymentsApi, merchant: Merchant, amount: int, **headers: str) -> httpx.Response:
    body = {"key": merchant["key"], "amount": amount, "currency": "DKK", "card": GOOD_CARD}
    found: httpx.Response = api.call("POST", "/sandbox/payments", json=body, headers=headers)
    return found


def capture(api: PaymentsApi, app: App, transaction: str, amount: int, **headers: str) -> Any:
    path = f"/transactions/{transaction}/captures"
    return api.call("POST", path, app, json={"amount": amount}, headers=headers)


def require_unknown(response: httpx.Response) -> None:
    assert response.status_code == 503, response.text
    assert response.json()["code"] == "OUTCOME_UNKNOWN"
    assert int(response.headers["retry-after"]) > 0


@pytest.fixture
def paid(api: PaymentsApi, merchant: Merchant) -> str:
    return api.pay(merchant, 2_000_000)


def test_a_capture_without_an_answer_is_told_by_the_same_key(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    require_unknown(capture(api, shop, paid, LATE, **KEY))
    require_unknown(capture(api, shop, paid, LATE, **KEY))
    waiting = api.transaction(shop, paid)
    assert (waiting["capturedAmount"], waiting["pendingAmount"]) == (0, 2_000_000)
    assert waiting["intentId"]
    assert api.listed(f"/merchants/{merchant['id']}/lines", shop) == []
    enquire(api)
    response = capture(api, shop, paid, LATE, **KEY)
    assert (response.status_code, response.headers["idempotency-replayed"]) == (201, "true")
    assert response.json()["transaction"] == api.transaction(shop, paid)
    assert api.transaction(shop, paid)["capturedAmount"] == LATE
    assert len(api.listed(f"/merchants/{merchant['id']}/lines", shop)) == 1
    assert capture(api, shop, paid, LATE, **KEY).content == response.content
    assert capture(api, shop, paid, 1, **KEY).status_code == 422


def test_the_key_is_looked_up_before_the_network(api: PaymentsApi, shop: App, paid: str) -> None:
    for _ in range(3):
        capture(api, shop, paid, LATE, **KEY)
    intents = [each for each in api.ledger.orders if isinstance(each.command, Intend)]
    assert len({each.idempotency_key for each in intents}) == 1
    (event,) = [
        each
        for each in api.listed(f"/merchants/{intents[0].book}/events", shop)
        if each["type"] == "network.intended"
    ]
    assert event["data"]["amount"] == LATE


@pytest.mark.parametrize("amount", [NEVER, REFUSED])
def test_a_capture_that_was_not_done_books_nothing(
    api: PaymentsApi, shop: App, paid: str, amount: int
) -> None:
    before = api.transaction(shop, paid)
    require_unknown(capture(api, shop, paid, amount, **KEY))
    enquire(api)
    response = capture(api, shop, paid, amount, **KEY)
    assert response.status_code == 400
    assert response.json()["code"] == {NEVER: 12, REFUSED: 11}[amount]
    assert response.json()["response"] == {"transaction": {"id": paid}}
    assert api.transaction(shop, paid) == before
    assert capture(api, shop, paid, 100).status_code == 201


def test_another_move_waits_for_the_first(api: PaymentsApi, shop: App, paid: str) -> None:
    require_unknown(capture(api, shop, paid, LATE))
    for what in ("captures", "voids"):
        path = f"/transactions/{paid}/{what}"
        assert api.call("POST", path, shop, json={"amount": 1}).status_code == 409
    enquire(api)
    assert capture(api, shop, paid, 1).status_code == 201


@pytest.mark.parametrize("what", ["refunds", "voids"])
def test_refunds_and_voids_wait_too(api: PaymentsApi, shop: App, paid: str, what: str) -> None:
    if what == "refunds":
        capture(api, shop, paid, 2_000_000)
    response = api.call("POST", f"/transactions/{paid}/{what}", shop, json={"amount": LATE})
    require_unknown(response)
    enquire(api)
    name = {"refunds": "refundedAmount", "voids": "voidedAmount"}[what]
    assert api.transaction(shop, paid)[name] == LATE


def test_a_payment_without_an_answer_is_a_transaction_once_it_is_known(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    require_unknown(pay(api, merchant, LATE, **KEY))
    assert api.listed(f"/merchants/{merchant['id']}/transactions", shop) == []
    enquire(api)
    made = done(pay(api, merchant, LATE, **KEY))["transaction"]["id"]
    (found,) = api.listed(f"/merchants/{merchant['id']}/transactions", shop)
    assert (found["id"], found["pendingAmount"], found["successful"]) == (made, LATE, True)
    assert capture(api, shop, made, 5).status_code == 201


def test_a_payment_that_nobody_can_ask_for_is_reversed(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    require_unknown(pay(api, merchant, LATE))
    enquire(api)
    (found,) = api.listed(f"/merchants/{merchant['id']}/transactions", shop)
    assert (found["successful"], found["error"]["code"], found["pendingAmount"]) == (False, 12, 0)


def test_a_server_s_payment_is_enquired_as_well(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    path = f"/merchants/{merchant['id']}/transactions"
    body = {"transactionId": paid, "currency": "DKK", "amount": SLOW}
    require_unknown(api.call("POST", path, shop, json=body, headers=KEY))
    enquire(api)
    require_unknown(api.call("POST", path, shop, json=body, headers=KEY))
    enquire(api, 60)
    made = done(api.call("POST", path, shop, json=body, headers=KEY))["transaction"]["id"]
    assert api.transaction(shop, made)["recurring"] is True


def test_an_intent_is_left_alone_while_its_call_may_be_waiting(
    api: PaymentsApi, shop: App, paid: str
) -> None:
    require_unknown(capture(api, shop, paid, NEVER))
    enquire(api, 1.0)
    assert not [each for each in api.ledger.orders if isinstance(each.command, Conclude)]
    enquire(api, 10.0)
    assert "intentId" not in api.transaction(shop, paid)


def test_a_second_process_enquires_nothing_that_is_not_due(
    api: PaymentsApi, shop: App, paid: str
) -> None:
    require_unknown(capture(api, shop, paid, SLOW))
    store, now_ms = SqlOpenIntents(api.database), int(api.clock.now_s() * 1000)
    (claimed,) = api.runner.run(store.claim(now_ms, 10))
    assert (claimed.attempts, claimed.intent.amount) == (1, SLOW)
    assert api.runner.run(store.count()) == 1
    assert api.runner.run(store.claim(now_ms, 10)) == []
    (again,) = api.runner.run(store.claim(now_ms + 2_000, 10))
    assert again.attempts == 2
    assert api.runner.run(store.claim(now_ms + 5_999, 10)) == []
    enquire(api, 60)
    api.runner.run(store.forget_settled())
    assert api.runner.run(store.oldest_ms()) is None
    assert api.runner.run(store.count()) == 0


def test_the_books_are_sound_with_open_and_settled_intents(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    for amount in (LATE, REFUSED):
        require_unknown(capture(api, shop, paid, amount, **KEY | {"idempotency-key": str(amount)}))
        assert findings(api) == ()
        enquire(api)
        assert findings(api) == ()
    require_unknown(pay(api, merchant, LATE))
    enquire(api)
    require_unknown(pay(api, merchant, SLOW, **KEY))
    assert findings(api) == ()


def test_a_fee_is_that_of_the_intent_though_the_merchant_is_priced_meanwhile(
    api: PaymentsApi, shop: App, merchant: Merchant, paid: str
) -> None:
    require_unknown(capture(api, shop, paid, LATE, **KEY))
    price = {"ratePpm": 0, "flat": 7, "dispute": 0}
    done(api.call("PUT", f"/operator/merchants/{merchant['id']}/pricing", OPERATOR_KEY, json=price))
    enquire(api)
    capture(api, shop, paid, 1_000)
    waited, later = api.transaction(shop, paid)["trail"]
    assert waited["fee"]["rate"] > 0
    assert later["fee"] == {"flat": 7, "rate": 0}
    assert findings(api) == ()


def findings(api: PaymentsApi) -> object:
    """Of a verification of all that is written."""
    now_ms = int(api.clock.now_s() * 1000)
    return api.runner.run(verify_all(api.database, lambda *_: None, now_ms)).findings
