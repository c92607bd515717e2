"""Rule files and descriptors: the cases of 3A, 3B and 3C, as data in `rules/`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.builder import RuleFile, RuleFileError, load_rules
from tollgate.actors.ratelimit.rules.descriptors import Override, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.draft_reader import read_rule_file
from tollgate.actors.ratelimit.rules.explanation import explain_match
from tollgate.actors.ratelimit.rules.rule_match import Match, NoMatch, match
from tollgate.actors.ratelimit.rules.warnings import find_warnings

# Every case there is; a case may be spread over several, named `A23-negative` and so.
IDS = {
    *("A01", "A02", "A03", "A05", "A06", "A07", "A08", "A09", "A10", "A12", "A13", "A14", "A15"),
    *("A16", "A17", "A19", "A20", "A21", "A22", "A23", "A24", "A26", "A27", "A28", "A29", "A30"),
    *("A31", "B01", "B02", "B04", "B05", "B06", "B07", "B09", "B10", "B11", "B12", "B14", "B15"),
    *("B16", "B17", "B19", "B20", "B21", "B22", "B24", "B25", "B26", "B27", "C01", "C02", "C04"),
    *("C05", "C06", "C07", "C09", "C10", "C11", "C12", "C14", "C15", "C16", "C17", "C19", "C20"),
    *("C21", "C22", "C24", "C25", "C26", "C27", "C29", "C30", "C31", "C32", "C34", "C35", "C36"),
    *("C37", "C39", "C40", "C41", "C42", "C44"),
}
NO_MATCH = {
    "none": NoMatch.NO_RULE,
    "unknown domain": NoMatch.UNKNOWN_DOMAIN,
    "refused": NoMatch.OVERRIDE_UNIT_UNKNOWN,
}

Case = dict[str, Any]


def load(name: str) -> Any:
    return yaml.safe_load((Path(__file__).parent / "rules" / name).read_text(encoding="utf-8"))


def matching_cases(name: str) -> list[Case]:
    document = load(name)
    return [{"rules": document["rules"], **case} for case in document["cases"]]


ACCEPTANCE: list[Case] = load("acceptance.yaml")
MATCHING = matching_cases("matching.yaml") + matching_cases("wildcards.yaml")


def named(case: Case) -> str:
    return str(case["id"])


def test_every_case_is_here_once() -> None:
    ids = [named(case) for case in ACCEPTANCE + MATCHING]
    assert len(ids) == len(set(ids))
    assert {each.partition("-")[0] for each in ids} == IDS


@pytest.mark.parametrize("case", ACCEPTANCE, ids=named)
def test_files_are_accepted_or_refused_in_these_words(case: Case) -> None:
    files = [RuleFile(name, text) for name, text in case["files"].items()]
    if "meets" not in case:
        with pytest.raises(RuleFileError) as refusal:
            load_rules(files, merge_domains=case.get("merges", False))
        assert str(refusal.value).startswith(case.get("error_starts", case.get("error")))
        assert "error" not in case or str(refusal.value) == case["error"]
        assert refusal.value.line is not None
        return
    rules = load_rules(files, merge_domains=case.get("merges", False))
    for request in case["meets"]:
        met = match(rules, request["domain"], descriptor(request))
        assert_expected(met, request["limit"])
        if "metadata" in request:
            assert isinstance(met, Match)
            assert met.metadata == request["metadata"]
    warnings = find_warnings([read_rule_file(file) for file in files])
    assert [str(warning) for warning in warnings] == case.get("warnings", [])


@pytest.mark.parametrize("case", MATCHING, ids=named)
def test_descriptors_meet_the_rules_of_the_case(case: Case) -> None:
    rules = load_rules([RuleFile("basic.yaml", case["rules"])], merge_domains=False)
    domain = case.get("domain", "d")
    counters = []
    for request in case["requests"]:
        met = match(rules, domain, descriptor(request))
        assert_expected(met, request["expect"])
        told = explain_match(rules, domain, descriptor(request))
        assert told.match == (met if isinstance(met, Match) else None)
        if not isinstance(met, Match):
            continue
        counters.append(met.counter_entries)
        assert met.metric_key == request["metric"]
        assert met.limit.name == request.get("name", "")
        assert met.metadata == request.get("metadata")
        assert (met.rule is None) == request.get("is_override", False)
        if "counter" in request:
            assert met.counter_entries == pairs(request["counter"])
    expected = {"one": 1, "separate": len(counters)}
    if "counters" in case:
        assert len(counters) > 1
        assert len(set(counters)) == expected[case["counters"]]


def assert_expected(met: Match | NoMatch, expected: str) -> None:
    if isinstance(met, NoMatch):
        assert met is NO_MATCH.get(expected), expected
    elif met.limit.unit is None:
        assert expected == "unlimited"
    else:
        assert f"{met.limit.requests_per_unit}/{met.limit.unit.name.lower()}" == expected


def descriptor(request: Case) -> RateLimitDescriptor:
    written = request.get("override")
    override = None
    if written is not None:
        unit = None if written["unit"] is None else Unit[written["unit"].upper()]
        override = Override(written["requests_per_unit"], unit)
    return RateLimitDescriptor(pairs(request["entries"]), override)


def pairs(entries: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in entries)
