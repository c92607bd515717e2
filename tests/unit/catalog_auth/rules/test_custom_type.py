"""C: types of schemes that are none of the standard ones."""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import SCHEME, Row, check, found
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.items import client_credentials, protected_item
from tollgate.serve.catalog_auth.rules.findings import Severity

TYPE = f"{SCHEME}/type"
WARNING, ERROR, INFO = Severity.WARNING, Severity.ERROR, Severity.INFO
FLOWS = client_credentials()["flows"]


def of(type_: object, **members: object) -> dict[str, Any]:
    return protected_item({"type": type_, **members})


def first(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "stac_extensions": [Version.V1_0_0.identifier]}


ROWS = [
    Row("C01", of("OAuth2", flows=FLOWS), TYPE, ERROR, "oauth2 is the standard one"),
    Row("C01", of("S3"), TYPE, WARNING, "s3"),
    Row("C01", of("api_key"), TYPE, WARNING, "apiKey"),
    Row("C01", of("apikey", name="k", **{"in": "query"}), TYPE, ERROR, "apiKey"),
    Row("C01", of("oidc"), TYPE, WARNING, "openIdConnect"),
    Row("C01", of("openIdConnectUrl"), TYPE, WARNING, "openIdConnect"),
    Row("C01", of("openIDConect"), TYPE, WARNING, "openIdConnect"),
    Row("C01", of("signedURL"), TYPE, WARNING, "signedUrl"),
    Row("C01", of("HTTP"), TYPE, WARNING, "http"),
    Row("C02", of("com.example.own", name="x"), SCHEME, WARNING, "cannot have name"),
    Row("C02", of("earthdata", flows={}), SCHEME, WARNING, "oauth2, or http with bearer"),
    Row("C03", of("com.example.mtls"), TYPE, INFO, '"com.example.mtls"'),
    Row("C04", of("planetaryComputer"), TYPE, WARNING, "signedUrl"),
    Row("C04", of("earthdata"), TYPE, WARNING, "since v1.1.0"),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        *(("C01", of(type_)) for type_ in ("s3", "com.example.s3", "s4", "ftp", "mtls", "", 5)),
        ("C01", of("x" * 200)),
        ("C01", of("earthdata")),
        ("C02", of("com.example.own", url="x")),
        ("C02", of("OAuth2", flows=FLOWS)),  # (C01)
        ("C02", of("http", flows=FLOWS)),  # (S07)
        ("C02", first(of("com.example.own", name="x"))),
        ("C03", of("s3")),
        ("C03", of("S3")),
        ("C03", of("planetaryComputer")),
        ("C03", of("")),
        ("C04", first(of("planetaryComputer"))),
        ("C04", of("earthdata", flows={})),  # (C02)
        ("C04", of("planetarycomputer2")),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


def test_a_type_is_corrected_only_when_its_fields_are_there() -> None:
    (whole,) = found("C01", of("OAuth2", flows=FLOWS))
    assert whole.fix is None
    (offered,) = whole.suggestions
    assert offered.steps[0].value == "oauth2"
    (lacking,) = found("C01", of("OAuth2"))
    assert lacking.suggestions == ()
    (other,) = found("C01", of("oidc", openIdConnectUrl="https://e.org/"))
    assert other.suggestions == ()
