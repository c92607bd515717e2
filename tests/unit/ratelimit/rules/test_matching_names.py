"""Matching beyond the conformance cases: quirks that are kept, counters' and metrics' names."""

import pickle

import pytest

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.descriptors import Entries, Override, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.rule_match import Match, NoMatch, match
from tollgate.actors.ratelimit.rules.rule_set import Level, Limit, LimitRule, RuleSet, Source

LIMIT = Limit(5, Unit.MINUTE)
SOURCE = Source("f.yaml", 1)


def rule(key: str, value: str = "", limit: Limit | None = LIMIT, **flags: object) -> LimitRule:
    return LimitRule(key, value, SOURCE, limit, **flags)  # type: ignore[arg-type]


def parent(key: str, value: str, *children: LimitRule, **flags: object) -> LimitRule:
    return rule(key, value, None, children=Level.of(children), **flags)


def met(entries: Entries, *rules: LimitRule) -> Match:
    found = outcome(entries, *rules)
    assert isinstance(found, Match)
    return found


def outcome(entries: Entries, *rules: LimitRule) -> Match | NoMatch:
    return match(RuleSet({"d": Level.of(rules)}), "d", RateLimitDescriptor(entries))


def test_the_join_by_underscore_is_the_references() -> None:
    written = rule("a", "b_c")
    assert met((("a_b", "c"),), written).rule is written
    assert met((("a_b", "c"),), written).counter_entries == (("a_b", "c"),)
    assert outcome((("a_b", "d"),), written) is NoMatch.NO_RULE


def test_a_star_in_the_key_is_a_wildcard() -> None:
    any_key = rule("k*", "v")
    assert met((("key", "v"),), any_key).metric_key == "d.k*_v"
    assert met((("key", "v"),), any_key).counter_entries == (("key", "v"),)
    assert met((("k", "x_v"),), any_key).rule is any_key


def test_shared_keys_share_their_counter_too() -> None:
    shared = rule("k*", "v", shares_threshold=True)
    assert met((("k1", "v"),), shared).counter_entries == (("k*", "v"),)
    assert met((("k2", "v"),), shared).counter_entries == (("k*", "v"),)


def test_the_text_of_a_pattern_is_an_exact_hit() -> None:
    earlier, shared = rule("k", "f*"), rule("k", "fo*", shares_threshold=True)
    found = met((("k", "fo*"),), earlier, shared)
    assert found.rule is shared
    assert found.counter_entries == (("k", "fo*"),)
    assert not found.is_dynamic_series


def test_an_empty_value_is_a_value() -> None:
    default, exact = rule("k"), rule("k_")
    assert met((("k", ""),), default).rule is default
    assert met((("k", ""),), default, exact).rule is exact
    assert met((("", ""),), rule("_")).metric_key == "d._"


def test_there_is_no_way_back() -> None:
    specific = parent("a", "x", rule("b", "1"))
    wild = parent("a", "x*", rule("b"))
    default = parent("a", "", rule("b"))
    assert outcome((("a", "x"), ("b", "2")), specific, wild, default) is NoMatch.NO_RULE
    assert outcome((("a", "x"), ("b", "1")), specific, wild, default) is not NoMatch.NO_RULE
    assert met((("a", "xy"), ("b", "2")), specific, wild, default).metric_key == "d.a_x*.b"


@pytest.mark.parametrize(
    "entries", [(), (("k", "v"), ("x", "y")), (("other", "v"),), (("p", "v"),)]
)
def test_a_descriptor_may_meet_no_rule(entries: Entries) -> None:
    assert outcome(entries, rule("k"), parent("p", "", rule("c"))) is NoMatch.NO_RULE


def test_flags_are_those_of_the_last_rule() -> None:
    leaf = rule("b", is_shadow=True, is_quota=True, metadata={"a": 1})
    found = met((("a", "x"), ("b", "y")), parent("a", "", leaf))
    assert found.is_shadow
    assert found.is_quota
    assert found.metadata == {"a": 1}
    upper = parent("a", "", rule("b"), is_shadow=True, is_quota=True, metadata={"a": 1})
    plain = met((("a", "x"), ("b", "y")), upper)
    assert not plain.is_shadow
    assert not plain.is_quota
    assert plain.metadata is None


