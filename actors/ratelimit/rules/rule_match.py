"""Finds the limit that a descriptor meets, and the names it is counted under (B2, B3).

Entry by entry, from the root of the domain, one level of rules each:

1. the rule whose id is `key_value`, else
2. the first declared wildcard rule whose id matches `key_value`, else
3. the rule whose id is `key` (any value).

The rule met by the *last* entry decides. There is no way back: a choice made at one level stands,
whatever the next one brings, and a limit never applies to a descriptor deeper than itself.

The counter is named by the entries of the request, with the rule's pattern in the place of what a
`share_threshold` wildcard matched. The metric is named by the rules (`domain.key_value.key`), with
text from the request only where `detailed_metric` or `value_to_metric` ask for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tollgate.actors.ratelimit.rules.descriptors import Entries, Override, RateLimitDescriptor
from tollgate.actors.ratelimit.rules.rule_set import Level, Limit, LimitRule, RuleSet


class NoMatch(Enum):
    """The reasons for no limit. OVERRIDE_UNIT_UNKNOWN is refused, the others pass (B1, B4)."""

    UNKNOWN_DOMAIN = "no rules for this domain"
    NO_RULE = "no rule with a limit for this descriptor"
    OVERRIDE_UNIT_UNKNOWN = "the limit in the request has no known unit"


class Choice(Enum):
    """The ways an entry meets a rule, in the order of trying."""

    EXACT = "exact"
    WILDCARD = "wildcard"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Match:
    """A limit that applies. `limit` is the rule's, or the one the request brought along.

    `metric_key`: from the domain on, as it is: statistics make it fit for their names.
    `counter_entries`: what names the counter.
    `is_dynamic_series`: the metric key holds text from the request. `rule` None: an override.
    """

    limit: Limit
    metric_key: str
    counter_entries: Entries
    is_shadow: bool = False
    is_quota: bool = False
    metadata: Mapping[str, object] | None = None
    is_dynamic_series: bool = False
    rule: LimitRule | None = None


@dataclass(frozen=True, slots=True)
class MetRule:
    """One entry of a descriptor and the rule it met."""

    key: str
    value: str
    rule: LimitRule
    choice: Choice

    @property
    def is_shared(self) -> bool:
        """True when all values of the rule's wildcard share one counter here."""
        return self.choice is Choice.WILDCARD and self.rule.shares_threshold

    @property
    def counter_entry(self) -> tuple[str, str]:
        """This entry as it names a counter."""
        return (self.rule.key, self.rule.value) if self.is_shared else (self.key, self.value)


def match(rules: RuleSet, domain: str, descriptor: RateLimitDescriptor) -> Match | NoMatch:
    """The limit that applies to a descriptor, or why none does."""
    level = rules.domains.get(domain)
    if level is None:
        return NoMatch.UNKNOWN_DOMAIN
    if descriptor.override is not None:
        return override_match(domain, descriptor.entries, descriptor.override)
    steps = tuple(walk(level, descriptor.entries))
    if not steps or len(steps) < len(descriptor.entries):
        return NoMatch.NO_RULE
    return match_at_end(domain, steps)


def match_at_end(domain: str, steps: tuple[MetRule, ...]) -> Match | NoMatch:
    """The limit of the rule that the last entry met."""
    rule = steps[-1].rule
    if rule.limit is None:
        return NoMatch.NO_RULE
    metric_key, is_dynamic_series = metric_name(domain, steps)
    return Match(
        limit=rule.limit,
        metric_key=metric_key,
        counter_entries=tuple([step.counter_entry for step in steps]),
        is_shadow=rule.is_shadow,
        is_quota=rule.is_quota,
        metadata=rule.metadata,
        is_dynamic_series=is_dynamic_series,
        rule=rule,
    )


def metric_name(domain: str, steps: tuple[MetRule, ...]) -> tuple[str, bool]:
    """The metric key, and whether it holds text from the request (B3)."""
    is_detailed = steps[-1].rule.has_detailed_metric
    segments = _detailed_segments(steps) if is_detailed else _segments(steps)
    return ".".join((domain, *segments)), segments != [step.rule.id for step in steps]


def walk(level: Level, entries: Entries) -> Iterator[MetRule]:
    """The rules that the entries meet, one per level, until an entry meets none."""
    for key, value in entries:
        step = choose(level, key, value)
        if step is None:
            return
        yield step
        level = step.rule.children


def choose(level: Level, key: str, value: str) -> MetRule | None:
    """The rule of this level that an entry meets."""
    full = f"{key}_{value}"
    rule = level.exact.get(full)
    if rule is not None:
        return MetRule(key, value, rule, Choice.EXACT)
    if level.wildcards:
        position = level.patterns.first_match(full)
        if position is not None:
            return MetRule(key, value, level.wildcards[position], Choice.WILDCARD)
    rule = level.exact.get(key)
    return None if rule is None else MetRule(key, value, rule, Choice.DEFAULT)


def override_match(domain: str, entries: Entries, override: Override) -> Match | NoMatch:
    """A limit from the request is taken as it is, without any flag (B4)."""
    if override.unit is None:
        return NoMatch.OVERRIDE_UNIT_UNKNOWN
    segments = (f"{key}_{value}" if value else key for key, value in entries)
    return Match(
        limit=Limit(override.requests_per_unit, override.unit),
        metric_key=".".join((domain, *segments)),
        counter_entries=entries,
        is_dynamic_series=True,
    )


def _segments(steps: tuple[MetRule, ...]) -> list[str]:
    """The ids of the rules, but what was asked for where `value_to_metric` says so."""
    return [
        (f"{step.key}_{step.value}" if step.value else step.key)
        if step.rule.has_value_to_metric and step.choice is not Choice.EXACT and not step.is_shared
        else step.rule.id
        for step in steps
    ]


def _detailed_segments(steps: tuple[MetRule, ...]) -> list[str]:
    """The request's text at every level, but the pattern where values share a threshold.

    An empty value leaves a trailing `_`, unless a pattern is shown: the reference has two ways.
    """
    is_any_shared = any(step.is_shared for step in steps)
    return [
        step.rule.id
        if step.is_shared
        else (step.key if is_any_shared and not step.value else f"{step.key}_{step.value}")
        for step in steps
    ]
