"""X: addresses that say too much, or send a secret too far."""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import HREF, SCHEME, Row, check, found
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN
from tollgate.serve.catalog_auth.rules.examples.items import protected_item, signed
from tollgate.serve.catalog_auth.rules.findings import Severity

KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
WARNING = Severity.WARNING
ALTERNATE = "/assets/data/alternate/other/href"
# (a path of somebody's machine, which only looks like one of this one)
HOME = "/".join(["", "home", "anna", "scene.tif"])


def at(*hrefs: str, scheme: dict[str, Any] = KEY) -> dict[str, Any]:
    document: dict[str, Any] = protected_item(scheme, hrefs[0])
    document["links"] = [
        {"rel": "data", "href": href, "auth:refs": ["access"]} for href in hrefs[1:]
    ]
    return document


def alternate(href: str) -> dict[str, object]:
    return protected_item(LOGIN, asset={"alternate": {"other": {"href": href}}})


def oidc(host: str) -> dict[str, object]:
    url = f"https://{host}/.well-known/openid-configuration"
    return protected_item({"type": "openIdConnect", "openIdConnectUrl": url})


ROWS = [
    *(
        Row("X06", at(f"https://{host}/a"), HREF, WARNING, says)
        for host, says in [
            ("localhost:8443", "own machine"),
            ("[::1]", "own machine"),
            ("127.0.0.1", "own machine"),
            ("192.168.1.2", "private network"),
            ("nas", "private network"),
            ("files.lan", "private network"),
            ("169.254.169.254", "metadata"),
            ("metadata.google.internal", "metadata"),
        ]
    ),
    Row("X06", oidc("localhost:8443"), f"{SCHEME}/openIdConnectUrl", WARNING, "own machine"),
    Row(
        "X07",
        at("https://api.mapbox.com/a", "https://raw.githubusercontent.com/b"),
        SCHEME,
        WARNING,
        "2 different domains: mapbox.com, raw.githubusercontent.com",
    ),
    Row("X07", at("https://a.co.uk/", "https://b.co.uk/"), SCHEME, WARNING, "a.co.uk, b.co.uk"),
    Row("X07", at("https://one.github.io/", "https://two.github.io/"), SCHEME, WARNING, "one."),
    Row("X07", at("https://192.0.2.1/", "https://192.0.2.2/"), SCHEME, WARNING, "192.0.2.1, 1"),
    Row("X07", at(*(f"https://e{i}.org/" for i in range(9))), SCHEME, WARNING, "and 4 more"),
    *(
        Row("X08", alternate(href), ALTERNATE, WARNING, "own machine")
        for href in ["file:///archive/a", "FILE:a", HOME, "C:\\data\\a", "\\\\nas\\a", "~/a"]
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("X06", at("https://data.example.com/a")),
        ("X06", at("s3://localhost/a")),  # (a bucket)
        ("X06", at("./localhost/a")),
        ("X06", at("https://localhost.example.com/a")),
        ("X06", at("https://data.example.test/a")),
        ("X06", protected_item(signed(authorizationApi="https://localhost/"))),  # (G07)
        ("X07", at("https://a.example.com/", "https://b.example.com/")),
        ("X07", at("https://a.example.com/", "./b", "s3://c/d")),
        ("X07", at("https://a.org/", "https://b.org/", scheme=LOGIN)),
        ("X08", alternate("https://e.org/home/a")),
        ("X08", alternate("/data/a.tif")),  # (a path on the same server)
        ("X08", alternate("home/a.tif")),
        ("X08", alternate("s3://b/file:/a")),
        ("X08", protected_item(LOGIN, "file:///archive/a")),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


def test_every_private_path_among_relative_ones_is_found() -> None:
    document: dict[str, Any] = alternate(HOME)
    document["assets"]["data"]["alternate"]["third"] = {"href": "./b"}
    document["assets"]["data"]["alternate"]["fourth"] = {"href": HOME}
    paths = [pointer(finding.path) for finding in found("X08", document)]
    assert paths == ["/assets/data/alternate/fourth/href", ALTERNATE]
