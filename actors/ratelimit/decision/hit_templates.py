"""Templates of hits: all that the hits on one limit have in common, and blanks for the values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.accounting import near_threshold
from tollgate.actors.ratelimit.decision.counter_keys import KeyForm, OutsideKeyForm
from tollgate.actors.ratelimit.decision.plan import METADATA_DEPTH_MAX
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.descriptors import Entries, Override
from tollgate.actors.ratelimit.rules.rule_match import (
    Choice,
    Match,
    MetRule,
    NoMatch,
    match_at_end,
    metric_name,
    override_match,
)
from tollgate.actors.ratelimit.statistics.tallies import RuleTally, Tallies


@dataclass(frozen=True, slots=True, eq=False)
class HitTemplate:
    """The hits of one limit. `limit` and `near` in hits; `unit` None: unlimited, not counted.

    `name` and `replaces` as in the rule (B12). `tally` None: the metric is named by the request, as
    the rules in `named_by` say.
    """

    unit: Unit | None
    limit: int
    near: int
    is_shadow: bool
    is_quota: bool
    name: str
    replaces: tuple[str, ...]
    limit_wire: bytes
    metadata: Mapping[str, object] | None
    is_metadata_too_deep: bool
    key_form: KeyForm | OutsideKeyForm | None
    tally: RuleTally | None
    named_by: tuple[MetRule, ...]


class TemplateWriter:
    """Writes templates for rules, and for limits that requests bring along, under one policy."""

    def __init__(
        self, policy: Policy, tallies: Tallies, render_limit: Callable[[int, Unit, str], bytes]
    ) -> None:
        self._policy = policy
        self._tallies = tallies
        self._render_limit = render_limit

    def of_rules(self, domain: str, steps: tuple[MetRule, ...]) -> HitTemplate | None:
        """The template of the limit that these rules lead to; None where that has no limit."""
        met = match_at_end(domain, steps)
        if isinstance(met, NoMatch):
            return None
        return self._written(domain, met, [_blank(step) for step in steps], steps)

    def of_override(self, domain: str, entries: Entries, override: Override) -> HitTemplate | None:
        """The template of a limit from the request; None for one without a known unit."""
        met = override_match(domain, entries, override)
        return None if isinstance(met, NoMatch) else self._written(domain, met, entries, ())

    def tally(self, domain: str, template: HitTemplate, entries: Entries) -> RuleTally:
        """The tally of a hit whose metric is named by the request."""
        steps = tuple(
            MetRule(key, value, step.rule, step.choice)
            for (key, value), step in zip(entries, template.named_by, strict=True)
        )
        return self._tallies.rule(*metric_name(domain, steps))

    def _written(
        self,
        domain: str,
        met: Match,
        entries: Sequence[tuple[str, str | None]],
        steps: tuple[MetRule, ...],
    ) -> HitTemplate:
        limit, unit = met.limit, met.limit.unit
        is_counted = unit is not None
        is_named_by_request = any(map(_shows_values, steps)) or (
            met.rule is not None and met.rule.has_detailed_metric and not all(map(_is_fixed, steps))
        )
        prefix, ratio = self._policy.counter_key_prefix, self._policy.near_limit_ratio
        form = OutsideKeyForm if self._policy.has_outside_counters else KeyForm
        has_tally = is_counted and not is_named_by_request
        return HitTemplate(
            unit=unit,
            limit=limit.requests_per_unit,
            near=near_threshold(limit.requests_per_unit, ratio),
            is_shadow=met.is_shadow,
            is_quota=self._policy.is_quota_mode or met.is_quota,
            name=limit.name,
            replaces=limit.replaces,
            limit_wire=b""
            if unit is None
            else self._render_limit(limit.requests_per_unit, unit, limit.name),
            metadata=met.metadata,
            is_metadata_too_deep=_depth(met.metadata) > METADATA_DEPTH_MAX,
            key_form=None if unit is None else form(prefix, domain, entries, unit),
            tally=self._tallies.rule(met.metric_key, met.is_dynamic_series) if has_tally else None,
            named_by=steps if is_named_by_request else (),
        )


def _is_fixed(step: MetRule) -> bool:
    """True where all requests that come this way show the same text in names."""
    return step.choice is Choice.EXACT or step.is_shared


def _shows_values(step: MetRule) -> bool:
    return step.rule.has_value_to_metric and not _is_fixed(step)


def _blank(step: MetRule) -> tuple[str, str | None]:
    """The step's part of a counter's name, with None for a value that differs by request."""
    key, value = step.counter_entry
    return key, value if _is_fixed(step) else None


def _depth(value: object) -> int:
    """The levels of mappings and lists in a JSON-like value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return 0
    return 1 + max(map(_depth, value), default=0)
