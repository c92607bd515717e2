"""What the caller holds: what is still missing, which way comes first, and where it may go."""

import pytest

from tests.support.catalog_auth.documents import Json, item, way, ways
from tollgate.serve.catalog_auth.resolve.available_credentials import AvailableCredential

BEARER = {"type": "http", "scheme": "bearer"}
BASIC = {"type": "http", "scheme": "basic"}
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
CUSTOM = {"type": "smoke-signals"}
ALL = {"bearer": BEARER, "basic": BASIC, "key": KEY, "custom": CUSTOM}


def order(*available: str | AvailableCredential) -> list[str]:
    return [one["ref"] for one in ways(item(ALL, list(ALL)), *available)]


def test_without_anything_held_the_order_is_the_documents() -> None:
    assert order() == ["bearer", "basic", "key", "custom"]


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (["key"], ["key", "bearer", "basic", "custom"]),
        (["key.key"], ["key", "bearer", "basic", "custom"]),
        (["key", "basic"], ["basic", "key", "bearer", "custom"]),
        (["basic.username", "basic.password"], ["basic", "bearer", "key", "custom"]),
        (["basic.username"], ["bearer", "basic", "key", "custom"]),
        (["custom"], ["bearer", "basic", "key", "custom"]),
        (["unheard of"], ["bearer", "basic", "key", "custom"]),
    ],
)
def test_the_first_way_with_everything_held_wins(available: list[str], expected: list[str]) -> None:
    assert order(*available) == expected


def test_what_is_missing_is_named_as_it_would_be_held() -> None:
    assert way(BASIC)["missing"] == ["s.username", "s.password"]
    assert way(BASIC, "s.username")["missing"] == ["s.password"]
    assert way(BASIC, "s.username", "s.password")["missing"] == []
    assert way(BASIC, "s")["missing"] == []
    assert way(CUSTOM)["missing"] == []


@pytest.mark.parametrize(
    ("domain", "is_for"),
    [
        ("data.example.com", True),
        ("example.com", True),
        ("EXAMPLE.com", True),
        ("ample.com", False),
        ("other.example.com", False),
        ("data.example.com.evil.org", False),
    ],
)
def test_what_is_held_for_a_domain_counts_only_there(domain: str, is_for: bool) -> None:
    found = way(BEARER, AvailableCredential("s", (domain,)))
    assert found["missing"] == ([] if is_for else ["s.token"])


def test_a_token_is_not_sent_outside_of_the_domains_of_its_scheme() -> None:
    flow = {"tokenUrl": "https://idp.example.com/token", "scopes": {}}
    scheme: Json = {"type": "oauth2", "flows": {"clientCredentials": flow}}
    href = "https://elsewhere.example.org/a.tif"
    assert way(scheme, AvailableCredential("s", ("example.com",)), href=href)["missing"] == ["s"]
    assert (
        way(scheme, AvailableCredential("s", ("example.com", "example.org")), href=href)["missing"]
        == []
    )
    assert way(scheme, AvailableCredential("s", ("example.com",)))["missing"] == []


def test_a_duplicate_ref_makes_one_way() -> None:
    assert len(ways(item(ALL, ["key", "key"]))) == 1
