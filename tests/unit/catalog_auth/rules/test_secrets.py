"""X: secrets in documents. Tokens are put together here, so that no scanner takes them for real."""

import json
from typing import Any

import pytest

from tests.support.catalog_auth.findings import HREF, SCHEME, Row, check, found, repair_of
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.rules.examples.items import (
    client_credentials,
    protected_item,
    query_parameter,
    signed,
)
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.verdict.report import Options, validate

ERROR, WARNING = Severity.ERROR, Severity.WARNING
S3 = {"type": "s3"}
OBJECT = "https://bucket.s3.us-west-2.amazonaws.com/scene.tif"
BLOB = "https://account.blob.core.windows.net/container/scene.tif"
SIGNATURE = "d41d8cd98f00b204e9800998ecf8427e"
JWT = ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxIn0", "c2lnbmF0dXJlLW9mLWl0"])
AWS_ID = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "a1B2" * 9
SLACK = "xoxb-" + "123456789012-abcdef"
STRIPE = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
GOOGLE = "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"
PEM = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA\n"
# Published by design: Mapbox's and Stripe's names for a key that opens nothing.
MAPBOX = "pk." + "eyJ1IjoiZXhhbXBsZSIsImEiOiJja2V4YW1wbGUifQ" + ".a1B2c3D4e5F6g7H8i9J0kL"
STRIPE_PUBLIC = "pk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
TOKENS = [JWT, AWS_ID, GITHUB, SLACK, STRIPE, GOOGLE, PEM]
PASSWORD = "correct-horse"
PARAMETER = f"{SCHEME}/flows/sign/parameters"


def described(text: str) -> dict[str, object]:
    return protected_item({"type": "http", "scheme": "basic", "description": text})


def defaulted(value: object, name: str = "token", member: str = "default") -> dict[str, object]:
    schema = {"type": "string", member: value}
    return protected_item(signed({"href": query_parameter(), name: query_parameter(schema=schema)}))


def public(href: str) -> dict[str, object]:
    return protected_item(S3, href, has_refs=False)


PRESIGNED = [
    f"{OBJECT}?X-Amz-Algorithm=A&X-Amz-Credential={AWS_ID}&X-Amz-Signature={SIGNATURE}",
    f"{OBJECT}?x-amz-signature={SIGNATURE}",
    f"{OBJECT}?AWSAccessKeyId={AWS_ID}&Expires=1&Signature={SIGNATURE}",
    f"{BLOB}?sv=2022-11-02&se=2030-01-01&sp=r&sig={SIGNATURE}%3D",
    f"https://storage.googleapis.com/b/k?X-Goog-Algorithm=A&X-Goog-Signature={SIGNATURE}",
    f"https://storage.googleapis.com/b/k?GoogleAccessId=a&Expires=1&Signature={SIGNATURE}",
    f"https://d1.cloudfront.net/k?Expires=1&Signature={SIGNATURE}&Key-Pair-Id=APKA",
]
ROWS = [
    *(Row("X01", public(href), HREF, ERROR, "d41d… (") for href in PRESIGNED),
    Row("X02", public(f"https://u:{PASSWORD}@e.org/a"), HREF, ERROR, "corr… (13 characters)"),
    Row("X02", public("https://someone@e.org/a"), HREF, ERROR, "a user"),
    Row("X02", public(f"ftp://u:{PASSWORD}@e.org/a"), HREF, ERROR, "a password"),
    Row(
        "X02",
        protected_item(client_credentials(tokenUrl=f"https://u:{PASSWORD}@e.org/t")),
        f"{SCHEME}/flows/clientCredentials/tokenUrl",
        ERROR,
        "a password",
    ),
    *(
        Row("X03", described(f"Use {token}, please"), f"{SCHEME}/description", ERROR, token[:4])
        for token in TOKENS
    ),
    Row(
        "X03",
        protected_item({"type": "com.example.own", "a": [{"b": JWT}]}),
        f"{SCHEME}/a/0/b",
        ERROR,
        "Web",
    ),
    Row(
        "X03",
        protected_item(signed(authorizationApi=f"https://e.org/sign?code={SIGNATURE}")),
        f"{SCHEME}/flows/sign/authorizationApi",
        ERROR,
        'of "code" in the query looks like a secret: d41d… (32',
    ),
    Row(
        "X03",
        protected_item(signed(authorizationApi=f"https://e.org/sign?v={GOOGLE}")),
        f"{SCHEME}/flows/sign/authorizationApi",
        ERROR,
        "a Google API key",
    ),
    *(
        Row("X04", defaulted(token), f"{PARAMETER}/token/schema/default", ERROR, token[:4])
        for token in TOKENS
    ),
    Row("X04", defaulted([JWT], "any", "examples"), f"{PARAMETER}/any/schema/examples", ERROR, "J"),
    Row("X04", defaulted(SIGNATURE), f"{PARAMETER}/token/schema/default", ERROR, "d41d… (32"),
    Row("X05", public(f"https://e.org/a?access_token={PASSWORD}"), HREF, WARNING, "access_token"),
    Row(
        "X05",
        public(f"https://e.org/a?access_token=s{MAPBOX[1:]}"),
        HREF,
        WARNING,
        "a secret Mapbox token",
    ),
    Row("X05", public(f"https://e.org/a?key={SIGNATURE}"), HREF, WARNING, "d41d… (32 characters)"),
    Row("X05", public(f"https://e.org/a?v={GOOGLE}"), HREF, WARNING, "a Google API key"),
]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_said(row: Row) -> None:
    check(row)


