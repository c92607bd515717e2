"""Explanations: every outcome, and the lines that operators read."""

import pytest

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.builder import RuleFile, load_rules
from tollgate.actors.ratelimit.rules.descriptors import Entries, Override, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.explanation import Explanation, MatchOutcome, explain_match
from tollgate.actors.ratelimit.rules.rule_match import Choice, Match, NoMatch, match

RULES = load_rules(
    [
        RuleFile(
            "edge.yaml",
            """\
domain: edge
descriptors:
  - key: path
    value: /a
    rate_limit: {unit: minute, requests_per_unit: 3}
    descriptors:
      - key: method
        value: POST
        shadow_mode: true
        quota_mode: true
        rate_limit: {unit: hour, requests_per_unit: 1, name: posts, replaces: [{name: x}]}
  - key: path
    value: /b*
    rate_limit: {unit: second, requests_per_unit: 7}
  - key: path
    value: /bb*
    share_threshold: true
    rate_limit: {unit: second, requests_per_unit: 8}
  - key: path
    value: /free
    rate_limit: {unlimited: true}
  - key: path
    value: /open
  - key: path
    descriptors:
      - key: method
        rate_limit: {unit: day, requests_per_unit: 9}
""",
        )
    ],
    merge_domains=False,
)


def told(*entries: tuple[str, str], domain: str = "edge") -> Explanation:
    question = RateLimitDescriptor(entries)
    explanation = explain_match(RULES, domain, question)
    met = match(RULES, domain, question)
    assert explanation.match == (met if isinstance(met, Match) else None)
    return explanation


@pytest.mark.parametrize(
    ("entries", "outcome"),
    [
        ((("path", "/a"),), MatchOutcome.LIMITED),
        ((("path", "/free"),), MatchOutcome.UNLIMITED),
        ((), MatchOutcome.NO_ENTRIES),
        ((("method", "POST"),), MatchOutcome.NO_RULE),
        ((("path", "/a"), ("method", "GET")), MatchOutcome.NO_RULE),
        ((("path", "/bc"), ("method", "GET")), MatchOutcome.TOO_DEEP),
        ((("path", "/open"),), MatchOutcome.NO_LIMIT),
        ((("path", "/x"),), MatchOutcome.NO_LIMIT),
        ((("path", "/x"), ("method", "GET")), MatchOutcome.LIMITED),
    ],
)
def test_every_outcome_is_told(entries: Entries, outcome: MatchOutcome) -> None:
    assert told(*entries).outcome is outcome


def test_what_was_tried() -> None:
    exact, wildcard, default = told(("path", "/x")).levels[0].attempts
    assert (exact.choice, exact.tried, exact.found) == (Choice.EXACT, ("path_/x",), None)
    assert (wildcard.choice, wildcard.tried) == (Choice.WILDCARD, ("path_/b*", "path_/bb*"))
    assert wildcard.found is None
    assert default.choice is Choice.DEFAULT
    assert default.found is told(("path", "/x")).levels[0].rule


def test_nothing_is_tried_after_a_hit() -> None:
    assert [each.choice for each in told(("path", "/a")).levels[0].attempts] == [Choice.EXACT]
    attempts = told(("path", "/bb")).levels[0].attempts
    assert [each.choice for each in attempts] == [Choice.EXACT, Choice.WILDCARD]
    assert attempts[1].tried == ("path_/b*",)
    assert told(("path", "/bb")).levels[0].passed_over == ("path_/bb*", "path")


def test_an_unknown_domain_is_told_with_near_misses() -> None:
    assert told(domain="egde").lines() == (
        "domain 'egde', descriptor ()",
        "  => no rules for this domain: the request passes",
        "     did you mean 'edge'?",
    )
    assert told(domain="zzz").remarks == ("known domains: 'edge'",)


def test_an_override_is_told_before_any_rule() -> None:
    question = RateLimitDescriptor((("k", "v"),), Override(4, Unit.DAY))
    explanation = explain_match(RULES, "edge", question)
    assert explanation.outcome is MatchOutcome.OVERRIDDEN
    assert explanation.match == match(RULES, "edge", question)
    assert explanation.lines()[1:] == (
        "  => the request brings its own limit: the rules are not consulted",
        "     limit:   4 per day",
        "     counter: k=v",
        "     metric:  edge.k_v",
    )
    refused = RateLimitDescriptor((("k", "v"),), Override(4, None))
    assert match(RULES, "edge", refused) is NoMatch.OVERRIDE_UNIT_UNKNOWN
    assert explain_match(RULES, "edge", refused).outcome is MatchOutcome.OVERRIDE_REFUSED


def test_the_lines_of_a_hit() -> None:
    assert told(("path", "/a"), ("method", "POST")).lines() == (
        "domain 'edge', descriptor (path=/a, method=POST)",
        "  1. path=/a",
        "       exact:    'path_/a' met (edge.yaml:3)",
        "  2. method=POST",
        "       exact:    'method_POST' met (edge.yaml:7)",
        "  => this limit applies",
        "     limit:   1 per hour",
        "     counter: path=/a, method=POST",
        "     metric:  edge.path_/a.method_POST",
        "     name:    posts",
        "     replace: 'x'",
        "     flags:   shadow, quota",
        "     rule:    edge.yaml:7",
    )


def test_the_lines_of_a_miss() -> None:
    assert told(("path", "/a"), ("method", "GET")).lines() == (
        "domain 'edge', descriptor (path=/a, method=GET)",
        "  1. path=/a",
        "       exact:    'path_/a' met (edge.yaml:3)",
        "  2. method=GET",
        "       exact:    'method_GET' not met",
        "       wildcard: none at this level",
        "       default:  'method' not met",
        "       close by: 'method_POST'",
        "  => no rule for this entry: the request passes",
        "     the limit of 'path_/a' is only for descriptors that end there",
        "     there is no way back: 'path_/a' was met first, so not 'path'",
    )


def test_the_lines_of_a_descriptor_that_is_too_deep() -> None:
    assert told(("path", "/bb"), ("method", "GET")).lines()[1:] == (
        "  1. path=/bb",
        "       exact:    'path_/bb' not met",
        "       wildcard: 'path_/b*' met (edge.yaml:12)",
        "  2. method=GET",
        "       no rules at this level",
        "  => the descriptor is deeper than the rules: the request passes",
        "     the limit of 'path_/b*' is only for descriptors that end there",
        "     there is no way back: 'path_/b*' was met first, so not 'path_/bb*', 'path'",
    )


def test_the_lines_where_a_rule_has_no_limit() -> None:
    assert told(("path", "/open")).lines()[-2:] == (
        "  => the rule it ends at has no rate_limit: the request passes",
        "     'path_/open' is an allow-list: it has no descriptors",
    )
    assert told(("path", "/x")).lines()[-1] == "     one level deeper there is 'method'"


def test_an_unlimited_rule_is_not_counted() -> None:
    assert told(("path", "/free")).lines()[-2:] == (
        "  => the rule is unlimited: the request passes and is not counted",
        "     rule:    edge.yaml:19",
    )


def test_large_levels_are_told_in_few_words() -> None:
    text = "domain: d\ndescriptors:\n" + "".join(
        f"  - {{key: k, value: v{each}*}}\n" for each in range(40)
    )
    rules = load_rules([RuleFile("f", text)], merge_domains=False)
    lines = explain_match(rules, "d", RateLimitDescriptor((("k", "x"),))).lines()
    assert max(map(len, lines)) < 200
    assert any("and 32 more not met" in line for line in lines)
