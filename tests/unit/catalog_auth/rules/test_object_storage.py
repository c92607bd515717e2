"""T: object stores."""

from typing import Any

import pytest

from tests.support.catalog_auth.findings import HREF, Row, check, found, places
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN
from tollgate.serve.catalog_auth.rules.examples.items import (
    client_credentials,
    oauth2,
    protected_item,
)
from tollgate.serve.catalog_auth.rules.findings import Severity

S3 = {"type": "s3"}
INFO, WARNING = Severity.INFO, Severity.WARNING
AWS = {"type": "aws-s3", "platform": "https://{bucket}.s3.{region}.amazonaws.com"}
OWN = {"type": "custom-s3", "platform": "https://eodata.example.com", "region": "eu-1"}
PAYING = {**AWS, "requester_pays": True}
CLOUDFERRO = "https://s3.waw3-2.cloudferro.com/bucket/a.tif"


def stored(
    schemes: dict[str, object], refs: list[str] | None, href: str = "s3://b/k", **more: Any
) -> dict[str, object]:
    asset: dict[str, object] = {} if refs is None else {"storage:refs": refs}
    return protected_item(S3, href, asset=asset, properties={"storage:schemes": schemes}, **more)


ROWS = [
    Row("T01", protected_item(S3, "https://data.example.com/a"), HREF, WARNING, "storage:schemes"),
    Row("T01", protected_item(S3, "ftp://data.example.com/a"), HREF, WARNING, "its scheme"),
    Row(
        "T01",
        protected_item(S3, "https://b.s3-website.eu-west-1.amazonaws.com/a"),
        HREF,
        WARNING,
        "website",
    ),
    Row("T02", protected_item(S3, "s3://b/k", has_refs=False), HREF, INFO, "not signed"),
    Row("T03", protected_item(S3, CLOUDFERRO), HREF, INFO, "endpoint and region"),
    Row("T03", protected_item(S3, "https://minio.example.com/b/k"), HREF, INFO, "not at AWS"),
    Row("T03", protected_item(S3, "https://data.example.com/a"), HREF, INFO, "not at AWS"),
    Row("T04", protected_item(LOGIN, "s3://b/k"), HREF, WARNING, '"access"'),
    Row("T04", protected_item(client_credentials(), "s3a://b/k"), HREF, WARNING, "signed requests"),
    Row(
        "T04",
        protected_item({"type": "http", "scheme": "basic"}, "s3://b/k"),
        HREF,
        WARNING,
        '"access"',
    ),
    Row("T05", stored({"p": PAYING}, ["p"], has_refs=False), "/assets/data", WARNING, '"p" makes'),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


EXCHANGE = oauth2(
    tokenExchange={"tokenUrl": "https://login.example.com/t", "scopes": {}},
)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        *(
            ("T01", protected_item(S3, href))
            for href in (
                "s3://bucket/key",
                "s3://bucket",
                "gs://bucket/key",
                "abfss://container@account.dfs.core.windows.net/key",
                "https://bucket.s3.eu-west-1.amazonaws.com/key",
                "https://s3.amazonaws.com/bucket/key",
                "./key",
                CLOUDFERRO,
            )
        ),
        ("T01", stored({"own": OWN}, ["own"], "https://eodata.example.com/b/k")),
        ("T01", stored({"own": OWN}, None, "https://eodata.example.com/b/k")),
        ("T01", protected_item(LOGIN, "https://data.example.com/a")),
        ("T02", protected_item(S3, "s3://b/k")),
        ("T02", protected_item(S3, "https://data.example.com/a", has_refs=False)),
        ("T02", protected_item(S3, "s3://b/k", asset={"auth:refs": []}, has_refs=False)),  # (R06)
        ("T03", protected_item(S3, "https://b.s3.eu-west-1.amazonaws.com/k")),
        ("T03", stored({"own": OWN}, ["own"], CLOUDFERRO)),
        ("T03", stored({"own": OWN}, None, "https://eodata.example.com/b/k")),
        ("T03", protected_item(S3, "./a")),
        ("T03", protected_item(LOGIN, "https://data.example.com/a")),
        ("T04", protected_item(S3, "s3://b/k")),
        ("T04", protected_item(LOGIN, "https://data.example.com/a")),
        ("T04", protected_item(EXCHANGE, "s3://b/k")),  # (it may end in keys)
        ("T04", protected_item({"type": "com.example.own"}, "s3://b/k")),
        ("T05", stored({"p": PAYING}, ["p"])),
        ("T05", stored({"p": {**PAYING, "requester_pays": "true"}}, ["p"], has_refs=False)),
        ("T05", stored({"p": AWS}, ["p"], has_refs=False)),
        ("T05", stored({"p": PAYING, "free": OWN}, ["p", "free"], has_refs=False)),
        ("T05", stored({"p": PAYING}, ["other"], has_refs=False)),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


def test_an_alternative_that_can_sign_is_enough() -> None:
    document = protected_item(LOGIN, "s3://b/k", schemes={"keys": S3})
    document["assets"]["data"]["auth:refs"].append("keys")  # type: ignore[index]
    assert not found("T04", document)


def test_a_store_is_known_from_the_collection() -> None:
    ancestors = Ancestors({"type": "Collection", "storage:schemes": {"own": OWN}})
    document = protected_item(S3, "https://eodata.example.com/b/k")
    assert found("T01", document)
    assert not found("T01", document, ancestors=ancestors)


def test_own_stores_do_not_hide_those_of_the_collection() -> None:
    """A resolution reads the collection's as well, and both look them up in one place."""
    ancestors = Ancestors({"type": "Collection", "storage:schemes": {"own": OWN, "aws": OWN}})
    document = stored({"aws": AWS}, ["own"], "https://eodata.example.com/b/k")
    assert found("T01", document)
    assert not found("T01", document, ancestors=ancestors)
    # The nearest definition of a name counts.
    (aws,) = found("T01", stored({"aws": AWS}, ["aws"], "https://eodata.example.com/b/k"))
    elsewhere = stored({"aws": AWS}, ["aws"], "https://eodata.example.com/b/k")
    assert found("T01", elsewhere, ancestors=ancestors) == [aws]


def test_objects_of_one_bucket_are_told_once() -> None:
    document = protected_item(S3, "s3://b/1", has_refs=False)
    document["assets"]["more"] = {"href": "s3://b/2"}  # type: ignore[index]
    document["assets"]["else"] = {"href": "s3://c/3"}  # type: ignore[index]
    assert places("T02", document) == [HREF, "/assets/else/href"]
