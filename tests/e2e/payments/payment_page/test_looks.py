"""The page in each of its states: what is wrong is said where it is, and everybody can read it."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.support.payments.page_steps import Made, bank, heading, open_link, pay
from tests.support.payments.served import ServedPayments


def test_what_is_wrong_with_a_field_is_said_at_the_field(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served)
    page.get_by_role("button", name="Pay €12.50").click()
    number = page.get_by_label("Card number")
    expect(number).to_be_focused()
    expect(number).to_have_accessible_description("Enter the card number.")
    expect(page.get_by_label("Expiry date")).to_have_accessible_description(
        "Enter the expiry date."
    )
    number.press_sequentially("4100")
    expect(number).to_have_attribute("aria-invalid", "true")
    number.press_sequentially("000000000000")
    expect(number).not_to_have_attribute("aria-invalid", "true")
    page.get_by_label("Expiry date").fill("13 / 30")
    page.get_by_label("Expiry date").blur()
    expect(page.locator("#expiry-problem")).to_contain_text("as month and year, like 08 / 29")
    page.get_by_label("Expiry date").fill("01 / 20")
    page.get_by_label("Expiry date").blur()
    expect(page.locator("#expiry-problem")).to_contain_text("has expired")
    assert new() == []


def test_the_fields_know_cards(page: Page, served: ServedPayments) -> None:
    open_link(page, served)
    problems = page.evaluate(
        """async () => {
          const card = await import("/pay/card.js");
          const live = (number) => card.numberProblem(number, false);
          return [
            live("4242 4242 4242 4242"), live("4242 4242 4242 4241"), live("378282246310005"),
            live("4242"), live("42424242424242"), live("2221000000000009"),
            card.grouped("378282246310005"), card.schemeOf("2720").name, card.schemeOf("2721").name,
            card.codeProblem("1234", "378282246310005"), card.codeProblem("1234", "4242"),
            JSON.stringify(card.expiryOf("8/2066")), JSON.stringify(card.expiryOf("0866")),
            JSON.stringify(card.expiryOf("00/30")),
          ];
        }"""
    )
    assert problems == [
        *("", "field.number_wrong", "", "field.number_short", "field.number_wrong", ""),
        *("3782 822463 10005", "Mastercard", "", "", "field.code_short"),
        *('{"month":8,"year":2066}', '{"month":8,"year":2066}', "null"),
    ]


def require_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_accessible(
    page: Page, served: ServedPayments, scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    open_link(page, served, value="", currency="DKK")
    require_accessible(page)
    open_link(page, served, value="x", redirect="ftp://shop.example")
    require_accessible(page)
    open_link(page, served, text="Two coffees", recurring="y", reference=scheme)
    page.get_by_role("button", name="Pay €12.50").click()
    require_accessible(page)
    pay(page)
    bank(page, "Fail").wait_for()
    require_accessible(page)
    bank(page, "Fail").click()
    expect(heading(page, "The payment was not made")).to_be_visible()
    require_accessible(page)
    pay(page)
    bank(page, "Succeed").click()
    expect(heading(page, "Paid")).to_be_visible()
    require_accessible(page)


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_nothing_is_wider_than_the_window(page: Page, served: ServedPayments, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    long = {"text": "Donaudampfschifffahrt" * 8, "redirect": f"https://{'shop-' * 12}.example/"}
    for link in (
        {**long, "value": "90071992547409.91", "locale": "de"},
        {"value": ""},
        {"value": "x" * 60},
    ):
        open_link(page, served, **link)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