@pytest.mark.parametrize(
    ("rule", "document"),
    [
        ("X01", public(f"{OBJECT}?versionId={SIGNATURE}")),
        ("X01", public(f"{OBJECT}?X-Amz-Signature=")),
        ("X01", public(f"https://e.org/a?sig={SIGNATURE}")),  # (no expiry: not Azure's)
        ("X01", public(f"https://e.org/a?signature={SIGNATURE}")),
        ("X01", public(f"https://e.org/X-Amz-Signature={SIGNATURE}")),
        ("X02", public("abfss://container@account.dfs.core.windows.net/a")),
        ("X02", public("https://{user}:{password}@e.org/a")),
        ("X02", public("ssh://git@e.org/a")),
        ("X02", public("https://e.org/@2x.png")),
        ("X02", public("mailto:someone@e.org")),
        ("X02", public("ftp://anonymous:guest@e.org/a")),
        ("X03", described("eyJ is how they begin; AKIA too, and ghp_")),
        ("X03", described("https://e.org/eyJhbGciOiJIUzI1NiJ9/scene.tif")),
        ("X03", described("S2A_MSIL2A_20220217T183431_N0510_R027_T13VEK_20240516T022440")),
        ("X03", described(f"sha256 {SIGNATURE}{SIGNATURE}")),
        ("X03", described("-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA")),
        ("X03", described("MAKIA" + "IOSFODNN7EXAMPLE")),
        ("X03", defaulted(JWT)),  # (X04)
        (
            "X03",
            protected_item(
                signed(authorizationApi="https://e.org/sign?code=azure&client_id=5f0c3e9a")
            ),
        ),
        ("X04", defaulted("{token}")),
        ("X04", defaulted("YOUR_TOKEN_GOES_HERE_1")),
        ("X04", defaulted("public")),
        ("X04", defaulted(SIGNATURE, "checksum")),
        ("X04", defaulted(60, "token")),
        ("X05", public("https://e.org/a?access_token=")),
        ("X05", public("https://e.org/a?access_token={access_token}")),
        ("X05", public("https://e.org/a?access_token=%3Ctoken%3E")),
        ("X05", public("https://e.org/a?access_token=anonymous")),
        ("X05", public("https://e.org/a?key=elevation-model-europe")),
        ("X05", public(f"https://e.org/a?access_token={MAPBOX}")),
        ("X05", public(f"https://e.org/a?key={STRIPE_PUBLIC}")),
        ("X05", public("https://e.org/a?id=5f0c3e9a7b1d4c2e8f6a0b1c2d3e4f5a")),
        ("X05", public(PRESIGNED[0])),  # (X01)
        (
            "X05",  # (K05)
            protected_item(
                {"type": "apiKey", "in": "query", "name": "token"},
                f"https://e.org/a?token={PASSWORD}",
            ),
        ),
    ],
)
def test_near_misses_are_silent(rule: str, document: object) -> None:
    assert not found(rule, document)


# Rules that nobody wants to hear still keep secrets.
UNHEARD = ("X01", "X02", "X03", "X04", "X05", "K05")
SECRETS: list[tuple[str, dict[str, Any]]] = [
    *((SIGNATURE, public(href)) for href in PRESIGNED),
    (PASSWORD, public(f"https://u:{PASSWORD}@10.0.0.1/a")),
    (PASSWORD, protected_item({"type": "http", "scheme": "basic"}, f"http://u:{PASSWORD}@e.org/a")),
    (PASSWORD, protected_item(client_credentials(tokenUrl=f"http://u:{PASSWORD}@e.org/t#x"))),
    (PASSWORD, protected_item(client_credentials(tokenUrl=f"http://u:{PASSWORD}@e.org/t x"))),
    *((token, described(f"<b>{token}</b>")) for token in TOKENS),
    *((token, described(f"<b {JWT} {token}>")) for token in TOKENS if token != JWT),
    (SIGNATURE, protected_item(signed(authorizationApi=f"http://[e.org/?token={SIGNATURE}"))),
    *((token, protected_item({"type": "http", "scheme": f"Bearer {token}"})) for token in TOKENS),
    *((token, protected_item({"type": token})) for token in TOKENS),
    *((token, protected_item(signed(method=token))) for token in TOKENS),
    *((token, protected_item(signed(authorizationApi=token))) for token in TOKENS),
    *((token, defaulted(token)) for token in TOKENS),
    (SIGNATURE, defaulted(SIGNATURE)),
    (PASSWORD, public(f"https://localhost/a?password={PASSWORD}")),
    (
        PASSWORD,
        protected_item(
            {"type": "apiKey", "in": "query", "name": "k"},
            f"http://127.0.0.1/a?k={PASSWORD}",
        ),
    ),
]


@pytest.mark.parametrize(("secret", "document"), SECRETS)
def test_no_finding_of_any_rule_shows_a_secret(secret: str, document: dict[str, Any]) -> None:
    for severities in ({}, dict.fromkeys(UNHEARD)):
        verdict = validate(document, Options(severities=severities))
        assert verdict.findings or severities
        for finding in verdict.findings:
            steps = [(step.value, step.path) for step in repair_of(finding) or ()]
            told = f"{finding.message}{json.dumps(steps)}{pointer(finding.path)}"
            assert secret not in told
            assert secret[:8] not in told


def test_only_what_signs_goes_from_the_href() -> None:
    (finding,) = found("X01", public(f"{PRESIGNED[0]}&versionId=3#page=2"))
    assert finding.fix is None
    (offered,) = finding.suggestions
    assert offered.steps[0].value == f"{OBJECT}?versionId=3#page=2"


def test_only_the_user_goes_from_a_url() -> None:
    (finding,) = found("X02", public(f"https://u:{PASSWORD}@e.org:8443/a?b=c@d#e"))
    assert finding.fix is None
    (offered,) = finding.suggestions
    assert offered.steps[0].value == "https://e.org:8443/a?b=c@d#e"
