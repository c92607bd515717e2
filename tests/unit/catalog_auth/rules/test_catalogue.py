"""The catalogue of rules: each says what it has to say, and has an example that has its finding."""

import re
from collections import Counter

import pytest

from tollgate.serve.catalog_auth import rules
from tollgate.serve.catalog_auth.document.document import Ancestors
from tollgate.serve.catalog_auth.rules.catalogue import RULES
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, Profile
from tollgate.serve.catalog_auth.verdict.report import Options, Verdict, validate, validate_raw

# How many rules part C has of each group, and the one of R that profiles add.
LAST = {"S": 21, "E": 9, "R": 18, "H": 5, "O": 14, "K": 5, "G": 13, "T": 5, "X": 8, "D": 2, "C": 4}
NOT_THERE = {"O03"}
# A mistake that is one by two rules.
COMPANIONS = {
    "H01": {"S05"},
    "O10": {"S09", "S11"},
    "O11": {"S10"},
    "C02": {"S07"},
    "X03": {"D01"},
}


def verdict_of(rule: CatalogRule) -> Verdict:
    """What is said of the rule's example, in the first profile that the rule runs in."""
    profiles = [Profile.DEFAULT, *rule.profiles]
    profile = next(profile for profile in profiles if rule.severity_in(profile) is not None)
    options = Options(profile)
    ancestors = Ancestors(rule.example_collection)
    if rule.example_text is not None:
        return validate_raw(rule.example_text, options, ancestors)
    return validate(dict(rule.example), options, ancestors)  # type: ignore[arg-type]


def test_every_rule_of_part_c_is_there_once() -> None:
    expected = {f"{group}{n:02}" for group, last in LAST.items() for n in range(1, last + 1)}
    assert set(RULES) == expected - NOT_THERE


def test_the_folder_says_which_file_has_which_rule() -> None:
    rows = re.findall(r"^((?:[A-Z]\d\d ?)+) +(\S+)\.py$", rules.__doc__ or "", re.MULTILINE)
    told = {rule: file.replace("/", ".") for ids, file in rows for rule in ids.split()}
    homes = {rule.id: rule.check.__module__ for rule in RULES.values()}
    assert homes == {rule: f"{rules.__name__}.{file}" for rule, file in told.items()}
    assert [ids.split()[0] for ids, _ in rows] == sorted(ids.split()[0] for ids, _ in rows)


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_example_of_a_rule_has_its_finding(rule: CatalogRule) -> None:
    found = {finding.rule: finding for finding in verdict_of(rule).findings}
    assert rule.id in found
    assert len(found[rule.id].message) > 10


@pytest.mark.parametrize("rule", [r for r in RULES.values() if r.id[0] in "HOKGTXDC"], ids=str)
def test_the_example_of_a_rule_is_about_nothing_else(rule: CatalogRule) -> None:
    others = {
        finding.rule
        for finding in verdict_of(rule).findings
        if finding.severity is not Severity.INFO and finding.rule != rule.id
    }
    assert others <= COMPANIONS.get(rule.id, set()) | {"R04", "X06", "H05"}


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_a_rule_is_described(rule: CatalogRule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9_]+)*", rule.name)
    for text in (rule.says, rule.why, rule.source, rule.repair):
        assert text.rstrip(")").endswith((".", "?"))
        assert len(text) < 240


def test_names_are_used_once() -> None:
    names = Counter(rule.name for rule in RULES.values())
    assert not [name for name, count in names.items() if count > 1]
