"""Crawling: what is followed and inherited, where it may not go, and what ends it."""

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.support.call_costs import asked, assert_loop_is_free, cost_of
from tests.support.catalog_auth.api import IDENTIFIER, PREFIX, CatalogApi, Json, item, problem
from tollgate.serve.catalog_auth.crawl.crawler import LINKS_PER_DOCUMENT_MAX
from tollgate.serve.catalog_auth.document.decoding import FETCHED_VALUES_MAX, VALUES_MAX
from tollgate.serve.net.guarded_client import CallError, GuardedClient, TargetPolicy

OPEN = {"CATALOG_CRAWL": "true", "CATALOG_CRAWL_ALLOW_HTTP": "true"}
PRIVATE = {"CATALOG_CRAWL_ALLOW_PRIVATE": "true"}
LAX = TargetPolicy(allows_http=True, allows_private=True)
SCHEMES = item()["properties"]["auth:schemes"]


class Site(ThreadingHTTPServer):
    """Documents by path; `asked` are the paths that were called for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[str] = []

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server_port}{path}"

    def put(self, path: str, value: object, status: int = 200, **headers: str) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.pages[path] = (status, headers, body)


class Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, headers, body = self.server.pages.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        del format, args


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    thread = threading.Thread(target=site.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.shutdown()
    thread.join()
    site.server_close()


def crawl(api: CatalogApi, href: str, **members: Any) -> list[Json]:
    reply = api.post("/validate/crawl", {"href": href} | members)
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in reply.text.splitlines()]


def catalog(*links: tuple[str, str], **members: Any) -> Json:
    return {
        "type": "Catalog",
        "stac_version": "1.1.0",
        "id": "c",
        "description": "",
        "links": [{"rel": rel, "href": href} for rel, href in links],
        **members,
    }


def put_catalog(site: Site) -> None:
    bare = item(schemes={})
    site.put("/", catalog(("self", "/"), ("child", "col/c.json"), ("license", "/license")))
    collection = catalog(
        ("root", "../"), ("item", "i.json"), ("items", "/items?page=1"), ("parent", "../up.json")
    ) | {"type": "Collection", "stac_extensions": [IDENTIFIER], "auth:schemes": SCHEMES}
    site.put("/col/c.json", collection)
    site.put("/col/i.json", bare)
    page = {"type": "FeatureCollection", "features": [bare]}
    following = [
        {"rel": "next", "href": "/items?page=2"},
        {"rel": "next", "href": "/posted", "method": "POST"},
    ]
    site.put("/items?page=1", page | {"links": following})
    site.put("/items?page=2", page, Content_Type="application/geo+json")


def test_links_are_followed_with_what_is_inherited(site: Site) -> None:
    put_catalog(site)
    *lines, last = crawl(CatalogApi(**OPEN, **PRIVATE), site.url())
    paths = [line["href"].removeprefix(site.url("")) for line in lines]
    assert paths == ["/", "/col/c.json", "/col/i.json", "/items?page=1", "/items?page=2"]
    assert [line["depth"] for line in lines] == [0, 1, 2, 2, 2]
    assert site.asked == paths
    for line in lines[2:]:
        rules = [finding["rule"] for finding in line["findings"]]
        assert "R03" in rules
        assert "R01" not in rules
    assert last["summary"]["lines"] == 5
    assert last["summary"]["complete"]


def test_an_item_gets_its_collection_by_its_own_link(site: Site) -> None:
    put_catalog(site)
    alone = item(schemes={}, links=[{"rel": "collection", "href": "col/c.json"}])
    site.put("/alone.json", alone)
    first, *_ = crawl(CatalogApi(**OPEN, **PRIVATE), site.url("/alone.json"), depth=0)
    assert "R03" in [finding["rule"] for finding in first["findings"]]


def test_what_cannot_be_judged_is_a_line(site: Site) -> None:
    links = [("item", path) for path in ("/none", "/text", "/big", "/br", "/swelling")]
    site.put("/", catalog(*links))
    site.put("/text", b"<html>")
    site.put("/big", b'"' + b"x" * 5_000 + b'"')
    site.put("/br", b"{}", Content_Encoding="br")
    site.put("/swelling", gzip.compress(b'"' + b"x" * 5_000 + b'"'), Content_Encoding="gzip")
    api = CatalogApi(**OPEN, **PRIVATE, CATALOG_DOCUMENT_BYTES_MAX="4000")
    _, *lines, last = crawl(api, site.url())
    kinds = [line["error"]["type"].rpartition(":")[2] for line in lines]
    assert kinds == ["not-fetched", "not-json", "not-fetched", "not-fetched", "not-fetched"]
    details = [line["error"]["detail"] for line in lines]
    assert "HTTP status 404" in details[0]
    assert "larger than 4000 bytes" in details[2]
    assert "larger than 4000 bytes" in details[4]
    assert last["summary"]["unusable"] == 5
    assert last["summary"]["complete"] is False


@pytest.mark.parametrize(
    ("values", "lines", "is_complete"), [(VALUES_MAX, 2, True), (FETCHED_VALUES_MAX, 1, False)]
)
def test_a_crawl_reads_larger_pages_and_tells_of_those_that_it_does_not(
    site: Site, values: int, lines: int, is_complete: bool
) -> None:
    site.put("/", catalog(("next", "/2"), x=[0] * values))
    site.put("/2", catalog())
    first, *others, last = crawl(CatalogApi(**OPEN, **PRIVATE), site.url())
    assert 1 + len(others) == lines
    assert last["summary"]["complete"] is is_complete
    told = first.get("error", {}).get("detail")
    assert told == (
        None
        if is_complete
        else "it holds more than 300,000 values, and is not read: nor is what its links lead to"
    )


@pytest.mark.parametrize(
    ("bound", "value", "lines"),
    [
        ("CATALOG_CRAWL_DOCUMENTS_MAX", "2", 2),
        ("CATALOG_CRAWL_BYTES_MAX", "1024", 3),
    ],
)
def test_a_bound_ends_a_crawl_and_is_named(site: Site, bound: str, value: str, lines: int) -> None:
    put_catalog(site)
    *found, last = crawl(CatalogApi(**OPEN, **PRIVATE, **{bound: value}), site.url())
    assert len(found) == lines
    assert last["summary"]["complete"] is False
    assert last["summary"]["error"]["type"].endswith(":crawl-ended")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'"' + b"x" * 5_000 + b'"', {}),
        (gzip.compress(b" " * 3_500)[:-8], {"Content_Encoding": "gzip"}),
        (b"<html>" * 600, {}),
    ],
)
def test_what_is_read_counts_though_it_is_good_for_nothing(
    site: Site, body: bytes, headers: dict[str, str]
) -> None:
    site.put("/", catalog(*(("item", f"/{number}") for number in range(20))))
    for number in range(20):
        site.put(f"/{number}", body, **headers)
    bounds = {"CATALOG_DOCUMENT_BYTES_MAX": "4000", "CATALOG_CRAWL_BYTES_MAX": "16000"}
    *lines, last = crawl(CatalogApi(**OPEN, **PRIVATE, **bounds), site.url())
    assert all("error" in line for line in lines[1:])
    assert len(site.asked) < 7
    assert last["summary"]["error"]["detail"] == "more than 16000 bytes"


def schemes_of_bytes(count: int) -> Json:
    return {"auth:schemes": {"login": {"type": "http", "scheme": "basic", "pad": "x" * count}}}


def test_what_waits_to_be_inherited_is_bounded_and_does_not_grow_with_depth(site: Site) -> None:
    """A megabyte is kept: ten times the schemes of a catalog, whatever else it holds."""
    for number in range(24):
        below = catalog(("child", f"/{number + 1}"), pad="y" * 100_000, **schemes_of_bytes(100_000))
        site.put(f"/{number}", below)
    bounds = {"CATALOG_CRAWL_BYTES_MAX": "6000000", "CATALOG_CRAWL_DEPTH_MAX": "30"}
    api = CatalogApi(**OPEN, **PRIVATE, **bounds)
    *lines, last = crawl(api, site.url("/0"))
    assert len(lines) == 25
    assert "error" not in last["summary"]
    site.put("/", catalog(*(("child", f"/wide/{number}") for number in range(24))))
    for number in range(24):
        schemes = schemes_of_bytes(100_000 + number)
        site.put(f"/wide/{number}", catalog(("item", f"/item/{number}"), **schemes))
    *lines, last = crawl(api, site.url("/"))
    assert len(lines) < 24
    assert "to be inherited" in last["summary"]["error"]["detail"]


def test_a_collection_that_cannot_be_read_is_asked_for_once(site: Site) -> None:
    site.put("/", catalog(*(("item", f"/{number}") for number in range(5))))
    for number in range(5):
        site.put(f"/{number}", item(links=[{"rel": "collection", "href": "/none"}]))
    # (as the collection of the first item, and once for its own sake)
    crawl(CatalogApi(**OPEN, **PRIVATE), site.url())
    assert site.asked.count("/none") == 2


def test_a_page_of_links_is_read_beside_the_loop(site: Site) -> None:
    links = [("item", f"../items/{number}?a=b#c") for number in range(LINKS_PER_DOCUMENT_MAX)]
    site.put("/", catalog(*links))
    api = CatalogApi(**OPEN, **PRIVATE)
    body = json.dumps({"href": site.url(), "documents": 1}).encode()
    headers = [("content-type", "application/json")]
    cost = asyncio.run(
        cost_of(partial(asked, api.app, "POST", "/validate/crawl", body, headers, b"", PREFIX))
    )
    assert b"left_out_by_depth" not in cost.answer.body
    assert_loop_is_free(cost)


def test_what_depth_leaves_out_is_told(site: Site) -> None:
    put_catalog(site)
    *found, last = crawl(CatalogApi(**OPEN, **PRIVATE), site.url(), depth=1)
    assert len(found) == 2
    assert last["summary"]["complete"] is False
    assert last["summary"]["left_out_by_depth"] == 2
    few = crawl(CatalogApi(**OPEN, **PRIVATE, CATALOG_CRAWL_DEPTH_MAX="0"), site.url(), depth=9)
    assert len(few) == 2


def test_links_that_are_not_read_are_told(site: Site) -> None:
    links = [{"rel": "about", "href": "./x"}] * (LINKS_PER_DOCUMENT_MAX + 3)
    site.put("/", {"type": "Catalog", "links": links})
    _, last = crawl(CatalogApi(**OPEN, **PRIVATE), site.url())
    assert last["summary"]["complete"] is False
    assert last["summary"]["links_not_read"] == 3


def test_it_is_off_unless_it_is_switched_on() -> None:
    reply = CatalogApi().post("/validate/crawl", {"href": "https://example.com"})
    assert "CATALOG_CRAWL" in problem(reply, 403, "switched-off")["detail"]


@pytest.mark.parametrize(
    ("href", "word"),
    [
        ("http://example.com/", "https"),
        ("https://user:pass@example.com/", "password"),
        ("https://127.0.0.1/", "private"),
        ("https://[::1]/", "private"),
        ("https://[::ffff:10.0.0.1]/", "private"),
        ("https://169.254.169.254/latest/meta-data/", "private"),
        ("https://10.1.2.3/", "private"),
        ("https://example.com:0/", "port 0"),
        ("file:///etc/passwd", "web"),
        ("ftp://example.com/", "web"),
        ("//example.com/", "web"),
        ("https://exa mple.com/", "blanks"),
        ("https://[::1/", "web"),
        ("", "web"),
    ],
)
def test_an_address_that_tells_too_much_is_not_dialled(href: str, word: str) -> None:
    strict = CatalogApi(CATALOG_CRAWL="true")
    told = problem(strict.post("/validate/crawl", {"href": href}), 422, "unprocessable")
    assert word in told["detail"]


def test_a_name_that_leads_to_a_private_address_is_not_dialled(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judged when the socket is made: whatever the name said to whoever asked before."""
    put_catalog(site)
    leads_to_loopback(monkeypatch, "catalog.example.com")
    line, last = crawl(CatalogApi(**OPEN), site.url(host="catalog.example.com"))
    assert line["error"]["type"].endswith(":not-fetched")
    assert "the name leads to a private address" in line["error"]["detail"]
    assert site.asked == []
    assert last["summary"]["unusable"] == 1
    found, _ = crawl(CatalogApi(**OPEN, **PRIVATE), site.url(host="catalog.example.com"), depth=0)
    assert "error" not in found


