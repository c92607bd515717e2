"""H: HTTP authentication schemes."""

import pytest

from tests.support.catalog_auth.findings import HREF, SCHEME, Row, check, found, places
from tollgate.serve.catalog_auth.registries.http_schemes import REGISTERED
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile

NAME = f"{SCHEME}/scheme"
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
LOGIN = {
    "type": "openIdConnect",
    "openIdConnectUrl": "https://login.example.com/.well-known/openid-configuration",
}


def http(name: object) -> dict[str, object]:
    return {"type": "http", "scheme": name}


ROWS = [
    Row("H01", protected_item(http("token")), NAME, Severity.WARNING, "bearer"),
    Row("H01", protected_item(http("oauth2")), NAME, Severity.WARNING, '"type": "oauth2"'),
    Row("H01", protected_item(http("oidc")), NAME, Severity.WARNING, '"type": "openIdConnect"'),
    Row("H01", protected_item(http("Bearer token")), NAME, Severity.ERROR, '"Bearer token"'),
    Row("H01", protected_item(http("")), NAME, Severity.ERROR, '""'),
    Row("H02", protected_item(http("Bearer")), NAME, Severity.INFO, "listed as bearer"),
    Row("H03", protected_item(http("hoba")), NAME, Severity.INFO, "experiment"),
    Row("H03", protected_item(http("OAuth")), NAME, Severity.INFO, "OAuth 1.0"),
    Row("H03", protected_item(http("digest-md5")), NAME, Severity.INFO, "RFC 6331"),
    Row(
        "H04",
        protected_item(http("basic"), "http://e.org/a"),
        HREF,
        Severity.WARNING,
        "http://e.org/a",
    ),
    Row("H04", protected_item(KEY, "HTTP://e.org/a"), HREF, Severity.WARNING, '"access"'),
    Row("H05", protected_item(http("bearer"), "s3://b/k"), HREF, Severity.WARNING, "s3://b/k"),
    Row("H05", protected_item(http("bearer"), "file:///a"), HREF, Severity.WARNING, "over HTTP"),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("name", [*REGISTERED, "Basic", "BEARER"])
def test_registered_names_are_known_in_any_case(name: str) -> None:
    assert not found("H01", protected_item(http(name)))


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("H01", protected_item(http(None))),  # (its type is wrong, which is another rule's)
        ("H01", protected_item({"type": "com.example.own", "scheme": "token"})),
        ("H02", protected_item(http("bearer"))),
        ("H02", protected_item(http("Own"))),
        ("H03", protected_item(http("digest"))),
        ("H04", protected_item(http("basic"), "https://e.org/a")),
        ("H04", protected_item(http("basic"), "./a")),
        ("H04", protected_item(http("basic"), "http://localhost/a")),
        ("H04", protected_item(http("basic"), "http://e.org/a", has_refs=False)),
        ("H04", protected_item(LOGIN, "http://e.org/a")),
        ("H04", protected_item({"type": "s3"}, "http://b.s3.amazonaws.com/a")),
        ("H05", protected_item(http("bearer"), "https://e.org/a")),
        ("H05", protected_item(http("bearer"), "a/b.tif")),
        ("H05", protected_item({"type": "s3"}, "s3://b/k")),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


def test_in_strict_a_password_in_the_clear_is_an_error() -> None:
    (basic,) = found("H04", protected_item(http("basic"), "http://e.org/a"), Profile.STRICT)
    assert basic.severity is Severity.ERROR
    (bearer,) = found("H04", protected_item(http("bearer"), "http://e.org/a"), Profile.STRICT)
    assert bearer.severity is Severity.WARNING


def test_every_holder_in_the_clear_is_told() -> None:
    document = protected_item(http("basic"), "http://e.org/a")
    document["links"] = [{"rel": "data", "href": "http://e.org/b", "auth:refs": ["access"]}]
    assert places("H04", document) == [HREF, "/links/0/href"]
