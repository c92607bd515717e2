"""A customer's payment in a browser, step by step, as its client sees it (part H)."""

from typing import Any

from tests.support.payments.api import App, PaymentsApi
from tests.support.payments.checkout_client import CheckoutClient

Merchant = dict[str, Any]


def test_a_payment_takes_seven_steps_and_ten_hints(
    api: PaymentsApi, shop: App, merchant: Merchant
) -> None:
    client = CheckoutClient(api, merchant, custom={"order": 7})
    response = client.pay()
    assert client.seen == [
        (0, "authorize-integration", "fetch"),
        (1, "tds-enrolled", "fetch"),
        (2, "tds-fingerprint", "background-iframe"),
        (6, "tds-pre-challenge", "fetch"),
        (7, "tds-challenge", "iframe"),
        (8, "tds-post-challenge", "fetch"),
        (9, "authorize", "fetch"),
    ]
    assert len(client.hints) == 10
    paid = response.json()["authorizationId"]
    transaction = api.transaction(shop, paid)
    assert (transaction["amount"], transaction["currency"]) == (1_000, "EUR")
    assert (transaction["tds"], transaction["custom"]) == ("full", {"order": 7})
    assert [client.post().json() for _ in range(10)] == [{"authorizationId": paid}] * 10
    assert len(api.listed(f"/merchants/{merchant['id']}/transactions", shop)) == 1
