"""The loaded rules as the debug port prints them (specification, B18)."""

from collections.abc import Iterator

from tollgate.actors.ratelimit.rules.rule_set import Level, Limit, Rule, RuleSet


def dump(rules: RuleSet) -> str:
    """One line per limit, in alphabetical order; empty when there are no limits."""
    lines = (
        line for domain, level in rules.domains.items() for line in _lines_of_level(domain, level)
    )
    return "".join(f"{line}\n" for line in sorted(lines))


def _lines_of_level(path: str, level: Level) -> Iterator[str]:
    for rule in level.exact.values():
        rule_path = f"{path}.{rule.id}"
        if rule.limit is not None:
            yield f"{rule_path}: {_shown(rule, rule.limit)}"
        yield from _lines_of_level(rule_path, rule.children)


def _shown(rule: Rule, limit: Limit) -> str:
    unit = "UNKNOWN" if limit.unit is None else limit.unit.name
    flags = f"shadow_mode: {_go(rule.is_shadow)}, quota_mode: {_go(rule.is_quota)}"
    return f"unit={unit} requests_per_unit={limit.requests_per_unit}, {flags}"


def _go(flag: bool) -> str:
    return "true" if flag else "false"
