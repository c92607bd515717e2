"""The verdict: profiles, overrides, collections of items, and what is never shown."""

from typing import Any

import pytest

from tollgate.serve.catalog_auth.document.document import Kind
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.misplaced_fields import MISPLACED_MAX, find_misplaced
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, collection, item, scene
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity
from tollgate.serve.catalog_auth.rules.rule import (
    FINDINGS_MAX,
    CatalogRule,
    FindingReport,
    Profile,
    RunningRule,
    Subject,
)
from tollgate.serve.catalog_auth.verdict.report import Options, validate, validate_raw

UNUSED = item({"login": LOGIN, "other": {"type": "s3"}}, {"a": scene("login")})


def rules_of(document: Any, options: Options = Options()) -> list[str]:  # noqa: B008 (a value)
    return [finding.rule for finding in validate(document, options).findings]


def test_a_document_without_authentication_is_valid() -> None:
    verdict = validate({"type": "Catalog", "links": []})
    assert verdict.valid
    assert verdict.schema_valid is None
    assert verdict.kind is Kind.CATALOG
    assert (verdict.declared_versions, verdict.findings) == ((), ())


def test_what_is_feared_decides_what_is_valid() -> None:
    for feared, is_valid in (("error", True), ("warning", False), ("info", False)):
        verdict = validate(UNUSED, Options(fail_on=Severity(feared)))
        assert verdict.valid is is_valid
        assert verdict.counts == {"info": 0, "warning": 1, "error": 0}


def test_a_rule_can_be_off_or_worse() -> None:
    assert rules_of(UNUSED) == ["R04"]
    assert rules_of(UNUSED, Options(severities={"R04": None})) == []
    worse = validate(UNUSED, Options(severities={"R04": Severity.ERROR}))
    assert not worse.valid


def test_the_caller_overrules_what_a_check_thinks_of_a_single_case() -> None:
    above_all = {"type": "Feature", "properties": {}, "auth:refs": []}
    (usual, *_) = [f for f in validate(above_all).findings if f.rule == "S16"]
    assert usual.severity is Severity.WARNING
    forced = validate(above_all, Options(severities={"S16": Severity.ERROR}))
    assert Severity.ERROR in {f.severity for f in forced.findings if f.rule == "S16"}


def test_the_schema_profile_has_structure_and_identifier_alone() -> None:
    document = item({"login": {"type": "http"}, "unused": {"type": "s3"}}, {"a": scene("nobody")})
    assert rules_of(document, Options(Profile.SCHEMA)) == ["S06"]
    assert {"R01", "R04"} <= set(rules_of(document))


def test_under_an_older_version_what_newer_ones_demand_is_a_warning() -> None:
    for version, severity in ((Version.V1_0_0, "warning"), (Version.V1_1_0, "error")):
        document = item({"login": {"type": "http"}}, version=version)
        found = {f.rule: f.severity for f in validate(document).findings}
        assert found["S06"] == severity


def test_the_callers_version_is_the_one_to_judge_by() -> None:
    document = item({"login": {"type": "http"}}, version=Version.V1_0_0)
    assert validate(document).schema_valid is True
    assert validate(document, Options(version=Version.V1_1_0)).schema_valid is False
    undeclared = {**document, "stac_extensions": []}
    assert validate(undeclared).schema_valid is None
    assert validate(undeclared, Options(version=Version.V1_1_0)).schema_valid is False


def test_the_features_of_a_collection_are_judged_each() -> None:
    good = item({"login": LOGIN})
    bad = item({"login": LOGIN}, {"a": scene("Login")})
    document = {"type": "FeatureCollection", "features": [good, bad, None, {"type": "x"}]}
    verdict = validate(document)
    found = {(f.rule, pointer(f.path)) for f in verdict.findings}
    where = "/features/1/assets/a/auth:refs/0"
    assert {("R01", where), ("R07", where), ("S19", "/features/2")} < found
    assert ("S19", "/features/3/type") in found
    (offered,) = next(f.suggestions for f in verdict.findings if f.rule == "R07")
    steps: Any = ("features", 1, "assets", "a", "auth:refs", 0)
    assert offered.steps == (Operation("replace", steps, "login"),)
    assert verdict.schema_valid is True
    assert verdict.counts[Severity.ERROR] == 3


@pytest.mark.parametrize(
    ("features", "schema_valid"),
    [
        ([], None),
        ([{"type": "Feature", "properties": {}}], None),
        ([item({"login": LOGIN})], True),
        ([item({"login": LOGIN}), item(assets={}), item({"login": LOGIN})], False),
    ],
)
def test_features_have_the_schemas_verdict_together(
    features: list[Any], schema_valid: bool | None
) -> None:
    document: Any = {"type": "FeatureCollection", "features": features}
    assert validate(document).schema_valid is schema_valid
    document["stac_extensions"] = [Version.V1_1_0.identifier]
    assert validate(document).schema_valid is False


