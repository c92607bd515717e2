"""The page and the docs without a browser: what they are made of, and their policy."""

import json
import re

import pytest

from tests.support.catalog_auth.api import DANGLING, CatalogApi, item
from tollgate.serve.catalog_auth.page.view import FINDINGS_MAX, capitalised

api = CatalogApi(CATALOG_DOCUMENT_BYTES_MAX="100000")


def page(text: str, **fields: str) -> str:
    reply = api.call("POST", "/", data={"document": text} | fields)
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    return reply.text


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_page_needs_no_other_server(path: str) -> None:
    reply = api.call("GET", path)
    sources = [
        source
        for source in re.findall(r'(?:src|href|action)="([^"]+)"', reply.text)
        if not source.startswith(("data:", "#", "./"))
    ]
    assert len(sources) >= 4
    for source in sources:
        assert "//" not in source
        assert api.call("GET", f"/{source}").status_code == 200, source
    assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_the_page_s_policy_leaves_nothing_open() -> None:
    policy = api.call("GET", "/").headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "://" not in api.call("GET", "/page/page.js").text
    text = api.call("GET", "/").text
    assert " style=" not in text
    assert "<style" not in text
    assert " on" not in re.sub(r">[^<]*<", "><", text)
    assert api.call("GET", "/page/page.html").status_code == 404


def test_a_text_that_is_not_json_is_shown_at_its_place() -> None:
    shown = page('{\n "a": ]\n}')
    assert "It is not JSON: expecting value (line 2, column 7)." in shown
    assert '<span class="marked"><i>2</i>' in shown


def test_a_text_comes_back_as_it_was() -> None:
    text = json.dumps(item(["</textarea><script>alert(1)</script>"])) + "\n"
    shown = page(text)
    assert "<script>alert" not in shown
    assert "&lt;/textarea&gt;" in shown


def test_what_was_repaired_meanwhile_is_not_repaired_again() -> None:
    text = json.dumps(DANGLING)
    shown = page(text, repair="0 R07 /assets/data/auth:refs/0")
    assert "Done for R07: reference &#34;login&#34;." in shown
    assert 'value="0 R07 /assets/data/auth:refs/0">Reference' in page(text)
    place = "/assets/data/auth:refs/0"
    for stale in (f"1 R07 {place}", f"R07 {place}", "0 R07 /assets/x", f"R01 {place}", "0", "-1"):
        assert "not there any more" in page(text, repair=stale)
    assert "There was nothing to repair." in page(json.dumps(item()), repair="all")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("there is no scheme", "There is no scheme"),
        ("http://example.com/token is not encrypted", "http://example.com/token is not encrypted"),
        ("tokenUrl has to be a text", "tokenUrl has to be a text"),
        ('"x" is not a type', '"x" is not a type'),
        ("", ""),
    ],
)
def test_a_message_begins_with_a_capital_but_not_a_name(message: str, shown: str) -> None:
    assert capitalised(message) == shown


def test_a_text_that_is_too_large_is_not_judged() -> None:
    assert "larger than 100,000 bytes" in page(json.dumps({"pad": "x" * 100_000}))


def test_a_page_has_so_many_findings_and_says_so() -> None:
    assets = {f"a{n}": {"href": "https://x.example/a", "auth:refs": ["gone"]} for n in range(300)}
    shown = page(json.dumps(item(assets=assets)))
    assert shown.count('<li class="finding') == FINDINGS_MAX
    assert "more (finding) are not shown here" in shown
    assert "more (asset or link) are not shown here" in shown


def test_the_profile_stays_chosen() -> None:
    assert "<option selected>strict</option>" in page(json.dumps(item()), profile="strict")
    assert "<option selected>default</option>" in page(json.dumps(item()), profile="<b>")


def test_the_rules_are_pages_for_browsers() -> None:
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    listed = api.call("GET", "/rules", headers=browser)
    assert listed.headers["content-type"] == "text/html; charset=utf-8"
    assert listed.headers["content-security-policy"].startswith("default-src 'none'")
    paths = re.findall(r'<a href="(rules/\w+)">', listed.text)
    assert len(paths) == len(api.call("GET", "/rules").json())
    for path in paths:
        page = api.call("GET", f"/{path}", headers=browser)
        assert page.status_code == 200
        assert 'class="marked"' in page.text, path


def test_no_version_is_no_refusal() -> None:
    shown = page(json.dumps(item() | {"stac_extensions": []}))
    assert "No official schema to ask" in shown
    assert "Not schema valid" not in shown


def test_a_scheme_that_is_nested_deeply_is_shown() -> None:
    deep = json.loads('{"a":' * 450 + "1" + "}" * 450)
    root = item()
    root["properties"]["auth:schemes"]["login"]["x"] = deep
    assert "How to get at it" in page(json.dumps(root))
    body = {"document": root, "target": {"pointer": "/assets/data"}}
    assert api.post("/resolve", body).status_code == 200