@pytest.mark.parametrize(
    ("entries", "flags", "metric_key", "is_dynamic"),
    [
        ([("k", "x")], {}, "d.k", False),
        ([("k", "v")], {"has_value_to_metric": True}, "d.k_v", False),
        ([("k", "v")], {"has_detailed_metric": True}, "d.k_v", False),
        ([("k", "x")], {"has_value_to_metric": True}, "d.k_x", True),
        ([("k", "")], {"has_value_to_metric": True}, "d.k", False),
        ([("k", "x")], {"has_detailed_metric": True}, "d.k_x", True),
        ([("k", "")], {"has_detailed_metric": True}, "d.k_", True),
        ([("k", "w1")], {}, "d.k_w*", False),
        ([("k", "w1")], {"has_value_to_metric": True}, "d.k_w1", True),
        ([("k", "w1")], {"has_detailed_metric": True}, "d.k_w1", True),
        ([("k", "w1")], {"has_detailed_metric": True, "shares_threshold": True}, "d.k_w*", False),
    ],
)
def test_metric_keys_follow_the_flags_of_the_rule(
    entries: list[tuple[str, str]], flags: dict[str, bool], metric_key: str, is_dynamic: bool
) -> None:
    shared = {name: flag for name, flag in flags.items() if name != "shares_threshold"}
    rules = (rule("k", "", **shared), rule("k", "v", **shared), rule("k", "w*", **flags))
    found = met(tuple(entries), *rules)
    assert found.metric_key == metric_key
    assert found.is_dynamic_series is is_dynamic


def test_a_detailed_metric_has_two_ways_with_empty_values() -> None:
    leaf = rule("c", has_detailed_metric=True)
    plain = parent("a", "", parent("b", "x*", leaf))
    shared = parent("a", "", parent("b", "x*", leaf, shares_threshold=True))
    entries = (("a", ""), ("b", "x1"), ("c", ""))
    assert met(entries, plain).metric_key == "d.a_.b_x1.c_"
    assert met(entries, shared).metric_key == "d.a.b_x*.c"


def test_a_detailed_metric_ignores_value_to_metric() -> None:
    leaf = rule("b", has_detailed_metric=True)
    assert met((("a", "x"), ("b", "y")), parent("a", "", leaf)).metric_key == "d.a_x.b_y"


def test_an_override_takes_nothing_from_the_rules() -> None:
    shared = rule(
        "k", "f*", is_shadow=True, is_quota=True, shares_threshold=True, metadata={"a": 1}
    )
    rules = RuleSet({"d": Level.of((shared,))})
    entries = (("k", "fo"), ("empty", ""))
    found = match(rules, "d", RateLimitDescriptor(entries, Override(0, Unit.YEAR)))
    assert found == Match(Limit(0, Unit.YEAR), "d.k_fo.empty", entries, is_dynamic_series=True)
    empty = match(rules, "d", RateLimitDescriptor((), Override(1, Unit.DAY)))
    assert isinstance(empty, Match)
    assert empty.metric_key == "d"
    refused = match(rules, "d", RateLimitDescriptor(entries, Override(1, None)))
    assert refused is NoMatch.OVERRIDE_UNIT_UNKNOWN
    assert (
        match(rules, "e", RateLimitDescriptor(entries, Override(1, None))) is NoMatch.UNKNOWN_DOMAIN
    )


def test_pickled_rules_match_as_before() -> None:
    rules = RuleSet({"d": Level.of((parent("a", "x*", rule("b"), metadata={"m": [1]}),))}, "name")
    copy = pickle.loads(pickle.dumps(rules))
    assert copy == rules
    question = RateLimitDescriptor((("a", "xyz"), ("b", "")))
    assert match(copy, "d", question) == match(rules, "d", question)
    assert isinstance(match(copy, "d", question), Match)
