"""Judgements as text, as annotations, as SARIF; and which of them a caller wants."""

import json
from typing import Any

import pytest

from tests.support.catalog_auth.api import DANGLING, item
from tollgate.serve.catalog_auth.api.content_negotiation import wanted_type
from tollgate.serve.catalog_auth.document.positions import TextPosition
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.page.excerpts import LINE_LENGTH_MAX, excerpt_of
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.verdict.formats.sarif import sarif_log
from tollgate.serve.catalog_auth.verdict.formats.text import (
    WIDTH,
    as_github,
    as_text,
    total_line,
    unusable_as_github,
    verdict_line,
)
from tollgate.serve.catalog_auth.verdict.judgement import Judged, UnusableDocument, judge
from tollgate.serve.catalog_auth.verdict.report import Options

OFFERED = ("application/json", "application/sarif+json", "text/plain")
BROKEN = UnusableDocument("b.json", "is not JSON: expecting value", 3, 7)
# SARIF 2.1.0: what each object of these must have, and what its values may be.
LEVELS = {"none", "note", "warning", "error"}


def dangling() -> Judged:
    return judge(json.dumps(DANGLING, indent=1).encode(), "a,b:c%.json")


def test_text_says_where_what_why_and_how() -> None:
    lines = list(as_text(dangling()))
    start = next(i for i, line in enumerate(lines) if ": error: " in line)
    where, _, what = lines[start].partition(": error: ")
    name, line, column = where.rsplit(":", 2)
    assert (name, what) == ("a,b:c%.json", "R01 dangling-ref")
    assert int(line) > 1
    assert int(column) > 1
    assert '"Login"' in lines[start + 1]
    assert lines[start + 2].startswith("    why: ")
    assert lines[start + 3].startswith("    fix: ")
    assert '     can: reference "login"' in lines
    assert all(len(line) <= WIDTH for line in lines)
    last = "a,b:c%.json: not valid, schema valid (1 error, 1 warning, 1 note)"
    assert lines[-1] == last


def test_text_of_a_good_document_is_one_line() -> None:
    good = judge(json.dumps(item()).encode(), "good.json")
    assert list(as_text(good)) == ["good.json: valid, schema valid"]
    assert total_line([good, dangling()], 1) == "3 documents: 1 valid, 1 not valid, 1 unusable"


def test_annotations_escape_what_ends_a_property_or_a_line() -> None:
    error = next(line for line in as_github(dangling()) if line.startswith("::error "))
    properties, _, message = error.removeprefix("::error ").partition("::")
    assert properties.startswith("file=a%2Cb%3Ac%25.json,line=")
    assert properties.endswith(",title=R01 dangling-ref")
    assert "%0Afix: " in message
    assert "\n" not in error
    assert unusable_as_github(BROKEN) == (
        "::error file=b.json,line=3,col=7,title=unusable::is not JSON: expecting value"
    )


def test_sarif_has_what_it_must_have() -> None:
    log: Any = json.loads(json.dumps(sarif_log([dangling()], "1.0", [BROKEN])))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["R01", "R04", "R07"]
    assert len(run["results"]) == 3
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"]
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region["startColumn"] >= 1
        assert location["logicalLocations"][0]["fullyQualifiedName"].startswith("/")
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a,b%3Ac%25.json"
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == BROKEN.reason


def test_sarif_of_nothing_found_is_a_run_without_results() -> None:
    (run,) = json.loads(json.dumps(sarif_log([], "1.0")))["runs"]
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True}]


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", 0),
        ("*/*", 0),
        ("application/sarif+json", 1),
        ("text/plain", 2),
        ("text/*", 2),
        ("text/html", 0),
        ("application/json;q=0.1, text/plain;q=0.2", 2),
        ("application/sarif+json;q=0.5, */*;q=0.1", 1),
        ("application/*, text/plain;q=0.9", 0),
        ("application/json;q=0, */*", 1),
        ("text/plain;q=oops, application/sarif+json;q=0.1", 1),
        (",,;;,q", 0),
    ],
)
def test_the_heaviest_type_is_wanted(accept: str, wanted: int) -> None:
    assert wanted_type(accept, OFFERED) == OFFERED[wanted]


def test_an_excerpt_is_the_lines_around() -> None:
    lines = [f"line {number}" for number in range(1, 10)]
    shown = excerpt_of(lines, TextPosition(5, 2)).lines
    assert [line.number for line in shown] == [4, 5, 6, 7]
    assert [line.is_marked for line in shown] == [False, True, False, False]
    assert [line.number for line in excerpt_of(lines, TextPosition(1, 1)).lines] == [1, 2, 3]
    assert [line.number for line in excerpt_of(lines, TextPosition(9, 1)).lines] == [8, 9]


def test_an_excerpt_of_a_long_line_is_what_is_around_the_column() -> None:
    line = "".join(f"{number:05}," for number in range(1_000))
    (shown,) = excerpt_of([line], TextPosition(1, 3_001)).lines
    assert line[3_000:3_040] in shown.text
    assert len(shown.text) == LINE_LENGTH_MAX + 2
    (first,) = excerpt_of([line], TextPosition(1, 1)).lines
    assert first.text.startswith("00000,")


def test_no_version_is_no_refusal() -> None:
    undeclared = judge(json.dumps({**item({}), "stac_extensions": []}).encode(), "x.json")
    assert "does not declare the extension" in list(as_text(undeclared))[-1]
    plain = judge(b'{"type": "Catalog", "links": []}', "catalog.json")
    assert list(as_text(plain)) == ["catalog.json: valid, does not declare the extension"]
    unknown = Version.V1_1_0.identifier.replace("1.1.0", "1.9.0")
    wrong = judge(json.dumps({**item({}), "stac_extensions": [unknown]}).encode(), "x.json")
    assert ", declares no version of the extension that exists (" in list(as_text(wrong))[-1]


@pytest.mark.parametrize("severity", [None, Severity.INFO, Severity.WARNING, Severity.ERROR])
@pytest.mark.parametrize(
    "identifier",
    [Version.V1_1_0.identifier.replace("1.1.0", "9.9.9"), "authentication"],
    ids=["unknown version", "malformed"],
)
def test_a_version_that_does_not_exist_is_no_silence(
    identifier: str, severity: Severity | None
) -> None:
    """However bad that is for the caller."""
    declaring = {**item({}), "stac_extensions": [identifier]}
    silent = {**item({}), "stac_extensions": []}
    together = {"type": "FeatureCollection", "features": [silent, declaring]}
    options = Options(severities={"E03": severity, "E07": severity})
    for root in (declaring, together):
        judged = judge(json.dumps(root).encode(), "x.json", options)
        assert judged.verdict.schema_valid is None
        assert ", declares no version of the extension that exists" in verdict_line(judged)
