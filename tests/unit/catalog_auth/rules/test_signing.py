"""G: flows of signed URLs."""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import HREF, SCHEME, Row, check, found
from tollgate.serve.catalog_auth.document.document import REFS
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN
from tollgate.serve.catalog_auth.rules.examples.items import (
    body_parameter,
    client_credentials,
    protected_item,
    query_parameter,
    signed,
)
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.net.public_addresses import Exposure

FLOW = f"{SCHEME}/flows/sign"
PARAMETER = f"{FLOW}/parameters"
API = f"{FLOW}/authorizationApi"
SIGN = "https://sign.example.com/v1"
WARNING, ERROR, INFO = Severity.WARNING, Severity.ERROR, Severity.INFO
BUCKET_AND_KEY = signed({"bucket": body_parameter(), "key": body_parameter()}, method="POST")
STORE = {"own": {"type": "custom-s3", "platform": "https://store.example.com/{bucket}"}}


def with_parameter(name: str, **members: object) -> dict[str, object]:
    return protected_item(signed({"href": query_parameter(), name: query_parameter(**members)}))


def with_schema(**schema: object) -> dict[str, object]:
    return with_parameter("duration", required=False, schema=schema)


def without(field: str, **members: object) -> dict[str, object]:
    scheme: Any = signed(**members)
    del scheme["flows"]["sign"][field]
    return protected_item(scheme)


def two_flows() -> dict[str, Any]:
    flow = {"method": "GET", "authorizationApi": SIGN, "responseField": "href"}
    return {"type": "signedUrl", "flows": {"a": flow, "b": flow}}


