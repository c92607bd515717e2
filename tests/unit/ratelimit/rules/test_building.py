"""Drafts to rule sets: what is checked, in which order, and what survives (B1 steps 4 and 5)."""

import pickle

import pytest

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.builder import (
    RuleFile,
    RuleFileError,
    RuleSetBuilder,
    build_rules,
    load_rules,
)
from tollgate.actors.ratelimit.rules.descriptors import ENTRY_BYTES_MAX
from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, RuleDraft
from tollgate.actors.ratelimit.rules.rule_set import Limit, RuleSet, Source
from tollgate.actors.ratelimit.rules.yaml_document import NODE_DEPTH_MAX

MINUTE = LimitDraft("minute", 10, line=7)


def build(*rules: RuleDraft, domain: str = "d") -> RuleSet:
    return build_rules([DomainDraft("f.yaml", domain, rules, line=1)], merge_domains=False)


def refusal(*rules: RuleDraft, domain: str = "d") -> RuleFileError:
    with pytest.raises(RuleFileError) as raised:
        build(*rules, domain=domain)
    return raised.value


def limited(key: str, value: str = "", **fields: object) -> RuleDraft:
    return RuleDraft(key, value, LimitDraft(**{"unit": "minute", "line": 7, **fields}), line=5)


def test_a_rule_keeps_everything() -> None:
    draft = RuleDraft(
        key="k",
        value="v*",
        limit=LimitDraft("HOUR", 10, False, "n", ("other",), line=7),
        is_shadow=True,
        is_quota=True,
        has_detailed_metric=True,
        has_value_to_metric=True,
        shares_threshold=True,
        metadata={"a": 1},
        children=(RuleDraft("child", line=9),),
        line=5,
    )
    rule = build(draft).domains["d"].exact["k_v*"]
    assert rule.limit == Limit(10, Unit.HOUR, "n", ("other",))
    assert rule.source == Source("f.yaml", 5)
    assert str(rule.source) == "f.yaml:5"
    assert rule.is_shadow
    assert rule.is_quota
    assert rule.has_detailed_metric
    assert rule.has_value_to_metric
    assert rule.shares_threshold
    assert rule.metadata == {"a": 1}
    assert [child.key for child in rule.children.exact.values()] == ["child"]


def test_wildcards_keep_their_order() -> None:
    rules = build(RuleDraft("k", "b*"), RuleDraft("k", "x"), RuleDraft("*"), RuleDraft("k", "a*"))
    level = rules.domains["d"]
    assert [rule.id for rule in level.wildcards] == ["k_b*", "*", "k_a*"]
    assert list(level.exact) == ["k_b*", "k_x", "*", "k_a*"]


@pytest.mark.parametrize("written", ["second", "SECOND", "Second", "week", "Month", "yEaR", "day"])
def test_units_are_read_in_any_case(written: str) -> None:
    limit = build(limited("k", unit=written)).domains["d"].exact["k"].limit
    assert limit is not None
    assert limit.unit is Unit[written.upper()]


@pytest.mark.parametrize("written", ["", "foo", "UNKNOWN", "minutes", " minute"])
def test_an_unknown_unit_is_refused_with_its_line(written: str) -> None:
    error = refusal(limited("k", unit=written))
    assert str(error) == f"f.yaml: invalid rate limit unit '{written}'"
    assert error.located == f"f.yaml:7: invalid rate limit unit '{written}'"


@pytest.mark.parametrize("unit", ["", "foo"])
def test_unlimited_rules_forget_number_and_unit(unit: str) -> None:
    rules = build(limited("k", unit=unit, is_unlimited=True, requests_per_unit=7, name="n"))
    assert rules.domains["d"].exact["k"].limit == Limit(0, None, "n")


