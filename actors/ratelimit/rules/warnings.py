"""Warns of what is legal in a rule file and surely not meant; refuses nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tollgate.actors.ratelimit.rules.drafts import DomainDraft, LimitDraft, RuleDraft
from tollgate.actors.ratelimit.rules.rule_file import located_text
from tollgate.actors.ratelimit.rules.wildcards import Wildcards

RuleFinding = tuple[int | None, str]


@dataclass(frozen=True, slots=True)
class RuleWarning:
    """A warning for operators; `str` gives `<file>:<line>: <text>`."""

    file: str
    line: int | None
    text: str

    def __str__(self) -> str:
        return located_text(self.file, self.line, self.text)


def find_warnings(drafts: Sequence[DomainDraft]) -> tuple[RuleWarning, ...]:
    """The warnings for drafts that make a rule set, in the order of the drafts and their lines."""
    names = _names_by_domain(drafts)
    return tuple(
        RuleWarning(draft.file, line, text)
        for draft in drafts
        for line, text in sorted(_of_draft(draft, names[draft.domain]), key=_position)
    )


def _position(finding: RuleFinding) -> int:
    return finding[0] or 0


def _names_by_domain(drafts: Sequence[DomainDraft]) -> dict[str, Counter[str]]:
    """Counts the uses of each name, by domain: a request has one domain, so names live there."""
    names: dict[str, Counter[str]] = {}
    for draft in drafts:
        limits = (rule.limit for rule in _all(draft.rules))
        found = (limit.name for limit in limits if limit is not None)
        names.setdefault(draft.domain, Counter()).update(found)
    return names


def _all(rules: Sequence[RuleDraft]) -> Iterator[RuleDraft]:
    for rule in rules:
        yield rule
        yield from _all(rule.children)


def _of_draft(draft: DomainDraft, names: Mapping[str, int]) -> Iterator[RuleFinding]:
    yield from ((remark.line, remark.text) for remark in draft.remarks)
    if not draft.rules:
        yield draft.line, f"domain '{draft.domain}' has no descriptors: nothing in it is limited"
    yield from _of_siblings(draft.rules)
    for rule in _all(draft.rules):
        yield from _of_rule(rule)
        yield from _of_siblings(rule.children)
        if rule.limit is not None:
            yield from _of_limit(rule.limit, names)


def _of_rule(rule: RuleDraft) -> Iterator[RuleFinding]:
    """Flags and rules that change nothing."""
    if rule.limit is None or rule.limit.is_unlimited:
        why = "without rate_limit" if rule.limit is None else "on an unlimited rule"
        flags = {
            "shadow_mode": rule.is_shadow,
            "quota_mode": rule.is_quota,
            "detailed_metric": rule.has_detailed_metric,
            "metadata": rule.metadata is not None,
        }
        yield from ((rule.line, f"{flag} has no effect {why}") for flag, on in flags.items() if on)
    if rule.has_value_to_metric:
        if rule.shares_threshold:
            yield rule.line, "value_to_metric has no effect with share_threshold"
        elif rule.value and not rule.has_wildcard:
            yield rule.line, "value_to_metric has no effect here: an exact value is always shown"
    if rule.limit is None and not rule.children and not rule.value and not rule.has_wildcard:
        text = f"'{rule.key}' has no effect: no value, no rate_limit and no descriptors"
        yield rule.line, text


def _of_siblings(rules: Sequence[RuleDraft]) -> Iterator[RuleFinding]:
    """Rules that another one hides, and rules that a value of another key meets.

    A pattern that matches the text of another pattern, or of `key_*`, matches all that the other
    one matches: what `*` stands for can only have been taken by a `*`.
    """
    wildcards = [rule for rule in rules if rule.has_wildcard]
    patterns = Wildcards.of(rule.id for rule in wildcards)
    defaults = [rule for rule in rules if not rule.value and not rule.has_wildcard]
    for position, rule in enumerate(wildcards):
        first = patterns.first_match(rule.id)
        if first is not None and first < position:
            yield rule.line, _hidden(rule, wildcards[first])
    for rule in defaults:
        first = patterns.first_match(f"{rule.key}_*")
        if first is not None:
            yield rule.line, _hidden(rule, wildcards[first])
    default_keys = {rule.key for rule in defaults}
    seen: set[tuple[str, str]] = set()
    for rule in rules:
        for key in _shorter_keys(rule) & default_keys:
            if (key, rule.key) not in seen:
                seen.add((key, rule.key))
                value = f"{rule.key[len(key) + 1 :]}_{rule.value}"
                yield rule.line, f"{key}={value} meets this rule too: ids are joined by '_'"


def _hidden(rule: RuleDraft, by: RuleDraft) -> str:
    where = "" if by.line is None else f" on line {by.line}"
    return f"'{rule.id}' is never reached: '{by.id}'{where} matches first"


def _shorter_keys(rule: RuleDraft) -> set[str]:
    """The keys that, joined with some value, give this rule's id."""
    if not rule.value:
        return set()
    key = rule.key
    return {key[:end] for end, character in enumerate(key) if character == "_" and end > 0}


def _of_limit(limit: LimitDraft, names: Mapping[str, int]) -> Iterator[RuleFinding]:
    if limit.is_unlimited:
        if limit.requests_per_unit is not None:
            yield limit.line, "requests_per_unit is ignored: the limit is unlimited"
        if limit.unit:
            yield limit.line, f"unit '{limit.unit}' is ignored: the limit is unlimited"
    elif limit.requests_per_unit is None:
        yield limit.line, "requests_per_unit is missing: it counts as 0 and blocks every request"
    if limit.name and names[limit.name] > 1:
        yield (
            limit.line,
            f"name '{limit.name}' is used by several rules: they are replaced together",
        )
    for name in limit.replaces:
        if name not in names:
            yield limit.line, f"replaces names '{name}', but no rule of the domain has that name"