def test_repetitions_are_found_where_they_matter() -> None:
    start = b'{"type": "Catalog", "stac_extensions": ["x"], "links": ['
    twice = [
        b'{"href": "s3://b/a", "auth:refs": ["a"], "auth:refs": ["s"]}], "auth:schemes": {}}',
        b'], "auth:schemes": {"a": {"type": "s3"}, "a": {"type": "s3"}}}',
        b'], "auth:schemes": {"a": {"type": "s3", "type": "http"}}}',
        b'], "auth:schemes" : {"a": {"type": "oauth2", "flows": {"x": {}, "x": {}}}}}',
        b'], "auth:schemes": {}, "auth:schemes": {}}',
    ]
    for rest in twice:
        assert "S21" in [finding.rule for finding in validate_raw(start + rest).findings], rest
    good = (
        rb'{"type": "Feature", "id": "\"\\", "properties": {"storage:schemes": {"s": {}}}, '
        rb'"assets": {"a": {"href": "s3://b/\u0022", "storage:refs": ["s"], "auth:refs": ["k"]}}}'
    )
    assert "S21" not in [finding.rule for finding in validate_raw(good).findings]
    for name in (b"type", b"id", b"properties", b"storage:schemes", b"s", b"a", b"storage:refs"):
        bad = good.replace(b'"%b":' % name, b'"%b": 1, "%b":' % (name, name))
        (found,) = [finding for finding in validate_raw(bad).findings if finding.rule == "S21"]
        assert found.path[-1] == name.decode()
    # What says nothing of access is not read again.
    other = b'{"type": "Feature", "id": 1, "id": 2}'
    assert "S21" not in [finding.rule for finding in validate_raw(other).findings]
    once = b'{"href": "s3://b/a", "auth:refs": ["a"]}], "auth:schemes": {"a": {"type": "s3"}}}'
    assert "S21" not in [finding.rule for finding in validate_raw(start + once).findings]


def test_repetitions_are_found_in_long_schemes_and_in_features() -> None:
    names = ",".join(f'"{number}": {{"type": "s3"}}' for number in range(1_000))
    long = f'{{"type": "Catalog", "auth:schemes": {{{names}, "7": {{"type": "s3"}}}}}}'
    found = validate_raw(long.encode()).findings
    assert [pointer(f.path) for f in found if f.rule == "S21"] == ["/auth:schemes/7"]
    good = '{"type": "Feature", "properties": {"auth:schemes": {"a": {"type": "s3"}}}}'
    for repeated in ('"a": {}, "a"', '"a": {"x": 0, "x": 1}, "b"'):
        bad = good.replace('"a"', repeated)
        text = f'{{"type": "FeatureCollection", "features": [{good}, {bad}, {good}]}}'
        found = validate_raw(text.encode()).findings
        (where,) = [pointer(f.path) for f in found if f.rule == "S21"]
        assert where.startswith("/features/1/properties/auth:schemes/a")
    text = f'{{"type": "FeatureCollection", "features": [{good}, {good}]}}'
    assert "S21" not in [finding.rule for finding in validate_raw(text.encode()).findings]


TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("profile", Profile)
def test_a_secret_is_shown_by_no_rule_in_no_profile(profile: Profile) -> None:
    document = collection(
        {"a": {"type": "http", "scheme": TOKEN, "name": TOKEN, "description": TOKEN}},
        links=[scene("a", TOKEN, href=f"https://user:{TOKEN}@data.example.com/?token={TOKEN}")],
    )
    for severities in ({}, dict.fromkeys(("X01", "X02", "X03", "X04", "X05"), None)):
        verdict = validate(document, Options(profile, severities=severities))
        assert verdict.findings
        assert TOKEN not in repr(verdict.findings)
        assert TOKEN[:10] not in repr(verdict.findings)


def test_findings_stand_in_the_order_of_their_places() -> None:
    assets = {f"a{n}": scene("nobody") for n in range(12)}
    links = [scene("nobody") for _ in range(12)]
    document = item({"login": LOGIN}, {**assets, "z": scene("login")}, links=links)
    found = [f.path for f in validate(document).findings if f.rule == "R01"]
    assert [path[1] for path in found if path[0] == "links"] == list(range(12))
    assert found[0][0] == "assets"


def silent(_: object, report: FindingReport) -> None:
    report.add((), "once more")


def test_of_many_findings_all_are_counted_and_some_are_told() -> None:
    report = FindingReport(locate({}), Profile.DEFAULT, None)
    rule = CatalogRule(
        id="Z01",
        name="z",
        severity=Severity.INFO,
        subject=Subject.DOCUMENT,
        says="",
        why="",
        source="",
        repair="",
        check=silent,
        example={},
    )
    report.step = RunningRule(rule, Severity.INFO, False)
    for _ in range(FINDINGS_MAX + 5):
        silent(None, report)
    assert len(report.finished()) == FINDINGS_MAX
    assert report.counts[Severity.INFO] == FINDINGS_MAX + 5


def test_findings_have_so_many_characters_and_the_rest_is_counted() -> None:
    """A thousand findings may share a place that is as long as the document."""
    name = "n" * 10_000
    refs = [f"r{number}" for number in range(1_000)]
    asset = {"href": "https://data.example.com/a", "auth:refs": refs}
    root: Any = item({"login": LOGIN}, {name: asset})
    feature = {"type": "FeatureCollection", "features": [root, root]}
    for document in (root, feature):
        verdict = validate(document, Options(length_max=100_000))
        assert sum(verdict.counts.values()) > 1_000
        assert 0 < len(verdict.findings) < 20
        assert len(validate(document).findings) > 100


def test_a_place_without_meaning_is_told_less_often_the_longer_it_is() -> None:
    strays = {f"auth:x{number}": 0 for number in range(1_000)}
    deep: Any = strays
    for _ in range(100):
        deep = {"n" * 100: deep}
    found = find_misplaced({"x": strays}, Kind.CATALOG)
    assert len(found) == MISPLACED_MAX
    assert 0 < len(find_misplaced(deep, Kind.CATALOG)) < 10


def test_what_rules_share_is_made_once() -> None:
    made = []
    report = FindingReport(locate({}), Profile.DEFAULT, None)

    def make(document: object) -> int:
        made.append(document)
        return 42

    assert (report.shared(make), report.shared(make)) == (42, 42)
    assert len(made) == 1