@pytest.mark.parametrize(
    ("rules", "line", "reason"),
    [
        ([RuleDraft("", "v", line=5)], 5, "descriptor has empty key"),
        (
            [RuleDraft("k" * (ENTRY_BYTES_MAX + 1), line=5)],
            5,
            "descriptor key is longer than 4096 bytes",
        ),
        (
            [RuleDraft("k", "é" * (ENTRY_BYTES_MAX // 2 + 1), line=5)],
            5,
            "descriptor value is longer than 4096 bytes",
        ),
        (
            [RuleDraft("a_b", line=4), RuleDraft("a", "b", line=5)],
            5,
            "duplicate descriptor composite key 'd.a_b'",
        ),
        (
            [RuleDraft("a", "b", children=(RuleDraft("c"), RuleDraft("c", line=6)))],
            6,
            "duplicate descriptor composite key 'd.a_b.c'",
        ),
        (
            [limited("k", is_unlimited=True)],
            7,
            "should not specify rate limit unit when unlimited",
        ),
        ([limited("k", replaces=("",))], 7, "should not have an empty replaces entry"),
        (
            [limited("k", name="a", replaces=("b", "a"))],
            7,
            "replaces should not contain name of same descriptor",
        ),
        (
            [RuleDraft("k", shares_threshold=True, line=5)],
            5,
            "share_threshold can only be used with wildcard values (containing '*'), "
            "but found key 'k'",
        ),
        ([RuleDraft("k", metadata_problem="why", line=5)], 5, "error parsing metadata: why"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    rules: list[RuleDraft], line: int, reason: str
) -> None:
    error = refusal(*rules)
    assert (error.file, error.line, error.reason) == ("f.yaml", line, reason)
    assert str(error) == f"f.yaml: {reason}"


def test_the_longest_key_and_value_are_accepted() -> None:
    text = "x" * ENTRY_BYTES_MAX
    assert f"{text}_{text}" in build(RuleDraft(text, text)).domains["d"].exact


def test_a_star_in_the_key_makes_a_wildcard() -> None:
    rules = build(RuleDraft("k*", shares_threshold=True))
    assert [rule.id for rule in rules.domains["d"].wildcards] == ["k*"]


def test_the_order_of_checks() -> None:
    """Every rule below is wrong in all the ways that come after; each time the first is told."""
    broken = RuleDraft("", metadata_problem="m", shares_threshold=True)
    bad_limit = LimitDraft("foo", replaces=("",))
    worse = RuleDraft("k", "v", bad_limit, shares_threshold=True, metadata_problem="m")
    assert "empty domain" in refusal(broken, domain="").reason
    assert "empty key" in refusal(broken, worse).reason
    assert "duplicate descriptor" in refusal(RuleDraft("k_v"), worse).reason
    assert "invalid rate limit unit" in refusal(worse).reason
    replacing = RuleDraft("k", "v", LimitDraft("day", replaces=("",)), shares_threshold=True)
    assert "empty replaces" in refusal(replacing).reason
    shared = RuleDraft("k", shares_threshold=True, metadata_problem="m")
    assert "share_threshold" in refusal(shared).reason
    assert "metadata" in refusal(RuleDraft("k", metadata_problem="m", children=(broken,))).reason


def test_children_come_before_the_next_sibling() -> None:
    nested = RuleDraft("k", children=(RuleDraft("", line=2),))
    assert refusal(nested, RuleDraft("", line=3)).line == 2


def test_one_domain_over_several_drafts() -> None:
    first = DomainDraft("a.yaml", "d", (RuleDraft("k", "a*"),))
    second = DomainDraft("b.yaml", "d", (RuleDraft("k", "ab*"),), line=3)
    with pytest.raises(RuleFileError) as raised:
        build_rules([first, second], merge_domains=False)
    assert raised.value.located == "b.yaml:3: duplicate domain 'd' in config file"
    merged = build_rules([first, second], merge_domains=True)
    assert [rule.source.file for rule in merged.domains["d"].wildcards] == ["a.yaml", "b.yaml"]


def test_duplicates_over_several_drafts() -> None:
    builder = RuleSetBuilder(merge_domains=True)
    builder.add(DomainDraft("a.yaml", "d", (RuleDraft("k"),)))
    with pytest.raises(RuleFileError, match=r"b\.yaml: duplicate descriptor composite key 'd\.k'"):
        builder.add(DomainDraft("b.yaml", "d", (RuleDraft("new"), RuleDraft("k"))))
    assert list(builder.finish().domains["d"].exact) == ["k"]  # the refused draft left no trace


def file(name: str, domain: str = "", rest: str = "") -> RuleFile:
    return RuleFile(name, f"domain: {domain or name}\n{rest}")


def test_files_are_taken_by_name_and_the_first_bad_one_is_blamed() -> None:
    syntax, sense = RuleFile("b.yaml", "["), RuleFile("a.yaml", "domain: ''")
    for files in ([syntax, sense], [sense, syntax]):
        with pytest.raises(RuleFileError) as raised:
            load_rules(files, merge_domains=False)
        assert raised.value.file == "a.yaml"


def test_the_digest_is_of_names_contents_and_the_way_of_merging() -> None:
    def digest(*files: RuleFile, merge_domains: bool = False) -> str:
        return load_rules(files, merge_domains=merge_domains).digest

    a, b = file("a"), file("b")
    assert digest(a, b) == digest(b, a) == digest(b, RuleFile("a", a.content()))
    different = [digest(), digest(a), digest(a, b), digest(a, merge_domains=True)]
    different += [digest(file("a", rest="# more")), digest(file("c", domain="a"))]
    assert len(set(different)) == len(different)
    assert load_rules([], merge_domains=False).domains == {}
    assert len(digest(RuleFile("\udcff", "domain: d"))) == 32


def test_the_deepest_rules_that_can_be_written_are_usable() -> None:
    levels = (NODE_DEPTH_MAX - 2) // 2
    assert levels > 64
    text = "{domain: d, descriptors: " + "[{key: k, descriptors: " * levels
    rules = load_rules([RuleFile("f", text + "[]" + "}]" * levels + "}")], merge_domains=False)
    copy = pickle.loads(pickle.dumps(rules))
    level, depth = copy.domains["d"], 0
    while level.exact:
        level, depth = level.exact["k"].children, depth + 1
    assert depth == levels
    assert copy == rules
