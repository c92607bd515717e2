"""D: descriptions."""

import pytest

from tests.support.catalog_auth.findings import SCHEME, Row, check, found
from tollgate.serve.catalog_auth.rules.examples.items import protected_item, query_parameter, signed
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.structure.descriptions import LENGTH_MAX, PARSED_LENGTH_MAX

PLACE = f"{SCHEME}/description"


def described(text: object) -> dict[str, object]:
    return protected_item({"type": "http", "scheme": "basic", "description": text})


def parameter(text: str) -> dict[str, object]:
    return protected_item(signed({"href": query_parameter(description=text)}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a <b>bold</b> word", "<b>"),
        ("<script>alert(1)</script>", "<script>"),
        ("<!-- hidden -->", "<!-- hidden -->"),
        ("[log in](javascript:alert(1))", "javascript:alert(1)"),
        ("[log in](JavaScript:alert(1))", "runs code"),
        ("[log in](&#106;avascript:alert(1))", "javascript:alert(1)"),
        ("[log in](vbscript:x)", "vbscript:x"),
        ("[log in](data:text/html,x)", "data:text/html"),
        ("[log in][here]\n\n[here]: javascript:x", "javascript:x"),
        ("<javascript:alert(1)>", "javascript:alert(1)"),
        ("![a](javascript:x)", "javascript:x"),
        ("> - [deep](javascript:x)", "javascript:x"),
    ],
)
def test_markup_that_runs_is_said(text: str, says: str) -> None:
    check(Row("D01", described(text), PLACE, Severity.WARNING, says))


@pytest.mark.parametrize(
    "text",
    [
        "Plain words, *emphasis* and `code`.",
        "[the page](https://example.com/login) and <https://example.com>",
        "<someone@example.com>",
        "Keys of fewer than 3 < 4 letters & more",
        "`<b>` is written as \\<b> or &lt;b&gt;",
        "```html\n<script>\n```",
        "javascript: is no link by itself",
        "![pixel](data:image/png;base64,AAAA)",
        "[page](https://example.com/?next=javascript:x)",
        5,
    ],
)
def test_commonmark_is_fine(text: object) -> None:
    assert not found("D01", described(text))


def test_descriptions_of_parameters_are_read_too() -> None:
    place = f"{SCHEME}/flows/sign/parameters/href/description"
    check(Row("D01", parameter("<i>href</i>"), place, Severity.WARNING, "<i>"))


def test_length_is_told_from_the_limit_on() -> None:
    assert not found("D02", described("x" * LENGTH_MAX))
    check(Row("D02", described("x" * (LENGTH_MAX + 1)), PLACE, Severity.INFO, "2001 characters"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<b>bold</b>", "<b>"),
        ("[log in](javascript:x)", "(javascript:x"),
        ("<!-- x -->", "<!-- x -->"),
    ],
)
def test_a_description_beyond_all_measure_is_searched(text: str, says: str) -> None:
    place = "x [y] < z " * PARSED_LENGTH_MAX
    check(Row("D01", described(f"{place}{text}"), PLACE, Severity.WARNING, says))
    assert not found("D01", described(place))
