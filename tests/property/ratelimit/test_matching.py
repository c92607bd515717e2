"""Matching against a reference of ten lines, and loading against whatever bytes there are."""

import re
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.builder import RuleFile, RuleFileError, load_rules
from tollgate.actors.ratelimit.rules.descriptors import Override, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.draft_reader import read_rule_file
from tollgate.actors.ratelimit.rules.explanation import explain_match
from tollgate.actors.ratelimit.rules.rule_match import Match, NoMatch, match
from tollgate.actors.ratelimit.rules.rule_set import Level, Limit, LimitRule, RuleSet, Source, dump
from tollgate.actors.ratelimit.rules.warnings import find_warnings
from tollgate.actors.ratelimit.rules.wildcards import Wildcards
from tollgate.actors.ratelimit.statistics.tallies import sanitised

SOURCE = Source("f", 1)

# Few letters, so that things meet; `_` joins, `*` is wild.
texts = st.text("ab_", max_size=6)
patterns = st.text("ab_*", max_size=6)
patterns_with_star = st.builds("{}*{}".format, patterns, patterns)


def is_match(pattern: str, text: str) -> bool:
    """Wildcards by means of a regular expression."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@given(st.lists(patterns_with_star, max_size=8), texts)
def test_the_first_pattern_that_matches_is_met(declared: list[str], text: str) -> None:
    found = [each for each, pattern in enumerate(declared) if is_match(pattern, text)]
    assert Wildcards.of(declared).first_match(text) == (found[0] if found else None)


def levels(deeper: st.SearchStrategy[Level]) -> st.SearchStrategy[Level]:
    rules = st.builds(
        LimitRule,
        key=st.text("ab_*", min_size=1, max_size=3),
        value=st.text("ab_*", max_size=3),
        source=st.just(SOURCE),
        limit=st.none() | st.builds(Limit, st.integers(0, 9), st.none() | st.sampled_from(Unit)),
        has_detailed_metric=st.booleans(),
        has_value_to_metric=st.booleans(),
        shares_threshold=st.booleans(),
        children=deeper,
    )
    return st.lists(rules, max_size=6, unique_by=lambda rule: rule.id).map(Level.of)


rule_levels = st.recursive(st.just(Level()), levels, max_leaves=12)
entries = st.lists(st.tuples(st.text("ab_*", max_size=4), texts), max_size=3).map(tuple)


def reference(
    siblings: Sequence[LimitRule], question: Sequence[tuple[str, str]]
) -> LimitRule | None:
    """B2, read aloud: exact, else the first wildcard, else the key alone; then the next level."""
    if not question:
        return None
    (key, value), *rest = question
    full = f"{key}_{value}"
    exact = [rule for rule in siblings if rule.id == full]
    wild = [rule for rule in siblings if "*" in rule.id and is_match(rule.id, full)]
    default = [rule for rule in siblings if rule.id == key]
    met = next(iter(exact + wild + default), None)
    if met is None or not rest:
        return met
    return reference(tuple(met.children.exact.values()), rest)


@given(rule_levels, entries)
def test_matching_is_the_reference(level: Level, question: tuple[tuple[str, str], ...]) -> None:
    rules = RuleSet({"d": level})
    found = match(rules, "d", RateLimitDescriptor(question))
    expected = reference(tuple(level.exact.values()), question)
    if expected is None or expected.limit is None:
        assert found is NoMatch.NO_RULE
        return
    assert isinstance(found, Match)
    assert found.rule is expected
    assert found.limit is expected.limit
    assert len(found.counter_entries) == len(question)
    assert match(rules, "d", RateLimitDescriptor(question)) == found


@given(
    rule_levels,
    entries,
    st.none() | st.builds(Override, st.integers(0, 9), st.none() | st.sampled_from(Unit)),
    st.sampled_from(["d", "e"]),
)
def test_explanations_end_as_matching_ends(
    level: Level, question: tuple[tuple[str, str], ...], override: Override | None, domain: str
) -> None:
    rules = RuleSet({"d": level})
    descriptor = RateLimitDescriptor(question, override)
    found = match(rules, domain, descriptor)
    told = explain_match(rules, domain, descriptor)
    assert told.match == (found if isinstance(found, Match) else None)
    assert told.lines()


@given(rule_levels, entries, entries)
def test_two_rules_never_share_a_counter(
    level: Level, one: tuple[tuple[str, str], ...], other: tuple[tuple[str, str], ...]
) -> None:
    rules = RuleSet({"d": level})
    a, b = (match(rules, "d", RateLimitDescriptor(question)) for question in (one, other))
    if isinstance(a, Match) and isinstance(b, Match) and a.counter_entries == b.counter_entries:
        assert a.rule is b.rule


@given(st.text())
def test_sanitised_names_fit_a_statistics_line(name: str) -> None:
    clean = sanitised(name)
    assert len(clean) == len(name)
    assert not set(clean) & set(":|\n\r\0")


rule_text = st.lists(
    st.sampled_from(
        [
            *("domain: d\n", "descriptors:\n", "- key: k\n", "  - key: k\n", "  value: v*\n"),
            *(
                "    value: a*b\n",
                "  rate_limit:\n",
                "    rate_limit: &x\n",
                "      unit: minute\n",
            ),
            *(
                "    unit: minute\n",
                "    requests_per_unit: 5\n",
                "  rate_limit: *x\n",
                "- <<: *x\n",
            ),
            *("  share_threshold: yes\n", "  metadata: {a: [1, {b: .nan}]}\n", "  descriptors:\n"),
            *(
                "---\n",
                "  ? [a]\n  : b\n",
                "  key: 08\n",
                "- [\n",
                "]\n",
                "{\n",
                "}\n",
                "\t",
                "!!int ",
            ),
        ]
    ),
    max_size=24,
).map("".join)


@given(st.binary() | st.text() | rule_text, st.booleans())
@example("a: &a [*a]", False)
@example(b"!%ED%A0%80 x", False)
@example("&a " + "[" * 5000, False)
@example("domain: d\ndescriptors: [{key: " + "9" * 5000 + "}]", True)
def test_loading_raises_nothing_but_rule_file_errors(text: bytes | str, merges: bool) -> None:
    file = RuleFile("f.yaml", text)
    found = loaded(file, merges)
    assert loaded(file, merges) == found
    if isinstance(found, RuleSet):
        dump(found)
        find_warnings([read_rule_file(file)])
    else:
        assert found.isprintable()


def loaded(file: RuleFile, merges: bool) -> RuleSet | str:
    """The rules, or the line for operators."""
    try:
        return load_rules([file], merge_domains=merges)
    except RuleFileError as error:
        return error.located
