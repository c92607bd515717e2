"""The page at its short address, through HAProxy and Serve, on a node as an operator starts it."""

import httpx
from playwright.sync_api import Page, expect

from tests.support.payments.api import MERCHANT
from tests.support.payments.page_steps import heading, pay
from tests.support.processes.tollgate import TollgateProcess


def test_a_link_without_its_slash_is_paid_on_a_node(page: Page, tollgate: TollgateProcess) -> None:
    with httpx.Client(base_url=tollgate.url("PORT", "/payments"), timeout=60) as client:
        client.auth = httpx.BasicAuth("", client.post("/apps").json()["app"]["key"])
        body = {**MERCHANT, "name": "Tea & Cake"}
        merchant = client.post("/merchants", json=body).json()["merchant"]
        link = f"/pay?key={merchant['key']}&test=1&currency=EUR&value=12.50&locale=en"
        page.goto(tollgate.url("PORT", link))
        assert "/pay/?key=" in page.url
        pay(page)
        expect(heading(page, "Paid")).to_be_visible()
        shown = page.locator("#done-transaction").inner_text()
        paid = client.get(f"/transactions/{shown}").json()["transaction"]
    assert (paid["amount"], paid["successful"], paid["tds"]) == (1250, True, "full")
