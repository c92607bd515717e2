"""A customer's payment through HAProxy and a replica; then the card is nowhere on the disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.payments.tills import MERCHANT
from tests.support.payments.checkout_client import CheckoutClient
from tests.support.processes.tollgate import TollgateProcess

NUMBER, CODE = "4100000000000000", "7391"


class NoClock:
    """Time goes by itself, and no test here waits for it."""

    def advance(self, seconds: float) -> None:
        raise AssertionError(f"{seconds} s would have to pass")


class Browser:
    """The calls of a browser."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.clock = NoClock()

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.client.request(method, path, **options)


def test_a_customer_pays_step_by_step(tollgate: TollgateProcess) -> None:
    base = tollgate.url("PORT", "/payments")
    with httpx.Client(base_url=base, timeout=20) as client:
        key = client.post("/apps").raise_for_status().json()["app"]["key"]
        auth = httpx.BasicAuth("", key)
        opened = client.post("/merchants", json=MERCHANT, auth=auth).raise_for_status()
        checkout = CheckoutClient(Browser(client), opened.json()["merchant"], CODE)
        paid = checkout.pay().json()["authorizationId"]
        assert len(checkout.hints) == 10
        found = client.get(f"/transactions/{paid}", auth=auth).json()["transaction"]
        assert (found["tds"], found["amount"]) == ("full", 1_000)
        frame = frame_of(client, opened.json()["merchant"])
        assert frame["action"] == f"{base}/payments/frames/browser"
        asked = client.options("/payments", headers={"Origin": "https://shop.example"})
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "*"
    written = [
        file
        for file in Path(tollgate.data).rglob("*")
        if file.is_file() and NUMBER.encode() in file.read_bytes()
    ]
    assert written == []
    assert NUMBER not in tollgate.output()


def frame_of(client: httpx.Client, merchant: Mapping[str, Any]) -> dict[str, Any]:
    """The hidden frame of another payment."""
    checkout = CheckoutClient(Browser(client), merchant, CODE)
    while len(checkout.hints) < 2:
        checkout.step()
    frame: dict[str, Any] = checkout.post(
        "/payments/challenges/tds-fingerprint/background-iframe"
    ).json()
    return frame
