"""Pages of other origins: what a browser is told that they may call, and may read (Fetch, CORS)."""

import httpx
import pytest

from tests.support.catalog_auth.api import CatalogApi, item

PAGE = "https://tools.example.com"
PARTNER = "https://partner.example.com"
ALLOW_ORIGIN = "access-control-allow-origin"
READING = ("/validate", "/validate/bulk", "/fix", "/migrate", "/resolve")
ACTING = ("/sign", "/validate/crawl")

usual = CatalogApi()
trusting = CatalogApi(CATALOG_TRUSTED_ORIGINS=PARTNER)
named = CatalogApi(CATALOG_ORIGINS=PAGE, CATALOG_TRUSTED_ORIGINS=PARTNER)
closed = CatalogApi(CATALOG_ORIGINS="")


def preflight(api: CatalogApi, path: str, origin: str = PAGE, method: str = "POST") -> str:
    """The origin that a preflight is told; empty when the call may not be made."""
    asked = {
        "origin": origin,
        "access-control-request-method": method,
        "access-control-request-headers": "content-type, x-api-key",
    }
    reply = api.call("OPTIONS", path, headers=asked)
    if ALLOW_ORIGIN not in reply.headers:
        return ""
    assert reply.status_code == 200, reply.text
    allowed = reply.headers["access-control-allow-headers"].lower()
    assert "x-api-key" in allowed
    assert method in reply.headers["access-control-allow-methods"]
    assert int(reply.headers["access-control-max-age"]) > 0
    return str(reply.headers[ALLOW_ORIGIN])


def readable(reply: httpx.Response) -> str:
    """The origin that may read a reply."""
    assert "access-control-allow-credentials" not in reply.headers
    return str(reply.headers.get(ALLOW_ORIGIN, ""))


@pytest.mark.parametrize("path", READING)
def test_any_page_may_make_the_calls_that_read(path: str) -> None:
    assert preflight(usual, path) == "*"
    assert preflight(trusting, path) == "*"


@pytest.mark.parametrize("path", ACTING)
def test_only_named_origins_may_have_something_done(path: str) -> None:
    for api in (usual, closed):
        assert preflight(api, path) == ""
    for api in (trusting, named):
        assert preflight(api, path) == ""
        assert preflight(api, path, PARTNER) == PARTNER
        assert readable(api.post(path, {}, headers={"origin": PARTNER})) == PARTNER
        assert readable(api.post(path, {}, headers={"origin": PAGE})) == ""


@pytest.mark.parametrize("path", ["/rules", "/rules/R01", "/versions", "/scheme", "/openapi.json"])
def test_what_the_service_says_of_itself_can_be_read(path: str) -> None:
    for api, told in ((usual, "*"), (named, PAGE), (closed, "")):
        reply = api.call("GET", path, headers={"origin": PAGE})
        assert reply.status_code == 200
        assert readable(reply) == told


def test_named_origins_alone_read_where_some_are_named() -> None:
    for origin, told in ((PAGE, PAGE), (PARTNER, PARTNER), ("https://other.example", "")):
        assert preflight(named, "/validate", origin) == told
        reply = named.post("/validate", item(), headers={"origin": origin})
        assert readable(reply) == told
        # A cache must not hand one origin's reply to another.
        if told:
            assert "Origin" in reply.headers["vary"]


def test_errors_can_be_read_too() -> None:
    headers = {"origin": PAGE, "content-type": "application/json"}
    assert readable(usual.call("POST", "/validate", content=b"{", headers=headers)) == "*"
    for status, reply in (
        (404, usual.call("GET", "/nothing", headers=headers)),
        (405, usual.call("GET", "/validate", headers=headers)),
        (415, usual.call("POST", "/fix", content=b"", headers={"origin": PAGE})),
        (422, usual.post("/validate?profile=x", item(), headers=headers)),
    ):
        assert reply.status_code == status
        assert readable(reply) == "*"
    assert (
        "Allow"
        in usual.call("GET", "/rules", headers=headers).headers["access-control-expose-headers"]
    )


def test_a_streamed_reply_can_be_read() -> None:
    headers = {"origin": PAGE, "content-type": "application/x-ndjson"}
    assert readable(usual.call("POST", "/validate/bulk", content=b"{}\n", headers=headers)) == "*"


def test_a_call_that_no_page_makes_is_told_nothing() -> None:
    assert readable(usual.post("/validate", item())) == ""
