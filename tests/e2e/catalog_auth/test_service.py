"""Catalog auth as it is served: through Serve's proxy, with a real browser on its page."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import psutil
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.catalog_auth.api import DANGLING, item
from tests.support.processes.tollgate import TollgateProcess

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
SLOW_S = 60
BIG_LINES = 4_000
BIG_LINE_BYTES = 30_000
GROWTH_BYTES_MAX = 40 * 1024 * 1024


class BulkCall:
    """A bulk call over a bare connection, on which both sides can speak at any time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reply: BinaryIO = connection.makefile("rb")
        self._text = b""
        connection.sendall(
            b"POST /catalog-auth/validate/bulk HTTP/1.1\r\nHost: test\r\n"
            b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        )

    def send(self, piece: bytes) -> None:
        self._connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end(self) -> None:
        self._connection.sendall(b"0\r\n\r\n")

    def read_head(self) -> bytes:
        status = self._reply.readline()
        while self._reply.readline().strip():
            pass
        return status

    def read_line(self) -> Any:
        """The next line of the reply, as it comes."""
        while b"\n" not in self._text:
            size = int(self._reply.readline(), 16)
            assert size, "the reply has ended"
            self._text += self._reply.read(size)
            self._reply.readline()
        line, _, self._text = self._text.partition(b"\n")
        return json.loads(line)


@contextmanager
def bulk_call(tollgate: TollgateProcess) -> Iterator[BulkCall]:
    address = ("127.0.0.1", tollgate.ports["PORT"])
    with socket.create_connection(address, timeout=SLOW_S) as connection:
        yield BulkCall(connection)


def test_a_line_is_answered_before_the_next_one_is_sent(tollgate: TollgateProcess) -> None:
    with bulk_call(tollgate) as call:
        for number in (1, 2, 3):
            call.send(json.dumps(item()).encode() + b"\n")
            if number == 1:
                assert b" 200 " in call.read_head()
            assert call.read_line()["line"] == number
        call.end()
        assert call.read_line()["summary"]["complete"]


def test_a_body_of_any_size_takes_bounded_memory(tollgate: TollgateProcess) -> None:
    """What has been sent and not judged yet stays with the sender."""
    line = json.dumps(item(pad="x" * BIG_LINE_BYTES)).encode() + b"\n"
    assert len(line) * BIG_LINES > 2 * GROWTH_BYTES_MAX
    replica = replica_of(tollgate)
    sizes = [replica.memory_info().rss]
    with bulk_call(tollgate) as call:
        for number in range(1, BIG_LINES + 1):
            call.send(line)
            if number == 1:
                call.read_head()
            if number % 500 == 0:
                sizes.append(replica.memory_info().rss)
        call.end()
        for number in range(1, BIG_LINES + 1):
            assert call.read_line()["line"] == number
        assert call.read_line()["summary"]["valid"] == BIG_LINES
    assert max(sizes) - sizes[0] < GROWTH_BYTES_MAX


def replica_of(tollgate: TollgateProcess) -> psutil.Process:
    children = psutil.Process(tollgate.pid).children(recursive=True)
    (replica,) = (each for each in children if "CatalogAuth" in " ".join(each.cmdline()))
    return replica


def test_the_api_is_there(http: httpx.Client) -> None:
    assert not http.post("/catalog-auth/validate", json=DANGLING).json()["valid"]
    problem = http.post("/catalog-auth/validate/crawl", json={"href": "https://example.com"})
    assert problem.status_code == 403
    assert http.get("/catalog-auth/docs").status_code == 200
    assert http.get("/catalog-auth/scheme").json()["flows"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert Path(CHROMIUM).exists(), "no chromium: run scripts/test once as root, or install it"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def said() -> list[str]:
    """What the page has complained about, a breach of its policy included."""
    return []


@pytest.fixture
def page(browser: Browser, tollgate: TollgateProcess, said: list[str]) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(SLOW_S * 1000)
    expect.set_options(timeout=SLOW_S * 1000)  # (which has one of its own)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(tollgate.url("PORT", "/catalog-auth/"))
    yield page
    context.close()
    assert said == []


def test_a_document_is_pasted_judged_repaired_and_got_at(page: Page) -> None:
    page.get_by_label("Document").fill(json.dumps(DANGLING, indent=2))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="Not valid")).to_be_visible()
    expect(page.get_by_role("heading", name="Schema valid")).to_be_visible()
    marked = page.locator(".finding", has_text="R01 dangling-ref").locator(".marked")
    expect(marked).to_contain_text('"Login"')
    page.get_by_role("button", name='Reference "login"').click()
    expect(page.get_by_role("status")).to_contain_text("Done for R07")
    expect(page.get_by_role("heading", name="Valid", exact=True)).to_be_visible()
    assert json.loads(page.get_by_label("Document").input_value()) == item()
    shown = page.locator(".tabs pre:visible").first
    expect(shown).to_contain_text("curl ")
    page.locator("label", has_text="Python").first.click()
    expect(page.locator(".tabs pre:visible").first).to_contain_text("import requests")