IN_HEADER = {"in": "header"}
ROWS = [
    Row("G01", protected_item(signed(method="FETCH IT")), f"{FLOW}/method", ERROR, '"FETCH IT"'),
    Row("G01", protected_item(signed(method="CONNECT")), f"{FLOW}/method", ERROR, "CONNECT"),
    Row("G01", protected_item(signed(method="get")), f"{FLOW}/method", WARNING, "not GET"),
    Row("G02", with_parameter("x", **{"in": "body"}), f"{PARAMETER}/x/in", WARNING, "GET has none"),
    Row("G03", with_parameter("x", **{"in": "Query"}), f"{PARAMETER}/x/in", ERROR, "query is mea"),
    Row("G03", with_parameter("x", **{"in": "cookie"}), f"{PARAMETER}/x/in", ERROR, '"cookie"'),
    Row("G04", without("responseField"), FLOW, WARNING, "signed_url, href, url, signedUrl"),
    Row(
        "G04",
        protected_item(signed(responseField="")),
        f"{FLOW}/responseField",
        WARNING,
        "which field",
    ),
    Row("G04", without("responseField", answer="href"), FLOW, INFO, "which field"),
    Row("G05", with_parameter("project"), f"{PARAMETER}/project", INFO, '"project"'),
    Row(
        "G06",
        protected_item(signed(authorizationApi="http://e.org/s")),
        API,
        WARNING,
        "not encrypted",
    ),
    Row(
        "G07",
        protected_item(signed(authorizationApi="http://127.0.0.1/")),
        API,
        WARNING,
        "own machine",
    ),
    Row(
        "G07", protected_item(signed(authorizationApi="https://10.1.2.3/")), API, WARNING, "private"
    ),
    Row("G07", protected_item(signed(authorizationApi="https://signer/")), API, WARNING, "private"),
    Row(
        "G08",
        with_schema(type="integer", default="60"),
        f"{PARAMETER}/duration/schema/default",
        WARNING,
        '"60"',
    ),
    Row(
        "G08",
        with_schema(type="string", const=1),
        f"{PARAMETER}/duration/schema/const",
        WARNING,
        "string",
    ),
    Row(
        "G08",
        with_schema(type=["integer", "null"], enum=[1, None, "x"]),
        f"{PARAMETER}/duration/schema/enum/2",
        WARNING,
        "integer or null",
    ),
    Row(
        "G08",
        with_schema(type="integer", default=True),
        f"{PARAMETER}/duration/schema/default",
        WARNING,
        "true",
    ),
    Row(
        "G09",
        protected_item(signed(authorizationApi=f"{SIGN}?href=")),
        f"{PARAMETER}/href",
        WARNING,
        "twice",
    ),
    Row("G10", protected_item(BUCKET_AND_KEY, "ftp://e.org/a"), HREF, WARNING, "ftp://e.org/a"),
    Row(
        "G10",
        protected_item(BUCKET_AND_KEY, "https://data.e.org/a"),
        HREF,
        Severity.INFO,
        "storage:schemes",
    ),
    Row("G11", with_parameter("Host", **IN_HEADER), f"{PARAMETER}/Host", ERROR, "connection"),
    Row("G11", with_parameter("no name", **IN_HEADER), f"{PARAMETER}/no name", ERROR, "header"),
    Row("G12", protected_item(two_flows()), f"{SCHEME}/flows", INFO, "2 flows"),
    Row(
        "G13",
        with_parameter("Authorization", **IN_HEADER),
        f"{PARAMETER}/Authorization",
        WARNING,
        "credential",
    ),
    Row("G13", with_parameter("api_key"), f"{PARAMETER}/api_key", WARNING, "where clients get it"),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


def chained() -> dict[str, object]:
    scheme = signed({"href": query_parameter(), "Authorization": query_parameter(**IN_HEADER)})
    return protected_item({**scheme, REFS: ["login"]}, schemes={"login": LOGIN})


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("G01", protected_item(signed(method="POST"))),
        ("G01", protected_item(signed(method=["GET"]))),
        ("G02", protected_item(BUCKET_AND_KEY, "s3://b/k")),
        ("G02", protected_item(signed(method="DELETE"))),
        ("G03", with_parameter("x", **{"in": 1})),
        ("G04", protected_item(signed())),
        ("G04", protected_item(signed(responseField=5))),
        ("G05", with_parameter("assetHref")),
        ("G05", with_parameter("project", required=False)),
        ("G05", with_parameter("project", schema={"type": "string", "default": "eo"})),
        ("G05", with_parameter("Authorization", **IN_HEADER)),  # (G13)
        ("G06", protected_item(signed())),
        ("G06", protected_item(signed(authorizationApi="http://localhost/"))),  # (G07)
        ("G07", protected_item(signed(authorizationApi="https://8.8.8.8/"))),
        ("G07", protected_item(signed(authorizationApi="not a URL"))),
        ("G08", with_schema(type="integer", default=60)),
        ("G08", with_schema(type="integer", default=60.0)),
        ("G08", with_schema(type="number", enum=[1, 1.5])),
        ("G08", with_schema(type="url", default=1)),  # (S14)
        ("G08", with_schema(default=1)),
        ("G09", protected_item(signed(authorizationApi=f"{SIGN}?hrefs=1"))),
        ("G09", protected_item(signed(authorizationApi=f"{SIGN}?Href=1"))),
        *(
            ("G10", protected_item(BUCKET_AND_KEY, href))
            for href in (
                "s3://bucket/key",
                "https://bucket.s3.us-west-2.amazonaws.com/key",
                "https://account.blob.core.windows.net/container/key",
                "https://s3.waw3-2.cloudferro.com/bucket/key",
                "relative/key",
            )
        ),
        (
            "G10",
            protected_item(
                BUCKET_AND_KEY,
                "https://store.example.com/bucket/key",
                properties={"storage:schemes": STORE},
            ),
        ),
        ("G10", protected_item(signed(), "https://data.example.com/a")),
        ("G11", with_parameter("X-Api-Version", **IN_HEADER)),
        ("G11", with_parameter("host")),
        ("G12", protected_item(signed())),
        ("G13", chained()),
        ("G13", with_parameter("token", required=False)),
        ("G13", with_parameter("token", schema={"type": "string", "default": "public"})),
        ("G13", protected_item(client_credentials())),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


def test_strict_demands_encryption() -> None:
    (finding,) = found(
        "G06", protected_item(signed(authorizationApi="http://e.org/s")), Profile.STRICT
    )
    assert finding.severity is ERROR


def test_exposures_read_as_places() -> None:
    (finding,) = found("G07", protected_item(signed(authorizationApi="https://169.254.169.254/")))
    assert Exposure.METADATA.value in finding.message
