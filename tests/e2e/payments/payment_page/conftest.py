"""One Chromium, and one API behind one page, for all tests of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.payments.page_steps import Made
from tests.support.payments.served import ServedPayments, served_payments

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
SLOW_MS = 60_000
# (a refusal is a status, of which Chromium tells its console)
EXPECTED = re.compile(
    r"lost|Failed to load resource: (the server responded with a status of 4|net::)"
)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPayments]:
    url = f"sqlite:///{tmp_path_factory.mktemp('books')}/books.db"
    with served_payments(url) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """(Its driver keeps a loop running in this thread, in which nobody else can run one: it goes
    with the file.)"""
    assert Path(CHROMIUM).exists(), "no chromium: run scripts/test once as root, or install it"
    expect.set_options(timeout=SLOW_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, served: ServedPayments) -> Iterator[Page]:
    """A window that is shown nothing but the page, and has nothing to complain about, a breach of
    the page's policy included."""
    context = browser.new_context(viewport={"width": 390, "height": 800}, locale="en-US")
    context.set_default_timeout(SLOW_MS)
    said: list[str] = []
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    yield context.new_page()
    context.close()
    assert [text for text in said if not EXPECTED.match(text)] == []


@pytest.fixture
def new(served: ServedPayments) -> Made:
    """The transactions that were made since the test began, failed ones left out."""
    known = {each["id"] for each in served.transactions()}

    def made() -> list[dict[str, Any]]:
        found = [each for each in served.transactions() if each["id"] not in known]
        return [each for each in found if each["successful"]]

    return made
