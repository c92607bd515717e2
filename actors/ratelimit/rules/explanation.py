"""Explains which limit a descriptor meets, or why none: the walk of `rule_match`, step by step."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from itertools import islice

from tollgate.actors.ratelimit.rules.descriptors import Entries, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.rule_match import (
    Choice,
    Match,
    MetRule,
    NoMatch,
    choose,
    match,
)
from tollgate.actors.ratelimit.rules.rule_set import Level, Limit, LimitRule, RuleSet

SHOWN_MAX = 8  # names listed where there may be many
COMPARED_MAX = 1_000  # names compared in search of close ones


class MatchOutcome(Enum):
    """The ends of an explanation."""

    LIMITED = "this limit applies"
    UNLIMITED = "the rule is unlimited: the request passes and is not counted"
    OVERRIDDEN = "the request brings its own limit: the rules are not consulted"
    OVERRIDE_REFUSED = "the request brings a limit without a known unit: it is refused"
    UNKNOWN_DOMAIN = "no rules for this domain: the request passes"
    NO_ENTRIES = "a descriptor without entries meets no rule: the request passes"
    NO_RULE = "no rule for this entry: the request passes"
    TOO_DEEP = "the descriptor is deeper than the rules: the request passes"
    NO_LIMIT = "the rule it ends at has no rate_limit: the request passes"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way of looking an entry up. `tried`: the ids, in order; `found`: the rule it met."""

    choice: Choice
    tried: tuple[str, ...]
    found: LimitRule | None


