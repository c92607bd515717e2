"""The documents of events: what happened, whole."""

import pytest

from tests.support.ledger.books import DECLINED, Shop, authorise, open_shop
from tollgate.actors.ledger.law.commands import ChangeMerchant
from tollgate.actors.ledger.law.values import ProcessingError


@pytest.fixture
def shop() -> Shop:
    return open_shop()


@pytest.mark.parametrize("error", [None, DECLINED])
@pytest.mark.parametrize("is_recurring", [False, True])
def test_the_event_of_a_new_transaction(
    shop: Shop, error: ProcessingError | None, is_recurring: bool
) -> None:
    source = shop.authorised(300)
    command = authorise(700, error=error, source=source if is_recurring else None)
    step = shop.do(command)
    event = shop.books.documents("event", shop.book)[-1]
    assert event["type"] == "transaction.created"
    assert event["data"] == {
        "transactionId": max(step.entities),
        "currency": "EUR",
        "amount": 700,
        "recurring": is_recurring,
        "successful": error is None,
        "error": False
        if error is None
        else {
            "code": 8,
            "message": "Declined by the cardholder's bank",
            "client": True,
            "merchant": False,
        },
    }


def test_the_event_of_a_change_says_what_changed(shop: Shop) -> None:
    shop.do(ChangeMerchant(email="new@example.com", descriptor="SHOP"))
    event = shop.books.documents("event", shop.book)[-1]
    assert (event["type"], event["data"]) == ("merchant.changed", {"email": "new@example.com"})
