"""Requests for http and apiKey schemes, and who may get what is on them."""

from typing import Any

import pytest

from tests.support.catalog_auth.documents import Json, item, way, ways

HREF = "https://data.example.com/a.tif"


def key(name: str, where: str) -> Json:
    return {"type": "apiKey", "name": name, "in": where}


def fetch_of(alternative: Json) -> Json:
    step: Json = alternative["steps"][-1]
    assert step["id"] == "fetch", step
    return step


def test_basic_is_a_pair_that_the_client_encodes() -> None:
    step = fetch_of(way({"type": "http", "scheme": "BASIC"}))
    assert step["request"]["headers"] == {"Authorization": "Basic ${fetch.basic}"}
    pair = {"how": "basic", "of": "${fetch.username}:${fetch.password}"}
    assert step["derives"] == {"basic": pair}
    assert step["needs"] == {"username": "s.username", "password": "s.password"}


@pytest.mark.parametrize(
    ("written", "header", "needs"),
    [
        ("bearer", "Bearer ${fetch.token}", {"token": "s.token"}),
        ("Bearer", "Bearer ${fetch.token}", {"token": "s.token"}),
        ("Token", "Token ${fetch.credentials}", {"credentials": "s.credentials"}),
    ],
)
def test_a_token_stands_after_the_schemes_name(written: str, header: str, needs: Json) -> None:
    step = fetch_of(way({"type": "http", "scheme": written}))
    assert step["request"]["headers"] == {"Authorization": header}
    assert step["needs"] == needs


def test_digest_answers_a_challenge() -> None:
    step = fetch_of(way({"type": "http", "scheme": "digest"}))
    assert step["challenge"] == "Digest"
    assert step["request"]["headers"] == {}
    assert step["needs"] == {"username": "s.username", "password": "s.password"}


@pytest.mark.parametrize(
    "written", ["dpop", "HOBA", "negotiate", "vapid", "scram-sha-256", "gnap", "two words", "", 7]
)
def test_what_no_header_template_serves_is_described(written: Any) -> None:
    found = way({"type": "http", "scheme": written, "description": "Ask us."})
    assert not found["executable"]
    (step,) = found["steps"]
    assert step["kind"] == "described"
    assert "The publisher says: Ask us." in step["text"]


def test_a_key_in_a_header_or_cookie() -> None:
    step = fetch_of(way(key("X-Key", "header")))
    assert step["request"]["headers"] == {"X-Key": "${fetch.key}"}
    assert step["needs"] == {"key": "s.key"}
    step = fetch_of(way(key("session", "cookie")))
    assert step["request"]["headers"] == {"Cookie": "session=${fetch.key}"}


QUERIES = {
    HREF: f"{HREF}?k=${{fetch.key}}",
    f"{HREF}?x=1": f"{HREF}?x=1&k=${{fetch.key}}",
    f"{HREF}?k=old&x=1": f"{HREF}?x=1&k=${{fetch.key}}",
    f"{HREF}?%6B=old": f"{HREF}?k=${{fetch.key}}",
    f"{HREF}?x=a%26k=1": f"{HREF}?x=a%26k=1&k=${{fetch.key}}",
    f"{HREF}#page=2": f"{HREF}?k=${{fetch.key}}#page=2",
    f"{HREF}?": f"{HREF}?k=${{fetch.key}}",
}


@pytest.mark.parametrize(("href", "url"), QUERIES.items(), ids=QUERIES.keys())
def test_a_key_in_the_query_is_there_once_and_before_the_fragment(href: str, url: str) -> None:
    step = fetch_of(way(key("k", "query"), href=href))
    assert step["request"]["url"] == url
    assert step["warnings"][0] == "the key is part of the URL: proxies and servers log it"
    assert ("replaced" in "".join(step["warnings"])) is ("old" in href)


def test_a_name_in_the_query_is_escaped() -> None:
    step = fetch_of(way(key("a&b=c#", "query")))
    assert step["request"]["url"] == f"{HREF}?a%26b%3Dc%23=${{fetch.key}}"


@pytest.mark.parametrize(
    "scheme",
    [
        key("X-Key", "body"),
        key("", "query"),
        key("X Key", "header"),
        key("a;b", "cookie"),
        {"type": "apiKey", "in": "query"},
        {"type": "apiKey", "name": "k"},
        {"type": "apiKey", "name": ["k"], "in": ["query"]},
    ],
)
def test_a_key_that_has_no_place_is_described(scheme: Json) -> None:
    found = way(scheme)
    assert not found["executable"]
    assert [step["kind"] for step in found["steps"]] == ["described"]


def test_a_request_says_whose_credentials_go_to_whom() -> None:
    step = fetch_of(way({"type": "http", "scheme": "bearer"}))
    assert step["credentials"] == {
        "of": ["s"],
        "hosts": ["data.example.com"],
        "default": False,
        "onCrossHostRedirect": "drop",
    }


def test_only_a_public_request_may_carry_a_default_credential() -> None:
    (public,) = ways(item())
    assert fetch_of(public)["credentials"]["default"] is True
    for scheme in ({"type": "http", "scheme": "basic"}, key("k", "query"), key("k", "cookie")):
        assert fetch_of(way(scheme))["credentials"]["default"] is False


def test_plain_http_is_warned_about() -> None:
    step = fetch_of(way({"type": "http", "scheme": "bearer"}, href="http://data.example.com/a"))
    assert "not encrypted" in step["warnings"][0]


def test_a_credential_for_http_does_not_reach_an_object_store() -> None:
    found = way({"type": "http", "scheme": "bearer"}, href="s3://b/k")
    assert not found["executable"]
    assert found["findings"] == ["T04"]


@pytest.mark.parametrize(
    "href", ["https://[bad/x", "https://h:port/x", "https://", "s3://{b,[1-9]}/k", "x:y"]
)
def test_an_href_that_nobody_can_call_is_not_executable(href: str) -> None:
    for scheme in ({"type": "http", "scheme": "bearer"}, key("k", "query")):
        assert not way(scheme, href=href)["executable"]
    (public,) = ways(item(href=href))
    assert not public["executable"]
    assert not public["steps"][-1]["text"].endswith("None.")


def test_the_case_of_a_urls_scheme_does_not_matter() -> None:
    found = way({"type": "http", "scheme": "bearer"}, href="HTTP://data.example.com/a")
    assert found["executable"]
    assert "not encrypted" in fetch_of(found)["warnings"][0]


def test_custom_types_are_described_and_never_executed() -> None:
    found = way({"type": "smoke-signals", "description": "Two fires."})
    assert (found["type"], found["executable"]) == ("smoke-signals", False)
    (step,) = found["steps"]
    assert step["kind"] == "described"
    assert "Two fires." in step["text"]
    assert found["findings"] == ["C03"]
    assert not way({"description": "no type"})["executable"]


def test_a_key_that_is_public_by_design_stays_in_its_address() -> None:
    key = "pk." + "eyJ1IjoiZXhhbXBsZSIsImEiOiJja2V4YW1wbGUifQ" + ".a1B2c3D4e5F6g7H8i9J0kL"
    (found,) = ways(item(href=f"https://tiles.example.org/1?access_token={key}&v=2"))
    assert found["executable"]
    assert key in found["steps"][0]["request"]["url"]
    (withheld,) = ways(item(href=f"https://tiles.example.org/1?access_token=s{key[1:]}"))
    assert not withheld["executable"]