def test_one_repair_and_a_jump_to_a_line(page: Page) -> None:
    text = json.dumps(DANGLING, indent=2)
    page.get_by_label("Document").fill(text)
    page.get_by_role("button", name="Check").click()
    page.locator(".finding", has_text="R01").get_by_role("button", name="line").click()
    selected = page.evaluate(
        "(t => t.value.slice(t.selectionStart, t.selectionEnd))(document.activeElement)"
    )
    assert selected.startswith('"Login"')
    page.get_by_role("button", name='Reference "login"').click()
    expect(page.get_by_role("status")).to_contain_text("Done for R07")


def test_the_api_can_be_browsed(page: Page) -> None:
    page.get_by_role("link", name="API").click()
    expect(page.locator(".opblock-tag")).to_have_count(5)


def test_a_rule_is_a_page(page: Page) -> None:
    page.get_by_role("link", name="Rules").click()
    page.get_by_role("link", name="R01").click()
    expect(page.get_by_role("heading", name="R01 dangling-ref")).to_be_visible()
    expect(page.locator(".marked")).to_have_count(1)


def test_the_keyboard_is_enough(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_label("Document").focus()
    page.keyboard.insert_text('{"type": }')
    page.keyboard.press("Control+Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("line 1, column 10")
    expect(alert.locator(".marked")).to_contain_text('{"type": }')


def test_a_file_is_opened(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "item.json"
    file.write_text(json.dumps(item()))
    page.locator("#file").set_input_files(file)
    expect(page.get_by_role("heading", name="Valid", exact=True)).to_be_visible()


def test_what_is_in_a_document_is_never_markup(page: Page) -> None:
    evil = '<img src=x onerror="document.title=1">'
    page.get_by_label("Document").fill(json.dumps(item([evil], href=f"https://a.example/{evil}")))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="Not valid")).to_be_visible()
    assert page.locator("img").count() == 0
    assert "<img" in page.locator("#result").inner_text()


def test_a_phone_shows_it_without_scrolling_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_role("link", name="Try an example").click()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("heading", name="Findings")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_without_its_script_the_page_works_too(browser: Browser, tollgate: TollgateProcess) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(tollgate.url("PORT", "/catalog-auth/?example"))
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name='Reference "login"').click()
    expect(page.get_by_role("heading", name="Valid", exact=True)).to_be_visible()
    expect(page.get_by_label("Document")).to_have_value(
        json.dumps(json.loads(page.get_by_label("Document").input_value()), indent=2)
    )
    context.close()


CALL = """async ([url, method, body]) => {
  const headers = { "Content-Type": "application/json", "X-API-Key": "a-key" };
  try {
    const reply = await fetch(url, body ? { method, body, headers } : { method });
    return [reply.status, await reply.text()];
  } catch (error) {
    return [0, String(error)];
  }
}"""


@pytest.mark.parametrize(("site", "may_sign"), [("other", False), ("trusted", True)])
def test_a_page_of_another_origin_calls_what_it_may(
    browser: Browser, tollgate: TollgateProcess, page_port: int, site: str, may_sign: bool
) -> None:
    def called(path: str, method: str = "GET", body: str = "") -> tuple[int, str]:
        url = tollgate.url("PORT", f"/catalog-auth{path}")
        status, text = page.evaluate(CALL, [url, method, body])
        return status, text

    context = browser.new_context()
    page = context.new_page()
    page.goto(f"http://{site}.localhost:{page_port}/")
    status, text = called("/validate", "POST", json.dumps(DANGLING))
    assert (status, json.loads(text)["valid"]) == (200, False)
    status, text = called("/validate", "POST", "{")
    assert (status, json.loads(text)["title"]) == (400, "The body is not JSON")
    assert called("/rules/R01")[0] == 200
    assert called("/nothing")[0] == 404
    # (nothing is signed here, and who may read the reply is told so)
    signed = [called("/sign", "POST", '{"bucket":"b","key":"k"}'), called("/sign?href=s3://b/k")]
    assert [status for status, _ in signed] == ([400, 403] if may_sign else [0, 0])
    crawled = called("/validate/crawl", "POST", '{"href":"https://example.com"}')
    assert crawled[0] == (403 if may_sign else 0)
    context.close()
