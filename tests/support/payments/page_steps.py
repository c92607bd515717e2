"""What a customer does on the payment page, and what they see."""

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.support.payments.served import ServedPayments

Made = Callable[[], list[dict[str, Any]]]


def open_link(page: Page, served: ServedPayments, **query: str) -> None:
    page.goto(served.link(**{"currency": "EUR", "value": "12.50", "locale": "en", **query}))


def pay(page: Page, outcome: str = "The payment succeeds") -> None:
    page.get_by_role("button", name="Fill in the test card").click()
    page.get_by_label("What should happen").select_option(label=outcome)
    page.get_by_role("button", name="Pay €12.50").click()


def bank(page: Page, button: str) -> Locator:
    """A button of the bank's page."""
    return page.frame_locator("iframe.bank").get_by_role("button", name=button)


def heading(page: Page, name: str) -> Locator:
    return page.get_by_role("heading", name=name, exact=True)


def expect_paid(page: Page, made: Made) -> dict[str, Any]:
    """The receipt is there, of the one transaction that was made."""
    expect(heading(page, "Paid")).to_be_focused()
    [transaction] = made()
    expect(page.locator("#done-transaction")).to_have_text(transaction["id"])
    return transaction