def leads_to_loopback(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if the DNS said so."""
    ask = socket.getaddrinfo

    def answer(host: Any, *args: Any, **more: Any) -> Any:
        return ask("127.0.0.1" if host == name else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def fetched(url: str, policy: TargetPolicy = LAX) -> bytes:
    async def fetch() -> bytes:
        async with GuardedClient(policy, timeout_s=20) as client:
            return (await client.call("GET", url, {}, bytes_max=1_000, redirects_max=5)).body

    return asyncio.run(fetch())


def test_every_redirect_is_judged_from_the_start(site: Site) -> None:
    site.put("/end", b"{}")
    site.put("/there", b"", 302, Location="/end")
    assert fetched(site.url("/there")) == b"{}"
    site.put("/round", b"", 307, Location="/round")
    with pytest.raises(CallError, match="more than 5 redirects"):
        fetched(site.url("/round"))
    for location in ("file:///etc/passwd", "http://user@127.0.0.1/", "gopher://127.0.0.1/"):
        site.put("/away", b"", 301, Location=location)
        with pytest.raises(CallError):
            fetched(site.url("/away"))


def test_a_redirect_to_a_private_address_is_refused(site: Site) -> None:
    """The first hop may be on the loopback by its name only: the policy judges each URL."""
    site.put("/there", b"", 302, Location="https://169.254.169.254/latest/")
    seen: list[str] = []

    class FirstHopAllowed(GuardedClient):
        async def _hop(self, method, url, *others):  # type: ignore[no-untyped-def]
            self._policy = LAX if not seen else TargetPolicy()
            seen.append(url)
            return await super()._hop(method, url, *others)

    async def fetch() -> None:
        async with FirstHopAllowed(LAX, timeout_s=20) as client:
            await client.call("GET", site.url("/there"), {}, redirects_max=5)

    with pytest.raises(CallError, match="private"):
        asyncio.run(fetch())
    assert seen[1:] == ["https://169.254.169.254/latest/"]


def test_nothing_private_is_sent_along(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the environment is used."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    site.put("/", b"{}")
    assert fetched(site.url("/")) == b"{}"
