"""K: API keys."""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import HREF, SCHEME, Row, check, found, repair_of
from tollgate.serve.catalog_auth.repair.json_patch import patched, value_at
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Severity

TILES = "https://tiles.example.com/5/1.png"


def key(place: object = "header", name: object = "X-Key") -> dict[str, object]:
    return {"type": "apiKey", "in": place, "name": name}


IN_QUERY = key("query", "api_key")
ROWS = [
    Row("K01", protected_item(key("Header")), f"{SCHEME}/in", Severity.ERROR, "header is meant"),
    Row("K01", protected_item(key("body")), f"{SCHEME}/in", Severity.ERROR, '"body"'),
    Row("K02", protected_item(key(name="")), f"{SCHEME}/name", Severity.ERROR, "empty"),
    Row("K02", protected_item(key(name="API key")), f"{SCHEME}/name", Severity.ERROR, '"API key"'),
    Row("K02", protected_item(key("cookie", "a;b")), f"{SCHEME}/name", Severity.ERROR, "cookie"),
    Row(
        "K03",
        protected_item(key(name="authorization")),
        f"{SCHEME}/name",
        Severity.WARNING,
        "HTTP auth",
    ),
    Row("K04", protected_item(IN_QUERY), f"{SCHEME}/in", Severity.INFO, "logs"),
    Row(
        "K05",
        protected_item(IN_QUERY, f"{TILES}?api_key=pk.abcdef"),
        HREF,
        Severity.ERROR,
        "pk.a… (9 cha",
    ),
    Row(
        "K05",
        protected_item(IN_QUERY, f"{TILES}?v=1&api%5Fkey=1"),
        HREF,
        Severity.ERROR,
        '"api_key"',
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        *(("K01", protected_item(key(place))) for place in ("query", "header", "cookie", 5)),
        ("K02", protected_item(key())),
        ("K02", protected_item(key("query", "the key"))),  # (a query takes any name)
        (
            "K02",
            protected_item(key("Header", "the key")),
        ),  # (K01: nobody knows which place is meant)
        ("K03", protected_item(key("query", "Authorization"))),
        ("K03", protected_item(key(name="X-Authorization"))),
        ("K04", protected_item(key())),
        ("K05", protected_item(IN_QUERY, TILES)),
        ("K05", protected_item(IN_QUERY, f"{TILES}?api_key=")),
        ("K05", protected_item(IN_QUERY, f"{TILES}?api_key={{api_key}}")),
        ("K05", protected_item(IN_QUERY, f"{TILES}?api_key=YOUR_API_KEY")),
        (
            "K05",
            protected_item(IN_QUERY, f"{TILES}?API_KEY=pk.abcdef"),
        ),  # (names are case-sensitive)
        ("K05", protected_item(key(name="api_key"), f"{TILES}?api_key=pk.abcdef")),
        ("K05", protected_item(IN_QUERY, f"{TILES}?api_key=pk.abcdef", has_refs=False)),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


def test_only_the_key_goes_from_the_href() -> None:
    document: Any = protected_item(IN_QUERY, f"{TILES}?a=%20+1&api_key=pk.abcdef&b#api_key=x")
    (finding,) = found("K05", document)
    assert finding.fix is None
    steps = repair_of(finding)
    assert steps is not None
    repaired = value_at(patched(document, steps), ("assets", "data", "href"))
    assert repaired == f"{TILES}?a=%20+1&b#api_key=x"
