"""Drafts: rules as they were written in files or sent by a configuration server, before they are
checked; `builder` makes rules of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.actors.ratelimit.rules.rule_set import composite_id


@dataclass(frozen=True, slots=True)
class Remark:
    """Something legal that deserves a warning. `line` None: the source has no lines."""

    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class LimitDraft:
    """A `rate_limit` block. `requests_per_unit` None: it was not written; `replaces`: names."""

    unit: str = ""
    requests_per_unit: int | None = None
    is_unlimited: bool = False
    name: str = ""
    replaces: tuple[str, ...] = ()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """A descriptor entry. `metadata_problem`: why what was written cannot be metadata."""

    key: str
    value: str = ""
    limit: LimitDraft | None = None
    is_shadow: bool = False
    is_quota: bool = False
    has_detailed_metric: bool = False
    has_value_to_metric: bool = False
    shares_threshold: bool = False
    metadata: Mapping[str, object] | None = None
    metadata_problem: str = ""
    children: "tuple[RuleDraft, ...]" = ()
    line: int | None = None

    @property
    def id(self) -> str:
        """The composite id, as `Rule.id`."""
        return composite_id(self.key, self.value)

    @property
    def has_wildcard(self) -> bool:
        """True when the id holds a `*`, in the key too (B2)."""
        return "*" in self.id


@dataclass(frozen=True, slots=True)
class DomainDraft:
    """One source's rules for one domain. `file`: as operators name it, or the resource's name."""

    file: str
    domain: str
    rules: tuple[RuleDraft, ...] = ()
    remarks: tuple[Remark, ...] = ()
    line: int | None = None