@dataclass(frozen=True, slots=True)
class LevelTrace:
    """The lookups of one entry.

    `attempts`: empty where the level has no rules.
    `passed_over`: ids that the entry would have met, had `rule` not been met first.
    `close`: where no rule was met, ids that look like what was asked for.
    """

    key: str
    value: str
    attempts: tuple[Attempt, ...]
    rule: LimitRule | None
    passed_over: tuple[str, ...] = ()
    close: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole walk. `match` None: no limit applies, and `remarks` say more about why."""

    domain: str
    entries: Entries
    levels: tuple[LevelTrace, ...]
    outcome: MatchOutcome
    match: Match | None = None
    remarks: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """The explanation as text for operators."""
        return tuple(_lines(self))


def explain_match(rules: RuleSet, domain: str, descriptor: RateLimitDescriptor) -> Explanation:
    """Follows `match` through the rules. Never fails, and ends as `match` ends."""
    outcome = match(rules, domain, descriptor)
    entries = descriptor.entries
    if outcome is NoMatch.UNKNOWN_DOMAIN:
        close = _close(domain, rules.domains)
        known = f"known domains: {_listed(sorted(rules.domains)) or 'none'}"
        remark = f"did you mean {_listed(close)}?" if close else known
        return Explanation(domain, entries, (), MatchOutcome.UNKNOWN_DOMAIN, remarks=(remark,))
    if outcome is NoMatch.OVERRIDE_UNIT_UNKNOWN:
        return Explanation(domain, entries, (), MatchOutcome.OVERRIDE_REFUSED)
    if isinstance(outcome, Match) and outcome.rule is None:
        return Explanation(domain, entries, (), MatchOutcome.OVERRIDDEN, outcome)
    levels = tuple(_trace(rules.domains[domain], entries))
    if isinstance(outcome, Match):
        end = MatchOutcome.UNLIMITED if outcome.limit.is_unlimited else MatchOutcome.LIMITED
        return Explanation(domain, entries, levels, end, outcome)
    end, remarks = _why_none(levels, entries)
    return Explanation(domain, entries, levels, end, remarks=remarks)


def _trace(level: Level, entries: Entries) -> Iterator[LevelTrace]:
    for key, value in entries:
        step = choose(level, key, value)
        attempts = tuple(_attempts(level, key, value, step)) if level.exact else ()
        if step is None:
            close = _close(f"{key}_{value}", level.exact)
            yield LevelTrace(key, value, attempts, None, close=close)
            return
        passed_over = tuple(each for each in _takers(level, key, value) if each != step.rule.id)
        yield LevelTrace(key, value, attempts, step.rule, passed_over)
        level = step.rule.children


def _takers(level: Level, key: str, value: str) -> Iterator[str]:
    """The ids of all rules of a level that an entry would meet, were they alone."""
    full = f"{key}_{value}"
    for rule, pattern in zip(level.wildcards, level.patterns.patterns, strict=True):
        if pattern.matches(full):
            yield rule.id
    if key in level.exact:
        yield key


def _close(name: str, known: Iterable[str]) -> tuple[str, ...]:
    return tuple(get_close_matches(name, list(islice(known, COMPARED_MAX)), n=SHOWN_MAX))


def _attempts(level: Level, key: str, value: str, step: MetRule | None) -> Iterator[Attempt]:
    """The lookups that took place: none after the one that found a rule."""
    met = None if step is None else step.choice
    rule = None if step is None else step.rule
    yield Attempt(Choice.EXACT, (f"{key}_{value}",), rule if met is Choice.EXACT else None)
    if met is Choice.EXACT:
        return
    ids = [each.id for each in level.wildcards]
    if met is Choice.WILDCARD and rule is not None:
        yield Attempt(Choice.WILDCARD, tuple(ids[: ids.index(rule.id) + 1]), rule)
        return
    yield Attempt(Choice.WILDCARD, tuple(ids), None)
    yield Attempt(Choice.DEFAULT, (key,), rule)


def _why_none(
    levels: tuple[LevelTrace, ...], entries: Entries
) -> tuple[MatchOutcome, tuple[str, ...]]:
    if not entries:
        return MatchOutcome.NO_ENTRIES, ()
    last = levels[-1]
    if last.rule is not None:
        deeper = sorted(last.rule.children.exact)
        if not deeper:
            return MatchOutcome.NO_LIMIT, (
                f"'{last.rule.id}' is an allow-list: it has no descriptors",
            )
        return MatchOutcome.NO_LIMIT, (f"one level deeper there is {_listed(deeper)}",)
    remarks = tuple(_no_way_back(levels[:-1]))
    above = levels[-2].rule if len(levels) > 1 else None
    is_too_deep = above is not None and not above.children.exact
    return MatchOutcome.TOO_DEEP if is_too_deep else MatchOutcome.NO_RULE, remarks


def _no_way_back(levels: Iterable[LevelTrace]) -> Iterator[str]:
    """Remarks on the levels above the one that met nothing: limits that one might expect."""
    for level in levels:
        assert level.rule is not None, "the walk went on after this level"
        if level.rule.limit is not None:
            yield f"the limit of '{level.rule.id}' is only for descriptors that end there"
        if level.passed_over:
            others = _listed(level.passed_over)
            yield f"there is no way back: '{level.rule.id}' was met first, so not {others}"


def _lines(found: Explanation) -> Iterator[str]:
    asked = ", ".join(f"{key}={value}" for key, value in found.entries)
    yield f"domain '{found.domain}', descriptor ({asked})"
    for depth, level in enumerate(found.levels, start=1):
        yield f"  {depth}. {level.key}={level.value}"
        if not level.attempts:
            yield "       no rules at this level"
        for attempt in level.attempts:
            yield f"       {_attempt_text(attempt)}"
        if level.close:
            yield f"       close by: {_listed(level.close)}"
    yield f"  => {found.outcome.value}"
    for remark in found.remarks:
        yield f"     {remark}"
    if found.match is not None:
        yield from (f"     {line}" for line in _match_lines(found.match))


def _attempt_text(attempt: Attempt) -> str:
    name = f"{attempt.choice.value + ':':<10}"
    if attempt.found is not None:
        skipped = len(attempt.tried) - 1
        after = f", after {skipped} that did not match" if skipped else ""
        return f"{name}'{attempt.found.id}' met{after} ({attempt.found.source})"
    if not attempt.tried:
        return f"{name}none at this level"
    return f"{name}{_listed(attempt.tried)} not met"


def _match_lines(met: Match) -> Iterator[str]:
    if not met.limit.is_unlimited:
        yield f"limit:   {_limit_text(met.limit)}"
        yield f"counter: {', '.join(f'{key}={value}' for key, value in met.counter_entries)}"
        yield f"metric:  {met.metric_key}"
    if met.limit.name:
        yield f"name:    {met.limit.name}"
    if met.limit.replaces:
        yield f"replace: {_listed(met.limit.replaces)}"
    flags = {"shadow": met.is_shadow, "quota": met.is_quota}
    if any(flags.values()):
        yield f"flags:   {', '.join(flag for flag, on in flags.items() if on)}"
    if met.rule is not None:
        yield f"rule:    {met.rule.source}"


def _limit_text(limit: Limit) -> str:
    assert limit.unit is not None, "an unlimited rule has no amount"
    return f"{limit.requests_per_unit} per {limit.unit.name.lower()}"


def _listed(names: Iterable[str]) -> str:
    """The first names in quotes, and how many more there are."""
    each = [f"'{name}'" for name in names]
    rest = len(each) - SHOWN_MAX
    return ", ".join(each[:SHOWN_MAX]) + (f" and {rest} more" if rest > 0 else "")
