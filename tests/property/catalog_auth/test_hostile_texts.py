"""Texts that mean harm, wherever a rule reads one: every document gets its verdict."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tollgate.serve.catalog_auth.repair.fixes import fix
from tollgate.serve.catalog_auth.rules.examples.items import (
    body_parameter,
    oauth2,
    protected_item,
    query_parameter,
    signed,
)

PIECES = [
    *("https://", "http://", "s3://", "gs://", "abfss://", "file:", "//", ":", "@", "/", "?", "#"),
    *("%", "%4", "%ff", "[", "]", "[::1]", "localhost", "e.org", "..", ".", "com", "xn--a", "s3."),
    *(
        "0x",
        "1",
        "255.255",
        "-",
        "_",
        " ",
        "\n",
        "\x00",
        "&",
        "=",
        "{",
        "}",
        "<",
        ">",
        "~/",
        "C:\\",
    ),
    *("token=", "sig=", "X-Amz-Signature=", "AKIA", "eyJ", ".eyJ", "javascript:", "](", "[a]("),
    *("<b", "&#106;", "ü", "İ", "\u2024", "\u202e", "😀", "a" * 70, "b.s3.amazonaws.com"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=20)


@st.composite
def schemes(draw: st.DrawFn) -> dict[str, object]:
    text: Any = lambda: draw(texts)  # noqa: E731 (a fresh one at every place)
    match draw(st.integers(0, 5)):
        case 0:
            return {"type": text(), "name": text()}
        case 1:
            return {"type": "http", "scheme": text(), "description": text()}
        case 2:
            return {
                "type": "apiKey",
                "in": draw(st.sampled_from(["query", text()])),
                "name": text(),
            }
        case 3:
            return {"type": "openIdConnect", "openIdConnectUrl": text()}
        case 4:
            flow = {"tokenUrl": text(), "refreshUrl": text(), "scopes": {text(): ""}}
            return oauth2(**{text(): flow, "tokenExchange": {**flow, "subjectTokenType": text()}})
    schema = {"type": text(), "default": text(), "enum": [text(), 1]}
    parameters = {text(): query_parameter(**{"in": text()}, schema=schema), "key": body_parameter()}
    return signed(parameters, method=text(), authorizationApi=text(), responseField=text())


@given(schemes(), texts, texts, texts, texts)
def test_every_text_is_judged(
    scheme: dict[str, object], href: str, alternate: str, store: str, platform: str
) -> None:
    document: Any = protected_item(
        scheme,
        href,
        asset={"alternate": {alternate: {"href": alternate}}, "storage:refs": [store]},
        properties={"storage:schemes": {store: {"platform": platform, "requester_pays": True}}},
    )
    fixed = fix(document)
    assert fixed.is_complete
    assert all(finding.message.isprintable() for finding in fixed.verdict.findings)
