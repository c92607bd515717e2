"""Every case of catalog auth: the verdict, the rules, and what the official schema says.

The cases of part E name the rules that matter to each; the project's own name all of them.
"""

import json
from collections.abc import Iterator
from typing import Any

from tests.support.catalog_auth.data import (
    own_cases,
    public_documents,
    specified_cases,
)
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.document.paths import pointer
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import Profile
from tollgate.serve.catalog_auth.verdict.report import Options, Verdict, validate, validate_raw

# What is found in the cases of part E besides the rules that they name, and is true.
BESIDES = {
    # A deprecated or unknown flow is also incomplete; an incomplete request also has no answer.
    **{case: {"O01"} for case in ("m10", "m11")},
    "m14": {"O04"},
    **{case: {"G04"} for case in ("m16", "m17", "s23", "t22", "t24", "t25", "t27", "t28")},
    **{case: {"G04"} for case in ("t30", "t33")},
    # Nothing else names the scheme, as in r01.
    **{case: {"R04"} for case in ("r17", "p21", "n02", "n05")},
    "p12": {"S18"},
    # The official schema takes this key for a predefined one.
    "s20": {"S10"},
    # What v1.1.0 rejects is a warning under v1.0.0.
    "o01": {"S07"},
}


def test_the_cases_of_part_e() -> None:
    # r04 and s50 need more than the document, and have tests of their own.
    cases = [case for case in specified_cases() if case["id"] not in ("r04", "s50")]
    failures = [line for case in cases for line in disagreements(case)]
    assert not failures, "\n".join(failures)


def disagreements(case: dict[str, Any]) -> Iterator[str]:
    """What the verdict has against one of the cases of part E."""
    raw = json.dumps(case["doc"]).encode()
    verdict = validate_raw(raw)
    if validate(case["doc"]) != verdict:
        yield f"{case['id']}: it depends on whether the text is there"
    if (ours := outcome(verdict)) != case["ours"]:
        yield f"{case['id']}: {ours} instead of {case['ours']}: {case['title']}"
    if verdict.schema_valid is not case["official"]["as_declared"]:
        yield f"{case['id']}: schema_valid is {verdict.schema_valid}"
    expected = {name.removesuffix("-info") for name in case["rules"]}
    if lost := expected - {finding.rule for finding in verdict.findings}:
        yield f"{case['id']}: not found: {sorted(lost)}"
    informational = {name.removesuffix("-info") for name in case["rules"] if "-info" in name}
    loud = {finding.rule for finding in verdict.findings if finding.severity is not Severity.INFO}
    if too_loud := informational & loud:
        yield f"{case['id']}: more than information: {sorted(too_loud)}"
    heard = rules_found(verdict, Severity.WARNING, Severity.ERROR)
    if extra := heard - expected - BESIDES.get(case["id"], set()):
        yield f"{case['id']}: also found: {sorted(extra)}"


def outcome(verdict: Verdict) -> str:
    if verdict.counts[Severity.ERROR]:
        return "reject"
    return "warn" if verdict.counts[Severity.WARNING] else "accept"


def rules_found(verdict: Verdict, *severities: Severity) -> set[str]:
    return {finding.rule for finding in verdict.findings if finding.severity in severities}


def test_what_is_told_besides_is_told() -> None:
    for case in specified_cases():
        heard = rules_found(validate(case["doc"]), Severity.WARNING, Severity.ERROR)
        assert BESIDES.get(case["id"], set()) <= heard, case["id"]


def test_the_schemas_of_all_versions_agree_with_the_cases() -> None:
    failures = [
        f"{case['id']} as v{version}"
        for case in specified_cases()
        for version in Version
        if validate(case["doc"], Options(version=version)).schema_valid
        is not case["official"][f"as_v{version}"]
    ]
    assert not failures, "\n".join(failures)


def specified_case(name: str) -> dict[str, Any]:
    (case,) = (case for case in specified_cases() if case["id"] == name)
    return case


def test_an_item_whose_schemes_stand_in_its_collection() -> None:
    case = specified_case("r04")
    alone = validate(case["doc"])
    assert outcome(alone) == case["ours"]
    assert rules_found(alone, Severity.ERROR) == {"S01", "R02"}
    above = Ancestors(collection={"type": "Collection", "auth:schemes": {"o": {"type": "s3"}}})
    usual = validate(case["doc"], ancestors=above)
    assert outcome(usual) == "warn"
    assert {"S01", "R03"} <= rules_found(usual, Severity.WARNING)
    strict = validate(case["doc"], Options(profile=Profile.STRICT), above)
    assert outcome(strict) == case["ours"]
    assert {"S01", "R03"} <= rules_found(strict, Severity.ERROR)
    assert usual.schema_valid is strict.schema_valid is False


def test_a_scheme_that_is_defined_twice_shows_in_the_text_alone() -> None:
    case = specified_case("s50")
    assert outcome(validate(case["doc"])) == case["ours"]
    scheme = '"o": {"type": "openIdConnect"'
    twice = json.dumps(case["doc"]).replace(scheme, f'"o": {{"type": "s3"}}, {scheme}')
    verdict = validate_raw(twice.encode())
    assert rules_found(verdict, *Severity) == {"S21"}
    assert pointer(verdict.findings[0].path) == "/properties/auth:schemes/o"


def test_public_documents_raise_no_false_alarm() -> None:
    """One of them has a true error: an alternate references a scheme that nobody defines."""
    errors = {}
    for name, raw in public_documents().items():
        verdict = validate_raw(raw)
        found = {(f.rule, pointer(f.path)) for f in verdict.findings if f.severity == "error"}
        if found:
            errors[name] = found
        assert verdict.valid is not bool(found)
    (name,) = errors
    assert "sentinel-2-global-mosaics" in name
    assert errors[name] == {("R11", "/item_assets/B04/alternate/https/auth:refs/0")}


def test_public_documents_are_what_the_official_schemas_say_they_are() -> None:
    for raw in public_documents().values():
        assert validate_raw(raw).schema_valid in (True, None)


def test_the_projects_own_cases() -> None:
    cases = list(own_cases())
    failures = [line for case in cases for line in own_disagreements(case)]
    assert not failures, "\n".join(failures)
    assert len({case["id"] for case in cases}) == len(cases)


def own_disagreements(case: dict[str, Any]) -> Iterator[str]:
    options = Options(profile=Profile(case.get("profile", "default")))
    above = Ancestors(case.get("above_collection"), case.get("above_catalog"))
    verdict = validate(case["doc"], options, above)
    found = {
        "verdict": outcome(verdict),
        "schema_valid": verdict.schema_valid,
        **{
            severity.value: sorted(rules_found(verdict, severity))
            for severity in reversed(Severity)
            if rules_found(verdict, severity)
        },
    }
    said = {name: case[name] for name in ("verdict", "schema_valid", *Severity) if name in case}
    if found != said:
        yield f"{case['id']}: {found}, not {said}"


def test_every_rule_has_a_case_of_the_projects_own() -> None:
    """Rules about raw text, which a case is not, are shown elsewhere."""
    named = {
        rule for case in own_cases() for severity in Severity for rule in case.get(severity, ())
    }
    assert set(RULES) - named <= {"S21"}
