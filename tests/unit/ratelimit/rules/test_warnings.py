"""Warnings about what is legal and surely not meant, and silence about what is fine."""

import pytest

from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, Remark, RuleDraft
from tollgate.actors.ratelimit.rules.warnings import find_warnings

LIMIT = LimitDraft("minute", 10, line=2)
UNLIMITED = LimitDraft(is_unlimited=True, line=2)


def warnings(*rules: RuleDraft) -> list[str]:
    found = find_warnings([DomainDraft("f", "d", rules, line=1)])
    assert all(warning.file == "f" for warning in found)
    return [str(warning).removeprefix("f:").removeprefix(" ") for warning in found]


def test_rules_that_deserve_none() -> None:
    assert (
        warnings(
            RuleDraft("a", "x", LIMIT, is_shadow=True, is_quota=True, metadata={}),
            RuleDraft("a", "y*", shares_threshold=True, children=(RuleDraft("c", "", LIMIT),)),
            RuleDraft("a", "z*", LIMIT, has_value_to_metric=True),
            RuleDraft("b", "x"),
            RuleDraft("a", "", LIMIT, has_detailed_metric=True, has_value_to_metric=True),
            RuleDraft("free", "", UNLIMITED),
            RuleDraft("named", "", LimitDraft("day", 0, name="n", replaces=("m",))),
            RuleDraft("other", "", LimitDraft("day", 1, name="m")),
        )
        == []
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (
            LimitDraft("minute", line=2),
            ["2: requests_per_unit is missing: it counts as 0 and blocks every request"],
        ),
        (
            LimitDraft("", 10, is_unlimited=True, line=2),
            ["2: requests_per_unit is ignored: the limit is unlimited"],
        ),
        (
            LimitDraft("foo", is_unlimited=True, line=2),
            ["2: unit 'foo' is ignored: the limit is unlimited"],
        ),
        (
            LimitDraft("minute", 1, replaces=("x", "y"), line=2),
            [
                "2: replaces names 'x', but no rule of the domain has that name",
                "2: replaces names 'y', but no rule of the domain has that name",
            ],
        ),
    ],
)
def test_limits_that_cannot_be_meant_are_warned_of(limit: LimitDraft, expected: list[str]) -> None:
    assert warnings(RuleDraft("k", "", limit, line=1)) == expected
    nested = RuleDraft("k", "v", children=(RuleDraft("k", "", limit, line=1),))
    assert warnings(nested) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RuleDraft("k", "v", is_shadow=True), "shadow_mode has no effect without rate_limit"),
        (RuleDraft("k", "v", is_quota=True), "quota_mode has no effect without rate_limit"),
        (
            RuleDraft("k", "v", has_detailed_metric=True),
            "detailed_metric has no effect without rate_limit",
        ),
        (RuleDraft("k", "v", metadata={}), "metadata has no effect without rate_limit"),
        (
            RuleDraft("k", "v", UNLIMITED, is_shadow=True),
            "shadow_mode has no effect on an unlimited rule",
        ),
        (
            RuleDraft("k", "v", LIMIT, has_value_to_metric=True),
            "value_to_metric has no effect here: an exact value is always shown",
        ),
        (
            RuleDraft("k", "v*", LIMIT, has_value_to_metric=True, shares_threshold=True),
            "value_to_metric has no effect with share_threshold",
        ),
        (RuleDraft("k"), "'k' has no effect: no value, no rate_limit and no descriptors"),
    ],
)
def test_rules_and_flags_without_effect(rule: RuleDraft, expected: str) -> None:
    assert warnings(rule) == [expected]


@pytest.mark.parametrize(
    ("earlier", "later", "is_hidden"),
    [
        ("a*", "ab*", True),
        ("*", "ab*", True),
        ("a*c", "ab*c", True),
        ("a*", "a*b*c", True),
        ("ab*", "a*", False),
        ("a*c", "a*", False),
        ("a*b*", "a*c*", False),
        ("a*a", "aa", False),
        ("*x*", "a*b", False),
    ],
)
def test_wildcards_that_an_earlier_one_hides(earlier: str, later: str, is_hidden: bool) -> None:
    found = warnings(RuleDraft("k", earlier, LIMIT, line=4), RuleDraft("k", later, LIMIT, line=5))
    hidden = f"5: 'k_{later}' is never reached: 'k_{earlier}' on line 4 matches first"
    assert found == ([hidden] if is_hidden else [])


@pytest.mark.parametrize(("pattern", "is_hidden"), [("*", True), ("a*", False)])
def test_a_default_that_a_wildcard_hides(pattern: str, is_hidden: bool) -> None:
    found = warnings(RuleDraft("k", "", LIMIT, line=4), RuleDraft("k", pattern, LIMIT, line=5))
    hidden = f"4: 'k' is never reached: 'k_{pattern}' on line 5 matches first"
    assert found == ([hidden] if is_hidden else [])


def test_ids_that_another_key_can_spell() -> None:
    found = warnings(
        RuleDraft("user", "", LIMIT, line=1),
        RuleDraft("user_id", "42", LIMIT, line=2),
        RuleDraft("user_id", "43", LIMIT, line=3),
        RuleDraft("userid", "42", LIMIT, line=4),
        RuleDraft("user_name", "", LIMIT, line=5),
    )
    assert found == ["2: user=id_42 meets this rule too: ids are joined by '_'"]


def test_a_name_that_is_used_twice() -> None:
    named = LimitDraft("minute", 1, name="n", line=2)
    text = "2: name 'n' is used by several rules: they are replaced together"
    assert warnings(RuleDraft("a", "", named), RuleDraft("b", "", named)) == [text, text]


def test_names_live_in_their_domain() -> None:
    naming = RuleDraft("a", "", LimitDraft("minute", 1, name="n"))
    replacing = RuleDraft("b", "", LimitDraft("minute", 1, replaces=("n",)))
    one, two = DomainDraft("f", "d", (naming,)), DomainDraft("g", "d", (replacing,))
    assert find_warnings([one, two]) == ()
    other = DomainDraft("g", "e", (replacing,))
    assert [str(each) for each in find_warnings([one, other])] == [
        "g: replaces names 'n', but no rule of the domain has that name"
    ]


def test_a_domain_without_rules() -> None:
    assert warnings() == ["1: domain 'd' has no descriptors: nothing in it is limited"]


def test_remarks_of_the_reading_come_along_in_the_order_of_lines() -> None:
    rules = (RuleDraft("k", "", LimitDraft("minute", line=3), line=2),)
    draft = DomainDraft("f", "d", rules, (Remark(9, "late"), Remark(1, "early")))
    assert [warning.line for warning in find_warnings([draft])] == [1, 3, 9]
