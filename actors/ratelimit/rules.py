"""Rules as they are held after loading: an immutable tree per domain (specification, B1 to B3).

A level holds sibling rules. Its `exact` table is keyed by composite id (`key` or `key_value`);
`wildcards` keeps the rules whose id holds a `*`, in the order they were declared, because the first
that matches wins. A rule set is replaced as a whole and never edited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.ratelimit.windows import Unit

REQUESTS_PER_UNIT_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Source:
    """Where a rule was written: the file as operators name it, and the line, from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A rule's `rate_limit` block. `unit` is None exactly when the limit is unlimited."""

    requests_per_unit: int
    unit: Unit | None
    name: str = ""
    replaces: tuple[str, ...] = ()

    @property
    def is_unlimited(self) -> bool:
        return self.unit is None


@dataclass(frozen=True, slots=True)
class Rule:
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
    children: "Level" = field(default_factory=lambda: EMPTY_LEVEL)

    @property
    def id(self) -> str:
        """The composite id among siblings: `key`, or `key_value` when a value was given."""
        return f"{self.key}_{self.value}" if self.value else self.key


@dataclass(frozen=True, slots=True)
class Level:
    """Sibling rules: `exact` by composite id (wildcard rules too), `wildcards` in order."""

    exact: Mapping[str, Rule] = field(default_factory=dict)
    wildcards: tuple[Rule, ...] = ()


EMPTY_LEVEL = Level()


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Everything that is in force: domains by name. `digest` names the content it was made of."""

    domains: Mapping[str, Level]
    digest: str = ""
