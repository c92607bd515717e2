"""A rule set: loaded rules as an immutable tree per domain (B1 to B3).

A level holds sibling rules. Its `exact` table is keyed by composite id (`key` or `key_value`);
`wildcards` keeps the rules whose id holds a `*`, in the order they were declared, because the first
that matches wins. A rule set is replaced as a whole and never edited.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.rules.wildcards import Wildcards

REQUESTS_PER_UNIT_MAX = 2**32 - 1


def composite_id(key: str, value: str) -> str:
    """The id that a rule is looked up by: `key`, or `key_value` when it has a value (B1)."""
    return f"{key}_{value}" if value else key


@dataclass(frozen=True, slots=True)
class Source:
    """The place of a rule: the file as operators name it, and the line, from 1.

    `line` None: the rule came from a configuration server, and `file` is its resource.
    """

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Limit:
    """A rule's `rate_limit` block. `unit` is None exactly when the limit is unlimited, and
    `requests_per_unit` is then 0."""

    requests_per_unit: int
    unit: Unit | None
    name: str = ""
    replaces: tuple[str, ...] = ()

    @property
    def is_unlimited(self) -> bool:
        return self.unit is None


@dataclass(frozen=True, slots=True)
class Level:
    """Sibling rules. `patterns` finds positions in `wildcards` and is made from it."""

    exact: "Mapping[str, LimitRule]" = field(default_factory=dict)
    wildcards: "tuple[LimitRule, ...]" = ()
    patterns: Wildcards = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", Wildcards.of(rule.id for rule in self.wildcards))

    @classmethod
    def of(cls, rules: "Iterable[LimitRule]") -> "Level":
        """The level of these siblings, whose ids are unique."""
        exact = {rule.id: rule for rule in rules}
        return cls(exact, tuple(rule for rule in exact.values() if rule.has_wildcard))


EMPTY_LEVEL = Level()


@dataclass(frozen=True, slots=True)
class LimitRule:
    """One configured descriptor. The flags belong to it, not to its `rate_limit` block (B1)."""

    key: str
    value: str
    source: Source
    limit: Limit | None = None
    is_shadow: bool = False
    is_quota: bool = False
    has_detailed_metric: bool = False
    has_value_to_metric: bool = False
    shares_threshold: bool = False
    metadata: Mapping[str, object] | None = None
    children: Level = EMPTY_LEVEL
    id: str = field(init=False, compare=False)
    """The composite id, unique among siblings."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", composite_id(self.key, self.value))

    @property
    def has_wildcard(self) -> bool:
        """True when the id holds a `*`, in the key too (B2)."""
        return "*" in self.id


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules that are in force: domains by name. `digest` names the content it was made of."""

    domains: Mapping[str, Level]
    digest: str = ""


def dump(rules: RuleSet) -> str:
    """The limits as the debug port prints them (B18): a line each, in alphabetical order."""
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


def _shown(rule: LimitRule, limit: Limit) -> str:
    unit = "UNKNOWN" if limit.unit is None else limit.unit.name
    flags = f"shadow_mode: {_go(rule.is_shadow)}, quota_mode: {_go(rule.is_quota)}"
    return f"unit={unit} requests_per_unit={limit.requests_per_unit}, {flags}"


def _go(flag: bool) -> str:
    return "true" if flag else "false"
