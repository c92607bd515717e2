"""A card's number and security code, and an app's key, are nowhere once a call is over (part G)."""

import logging
import pickle
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.payments.api import GOOD_CARD, App, PaymentsApi, done
from tests.support.payments.checkout_client import VERSION, CheckoutClient

Merchant = dict[str, Any]
NUMBER = str(GOOD_CARD["number"])
# Distinct enough to be found: the code of the good card is part of many a number. Four digits turn
# up by chance inside ids and digests, which are hexadecimal.
CODE = "7391"
SHOWN_CODE = re.compile(rb"(?<![0-9a-f])%b(?![0-9a-f])" % CODE.encode())


@pytest.fixture
def everything_said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def full_flow(api: PaymentsApi, shop: App, merchant: Merchant) -> list[str]:
    """Payments that work, fail and are refused, by JSON and by form; the bodies of the replies."""
    card = GOOD_CARD | {"code": CODE}
    replies = []
    path = "/sandbox/payments"
    body: dict[str, Any] = {"key": merchant["key"], "amount": 500, "currency": "EUR", "card": card}
    replies.append(api.call("POST", path, json=body, headers={"Idempotency-Key": "p"}))
    replies.append(api.call("POST", path, json=body, headers={"Idempotency-Key": "p"}))
    paid = replies[0].json()["transaction"]["id"]
    replies.append(api.call("POST", path, json=body | {"test": {"card": {"status": "lost"}}}))
    replies.append(api.call("POST", path, json=body | {"amount": 0}))
    replies.append(api.call("POST", path, json=body | {"custom": 5}))
    replies.append(api.call("POST", path, json=body | {"card": card | {"number": NUMBER + "0"}}))
    form = {
        "key": merchant["key"],
        "amount": "5",
        "currency": "EUR",
        "card[number]": NUMBER,
        "card[expiry][month]": "8",
        "card[expiry][year]": "66",
        "card[code]": CODE,
    }
    replies.append(api.call("POST", path, data=form))
    replies.append(api.call("POST", path, data=form | {"card[code]": CODE + "x"}))
    replies.append(api.call("POST", path, data=form | {"card[code][x]": CODE}))
    replies.append(api.call("POST", "/transactions", data=form))
    replies += step_by_step(api, merchant)
    act = {"amount": 100}
    replies.append(api.call("POST", f"/transactions/{paid}/captures", shop, json=act))
    replies.append(api.call("POST", f"/transactions/{paid}/refunds", shop, json=act))
    again = {"transactionId": paid, "amount": 5, "currency": "EUR"}
    replies.append(api.call("POST", f"/merchants/{merchant['id']}/transactions", shop, json=again))
    saved = {"transactionId": paid}
    replies.append(api.call("POST", f"/merchants/{merchant['id']}/cards", shop, json=saved))
    hook = {"url": "https://example.com"}
    replies.append(api.call("POST", f"/merchants/{merchant['id']}/webhooks", shop, json=hook))
    for what in ("transactions", "events", "lines", "audit"):
        query = {"limit": 100}
        replies.append(api.call("GET", f"/merchants/{merchant['id']}/{what}", shop, params=query))
    assert {reply.status_code for reply in replies} == {200, 201, 400}
    return [reply.text for reply in replies]


def step_by_step(api: PaymentsApi, merchant: Merchant) -> list[Any]:
    """The same card by the vault: a payment that works, one that fails, and refusals."""
    client = CheckoutClient(api, merchant, code=CODE)
    replies = [client.pay(), client.post()]
    failing = {"tds": {}, "card": {"status": "lost"}}
    replies.append(CheckoutClient(api, merchant, code=CODE, test=failing).pay())
    odd: tuple[dict[str, Any], ...] = (
        {"type": "pcn", "value": NUMBER + "0000"},
        {"type": "pcsc", "value": CODE + "x"},
        {"type": "pcn", "value": [NUMBER]},
        {"type": CODE, "value": NUMBER, NUMBER: CODE},
        {"value": NUMBER},
    )
    replies += [api.call("POST", "/vault", json=body, headers=VERSION) for body in odd]
    # (who sends a card where a token belongs)
    plain = {"number": NUMBER, "expiry": {"month": 8, "year": 2066}, "code": CODE}
    replies.append(client.post(card=plain))
    return replies


def test_a_card_is_in_no_table_log_order_or_reply(
    api: PaymentsApi,
    shop: App,
    merchant: Merchant,
    books_url: str,
    everything_said: pytest.LogCaptureFixture,
) -> None:
    replies = full_flow(api, shop, merchant)
    places = {
        "tables": contents(Path(books_url.removeprefix("sqlite:///"))),
        "files": b"".join(
            file.read_bytes()
            for file in Path(books_url.removeprefix("sqlite:///")).parent.iterdir()
        ),
        "logs": everything_said.text.encode(),
        "orders": b"".join(pickle.dumps(order) for order in api.ledger.orders),
        "orders, shown": repr(api.ledger.orders).encode(),
        "replies": "\n".join(replies).encode(),
    }
    assert len(places["tables"]) > 10_000
    assert len(api.ledger.orders) > 8
    for name, content in places.items():
        assert NUMBER.encode() not in content, name
        assert not SHOWN_CODE.search(content), name


def test_an_app_s_key_is_in_no_table_log_or_order(
    api: PaymentsApi,
    shop: App,
    merchant: Merchant,
    books_url: str,
    everything_said: pytest.LogCaptureFixture,
) -> None:
    key = {"Idempotency-Key": "3c1e9e6a-0b07-4b33-a1a8-cd3be0b2ae35"}
    other = done(api.call("POST", "/apps", headers=key))["app"]["key"]
    rotated = done(api.call("POST", f"/apps/{shop.id}/keys", shop, headers=key))["app"]["key"]
    hook = {"url": "https://example.com"}
    path = f"/merchants/{merchant['id']}/webhooks"
    secret = done(api.call("POST", path, shop, json=hook, headers=key))["webhook"]["secret"]
    full_flow(api, shop, merchant)
    written = contents(Path(books_url.removeprefix("sqlite:///")))
    written += everything_said.text.encode() + repr(api.ledger.orders).encode()
    for each in (shop.key, other, rotated, secret):
        assert each.encode() not in written
    assert shop.key[-4:].encode() in written  # (what may be shown is there)


def contents(file: Path) -> bytes:
    """All values of all tables."""
    with sqlite3.connect(file) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        rows = [
            row
            for (table,) in tables.fetchall()
            for row in connection.execute(f'SELECT * FROM "{table}"')
        ]
    return repr(rows).encode()
