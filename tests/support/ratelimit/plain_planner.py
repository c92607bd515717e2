"""Plans a request from the rules, one descriptor after another, and remembers nothing.

The oracle of the planner that goes by the shape of requests.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.accounting import near_threshold
from tollgate.actors.ratelimit.decision.counter_keys import KEY_BYTES_MAX, UNIT_SLOTS
from tollgate.actors.ratelimit.decision.plan import (
    METADATA_DEPTH_MAX,
    UNENCODABLE_METADATA,
    UNKNOWN_OVERRIDE_UNIT,
    PlannedDescriptor,
    PlannedHit,
    Refusal,
    RequestPlan,
    Unmet,
    refused_outright,
)
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.descriptors import (
    Entries,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.actors.ratelimit.rules.rule_match import Match, NoMatch, match
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import Tallies


class PlainPlanner:
    """Plans requests under one rule set."""

    def __init__(
        self,
        rules: RuleSet,
        *,
        policy: Policy,
        partitions: int,
        tallies: Tallies,
        render_limit: Callable[[int, Unit, str], bytes],
    ) -> None:
        assert partitions > 0, "counters need at least one partition"
        self._rules = rules
        self._policy = policy
        self._partitions = partitions
        self._tallies = tallies
        self._render_limit = render_limit

    def plan_request(self, request: RateLimitRequest) -> RequestPlan | Refusal:
        """The plan of a decoded request."""
        refusal = refused_outright(request)
        if refusal is not None:
            return refusal
        matches = [match(self._rules, request.domain, each) for each in request.descriptors]
        if NoMatch.OVERRIDE_UNIT_UNKNOWN in matches:
            return UNKNOWN_OVERRIDE_UNIT
        if self._policy.has_dynamic_metadata and any(map(_is_too_deep, matches)):
            return UNENCODABLE_METADATA
        replaced = {
            name for each in matches if isinstance(each, Match) for name in each.limit.replaces
        }
        steps = tuple(
            self._step(request, descriptor, outcome, replaced)
            for descriptor, outcome in zip(request.descriptors, matches, strict=True)
        )
        hits = tuple(step for step in steps if isinstance(step, PlannedHit))
        unknown = sum(outcome is NoMatch.UNKNOWN_DOMAIN for outcome in matches)
        passing = steps.count(Unmet.NO_RULE) if self._policy.is_quota_mode else 0
        return RequestPlan(
            steps=steps,
            hits=hits,
            passing_quotas=passing,
            unknown_domain=request.domain if unknown else "",
            unknown_domain_hits=unknown,
            request=request if self._policy.has_dynamic_metadata else None,
        )

    def _step(
        self,
        request: RateLimitRequest,
        descriptor: RateLimitDescriptor,
        outcome: Match | NoMatch,
        replaced: set[str],
    ) -> PlannedDescriptor:
        if not isinstance(outcome, Match):
            return Unmet.NO_RULE
        limit = outcome.limit
        if limit.name and limit.name in replaced:
            return Unmet.NO_RULE
        if limit.unit is None:
            return Unmet.UNLIMITED
        addend = descriptor.hits_addend
        if addend is None:
            addend = request.hits_addend or 1
        entries = outcome.counter_entries
        key = counter_key(self._policy.counter_key_prefix, request.domain, entries, limit.unit)
        partition = stable_hash(key) % self._partitions
        return PlannedHit(
            key=key,
            bucket=partition * UNIT_SLOTS + limit.unit,
            unit=limit.unit,
            limit=limit.requests_per_unit,
            near=near_threshold(limit.requests_per_unit, self._policy.near_limit_ratio),
            addend=addend,
            is_refund=descriptor.is_negative_hits,
            is_shadow=outcome.is_shadow,
            is_quota=self._policy.is_quota_mode or outcome.is_quota,
            tally=self._tallies.rule(outcome.metric_key, outcome.is_dynamic_series),
            limit_wire=self._render_limit(limit.requests_per_unit, limit.unit, limit.name),
            metadata=outcome.metadata,
        )


def _is_too_deep(outcome: Match | NoMatch) -> bool:
    """True for metadata that no response can carry: known before its hits are counted."""
    return isinstance(outcome, Match) and _depth(outcome.metadata) > METADATA_DEPTH_MAX


def _depth(value: object) -> int:
    """The levels of mappings and lists in a JSON-like value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return 0
    return 1 + max(map(_depth, value), default=0)


def counter_key(prefix: str, domain: str, entries: Entries, unit: Unit) -> bytes:
    """The name of these entries' counter, put together from the start."""
    parts = [f"{len(key)}:{key}{len(value)}:{value}" for key, value in entries]
    text = f"{unit:d}|{len(prefix)}:{prefix}{len(domain)}:{domain}{''.join(parts)}"
    key = text.encode("utf-8", "surrogatepass")
    if len(key) <= KEY_BYTES_MAX:
        return key
    return b"%d#" % unit + blake2b(key, digest_size=32).digest()
