"""Payments on the page as customers make them: every end, and what happens to one on the way:
reloads, other windows, double clicks, no answers, time.

The API runs in this process, behind the page, on books of its own.
"""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.payments.page_steps import Made, bank, expect_paid, heading, open_link, pay
from tests.support.payments.served import ServedPayments

# (the bank's question and the payment itself; what is between them is the same again)
STEPS = (
    *(
        pytest.param(step, marks=pytest.mark.repetition)
        for step in (
            "authorize-integration",
            "tds-enrolled",
            "tds-fingerprint",
            "tds-pre-challenge",
            "tds-post-challenge",
        )
    ),
    "tds-challenge",
    "authorize",
)
# (a window keeps its name when it is loaded again)
LOSES_ONE_ANSWER = """
const answered = window.fetch;
window.fetch = async (...call) => {
  const answer = await answered(...call);
  if (!call[0].includes("/challenges/STEP/") || window.name) return answer;
  window.name = "lost";
  console.log("lost");
  return new Promise(() => {});
};
"""
SHOP = "https://shop.example"


def test_a_card_is_typed_and_paid_with_by_keyboard(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served, reference="order 7", text="Two coffees")
    number, expiry, code = (
        page.get_by_label(name, exact=True)
        for name in ("Card number", "Expiry date", "Security code")
    )
    while not number.evaluate("field => field === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.type("4100000000000000")
    expect(number).to_have_value("4100 0000 0000 0000")
    expect(page.locator("#scheme")).to_have_text("Visa")
    page.keyboard.press("Tab")
    page.keyboard.type("866")
    expect(expiry).to_have_value("08 / 66")
    page.keyboard.press("Tab")
    page.keyboard.type("123")
    expect(code).to_have_value("123")
    page.keyboard.press("Enter")
    transaction = expect_paid(page, new)
    assert (transaction["amount"], transaction["currency"]) == (1250, "EUR")
    assert transaction["custom"] == {"source": "payment page", "reference": "order 7"}
    assert transaction["card"]["expiry"] == "2066-08-31T23:59:59.999Z"
    assert transaction["tds"] == "full"
    expect(page.locator("#done-card")).to_have_text("Visa ending in 0000")
    stored = page.evaluate("JSON.stringify([{...sessionStorage}, {...localStorage}])")
    assert "4100" not in stored
    assert "token" not in stored


def test_after_every_refusal_there_is_a_way_on(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served)
    for outcome, told in (
        ("Not enough money", "not enough money"),
        ("Over the card's limit", "more than this card allows"),
        ("The card is blocked", "does not allow payments"),
        ("The card has expired", "has expired"),
        ("The security code is wrong", "security code is not right"),
        ("The kind of card is not taken", "not taken here"),
        ("3-D Secure fails", "could not confirm that it was you"),
    ):
        pay(page, outcome)
        expect(page.locator("#notice-text")).to_contain_text(told)
        notice = page.get_by_role("region", name="The payment was not made")
        expect(notice).to_be_focused()
        expect(notice).to_contain_text("You have not been charged.")
        expect(page.get_by_label("Security code")).to_have_value("")
    assert new() == []
    pay(page)
    expect_paid(page, new)


def test_every_end_of_3d_secure(page: Page, served: ServedPayments, new: Made) -> None:
    open_link(page, served, recurring="y")
    expect(page.locator(".consent")).to_contain_text("may charge this card again")
    for outcome, button, told in (
        ("The payment succeeds", "Fail", "could not confirm"),
        ("The payment succeeds", "Cancel", "You have cancelled"),
    ):
        # (whoever is to be charged again is always asked)
        pay(page, outcome)
        expect(heading(page, "Confirm with your bank")).to_be_focused()
        target = page.locator("#cancel") if button == "Cancel" else bank(page, button)
        bank(page, "Succeed").wait_for()
        target.click()
        expect(page.locator("#notice-text")).to_contain_text(told)
    assert new() == []
    pay(page)
    bank(page, "Succeed").click()
    assert expect_paid(page, new)["tds"] == "full"


@pytest.mark.parametrize(
    ("outcome", "tds"),
    [("3-D Secure attempted only", "attempt"), ("3-D Secure is not available", None)],
)
def test_3d_secure_that_asks_nobody(
    page: Page, served: ServedPayments, new: Made, outcome: str, tds: str | None
) -> None:
    open_link(page, served)
    pay(page, outcome)
    assert expect_paid(page, new).get("tds") == tds


def test_the_customer_goes_back_to_the_shop(page: Page, served: ServedPayments, new: Made) -> None:
    page.route(f"{SHOP}/**", lambda route: route.fulfill(body="<title>Thanks</title>"))
    redirect = "https%3A%2F%2Fshop.example%2Fthanks%3Fa%3D1%26transactionId%3Dforged%23end"
    open_link(page, served, redirect=redirect)
    leave = page.get_by_role("link", name="Return to shop.example without paying")
    expect(leave).to_have_attribute("href", f"{SHOP}/thanks?a=1&transactionId=forged#end")
    pay(page)
    page.wait_for_url(f"{SHOP}/**")
    [transaction] = new()
    assert page.url == f"{SHOP}/thanks?a=1&transactionId={transaction['id']}#end"
    # The payment is not in the history, and the link is paid if it is opened again.
    open_link(page, served, redirect=redirect)
    expect_paid(page, new)
    expect(page.get_by_role("link", name="Return to shop.example")).to_be_visible()
    page.get_by_role("button", name="Pay again").click()
    expect(page.get_by_label("Card number")).to_be_focused()


@pytest.mark.parametrize("step", STEPS)
def test_a_reload_at_any_step_goes_on_where_it_was(
    page: Page, served: ServedPayments, new: Made, step: str
) -> None:
    """The server takes the step, and the window is gone before it hears of that."""
    page.add_init_script(LOSES_ONE_ANSWER.replace("STEP", step))
    open_link(page, served)
    is_asked_before = step in ("tds-post-challenge", "authorize")
    with page.expect_console_message(lambda message: message.text == "lost"):
        pay(page, "3-D Secure with a question")
        if is_asked_before:
            bank(page, "Succeed").click()
    page.reload()
    if not is_asked_before:
        bank(page, "Succeed").click()
    expect_paid(page, new)
    page.reload()
    expect_paid(page, new)


def test_two_clicks_pay_once(page: Page, served: ServedPayments, new: Made) -> None:
    open_link(page, served)
    page.get_by_role("button", name="Fill in the test card").click()
    page.evaluate("""() => {
      const submit = document.getElementById("submit");
      submit.click();
      submit.click();
      document.getElementById("card").requestSubmit();
    }""")
    expect_paid(page, new)


def test_one_window_pays_and_the_other_hears_of_it(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served)
    other = page.context.new_page()
    open_link(other, served)
    pay(page, "3-D Secure with a question")
    bank(page, "Succeed").wait_for()
    pay(other)
    expect(heading(other, "Being paid in another window")).to_be_visible()
    bank(page, "Succeed").click()
    expect_paid(page, new)
    expect(heading(other, "Paid in another window")).to_be_visible()
    late = page.context.new_page()
    open_link(late, served)
    expect(heading(late, "Paid in another window")).to_be_visible()
    late.get_by_role("button", name="Pay here").click()
    expect(late.get_by_label("Card number")).to_be_focused()
    assert len(new()) == 1


def test_without_a_connection_nothing_is_paid_and_the_form_is_there(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served)
    page.route("**/vault", lambda route: route.abort())
    pay(page)
    expect(page.locator("#notice-text")).to_contain_text("There is no connection")
    assert new() == []
    page.unroute_all()
    pay(page)
    expect_paid(page, new)


def test_a_payment_without_an_answer_is_asked_for_and_not_made_again(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served)

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/challenges/authorize/**", lose)
    pay(page)
    expect(heading(page, "We are not sure yet")).to_be_visible()
    expect(page.get_by_role("button", name="Pay €12.50")).to_be_hidden()
    assert len(new()) == 1
    page.unroute_all()
    page.get_by_role("button", name="Ask again").click()
    expect_paid(page, new)


def test_who_takes_too_long_begins_anew(page: Page, served: ServedPayments, new: Made) -> None:
    open_link(page, served)
    pay(page, "3-D Secure with a question")
    bank(page, "Succeed").wait_for()
    served.api.clock.advance(16 * 60)
    page.reload()
    expect(page.locator("#notice-text")).to_contain_text("took too long")
    assert new() == []
    pay(page)
    expect_paid(page, new)


def test_at_the_till_an_amount_is_typed_and_another_follows(
    page: Page, served: ServedPayments, new: Made
) -> None:
    open_link(page, served, value="", locale="de")
    amount = page.get_by_label("Betrag")
    expect(amount).to_be_focused()
    page.keyboard.type("zwölf")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("kein Betrag")
    page.get_by_label("Betrag").fill("12,5")
    page.get_by_role("button", name="Weiter").click()
    page.get_by_role("button", name="Testkarte eintragen").click()
    page.get_by_role("button", name="12,50\u00a0€ bezahlen").click()
    expect(heading(page, "Bezahlt")).to_be_visible()
    assert [each["amount"] for each in new()] == [1250]
    page.get_by_role("link", name="Anderen Betrag eingeben").click()
    expect(page.get_by_label("Betrag")).to_have_value("")
