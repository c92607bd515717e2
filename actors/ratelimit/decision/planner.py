"""Plans requests: from their bytes to the counters to hit.

    known bytes -> the plan that was made for them
    new bytes   -> decode -> a template for every descriptor (B2) -> none for those that others
                   replace (B12) -> counter keys and partitions, by the values

All of it depends on the rules alone, so what is remembered is thrown away with the rules that it
was made from. Threads may share a planner: what it remembers has locks where it needs any.
"""

from collections.abc import Callable, Sequence

from tollgate.actors.ratelimit.counting.routes import Route
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.counter_keys import UNIT_SLOTS
from tollgate.actors.ratelimit.decision.hit_templates import HitTemplate, TemplateWriter
from tollgate.actors.ratelimit.decision.plan import (
    UNENCODABLE_METADATA,
    UNKNOWN_OVERRIDE_UNIT,
    PlannedDescriptor,
    PlannedHit,
    Refusal,
    RequestPlan,
    Unmet,
    refused_outright,
)
from tollgate.actors.ratelimit.decision.plan_memo import PlanMemo
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.decision.rule_paths import DomainPaths, RulePath
from tollgate.actors.ratelimit.rules.descriptors import (
    Entries,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.actors.ratelimit.rules.rule_set import RuleSet
from tollgate.actors.ratelimit.statistics.tallies import Tallies

MEMO_REQUEST_BYTES_MAX = 2 * 1024
# Descriptors and entries of a request that is remembered: a plan can be fifty times its request.
MEMO_REQUEST_PARTS_MAX = 64
PART_BYTES_MIN = 2  # that a descriptor or an entry takes on the wire: its tag and its length

_NO_NAMES: frozenset[str] = frozenset()


class RequestPlanner:
    """Plans requests under one rule set. `route`: to the counters of their hits."""

    def __init__(
        self,
        rules: RuleSet,
        *,
        policy: Policy,
        route: Route,
        tallies: Tallies,
        decode: Callable[[bytes], RateLimitRequest | Refusal],
        render_limit: Callable[[int, Unit, str], bytes],
    ) -> None:
        self._policy = policy
        self._route = route
        self._decode = decode
        self._templates = TemplateWriter(policy, tallies, render_limit)
        self._roots: dict[str, RulePath] = {
            domain: DomainPaths(domain, level, self._templates.of_rules).root
            for domain, level in rules.domains.items()
        }
        self._memo = PlanMemo(policy.plan_memo_entries_max)

    def plan_all(self, payloads: Sequence[bytes]) -> list[RequestPlan | Refusal]:
        """The plans of serialised requests; a refusal for what is malformed or out of bounds."""
        known = self._memo.recent.get
        return [known(payload) or self.plan(payload) for payload in payloads]

    def plan(self, payload: bytes) -> RequestPlan | Refusal:
        """The plan of one of them."""
        known = self._memo.get(payload)
        if known is not None:
            return known
        request = self._decode(payload)
        if isinstance(request, Refusal):
            return request
        plan = self.plan_request(request)
        if isinstance(plan, RequestPlan) and _is_worth_keeping(payload, request):
            self._memo.put(payload, plan)
        return plan

    def plan_request(self, request: RateLimitRequest) -> RequestPlan | Refusal:
        """The plan of a decoded request."""
        refusal = refused_outright(request)
        if refusal is not None:
            return refusal
        kept = request if self._policy.has_dynamic_metadata else None
        descriptors = request.descriptors
        root = self._roots.get(request.domain)
        if root is None:
            return self._plan_of_unknown_domain(request)
        if len(descriptors) == 1 and kept is None and descriptors[0].override is None:
            # Most have one descriptor, which meets a limit that concerns no other.
            template = _template_met(root, descriptors[0].entries)
            if template is not None and template.unit is not None and not template.replaces:
                only = (self._hit(request, descriptors[0], template),)
                return RequestPlan(only, only, 0, "", 0, None)
        met: list[HitTemplate | None] = []
        replaced = _NO_NAMES
        for descriptor in descriptors:
            if descriptor.override is None:
                template = _template_met(root, descriptor.entries)
            else:
                template = self._templates.of_override(
                    request.domain, descriptor.entries, descriptor.override
                )
                if template is None:
                    return UNKNOWN_OVERRIDE_UNIT
            if template is not None and template.replaces:
                replaced = replaced.union(template.replaces)
            met.append(template)
        if kept is not None and any(each and each.is_metadata_too_deep for each in met):
            return UNENCODABLE_METADATA
        steps: list[PlannedDescriptor] = []
        hits: list[PlannedHit] = []
        for template, descriptor in zip(met, descriptors, strict=True):
            if template is None or (template.name and template.name in replaced):
                steps.append(Unmet.NO_RULE)
            elif template.unit is None:
                steps.append(Unmet.UNLIMITED)
            else:
                hit = self._hit(request, descriptor, template)
                steps.append(hit)
                hits.append(hit)
        passing = steps.count(Unmet.NO_RULE) if self._policy.is_quota_mode else 0
        return RequestPlan(tuple(steps), tuple(hits), passing, "", 0, kept)

    def _plan_of_unknown_domain(self, request: RateLimitRequest) -> RequestPlan:
        count = len(request.descriptors)
        return RequestPlan(
            steps=(Unmet.NO_RULE,) * count,
            hits=(),
            passing_quotas=count if self._policy.is_quota_mode else 0,
            unknown_domain=request.domain,
            unknown_domain_hits=count,
            request=request if self._policy.has_dynamic_metadata else None,
        )

    def _hit(
        self, request: RateLimitRequest, descriptor: RateLimitDescriptor, template: HitTemplate
    ) -> PlannedHit:
        unit, form = template.unit, template.key_form
        assert unit is not None, "only what is counted is hit"
        assert form is not None, "what is counted has a key"
        addend = descriptor.hits_addend
        if addend is None:
            addend = request.hits_addend or 1
        key = form.key(descriptor.entries)
        tally = template.tally
        if tally is None:
            tally = self._templates.tally(request.domain, template, descriptor.entries)
        # By position, as it costs less: one of the few calls that each descriptor makes.
        return PlannedHit(
            key,
            self._route(key, unit) * UNIT_SLOTS + unit,
            unit,
            template.limit,
            template.near,
            addend,
            descriptor.is_negative_hits,
            template.is_shadow,
            template.is_quota,
            tally,
            template.limit_wire,
            template.metadata,
        )


def _template_met(path: RulePath, entries: Entries) -> HitTemplate | None:
    """The template of the limit that these entries lead to, from the root of their domain."""
    for key, value in entries:
        after = path.after(key, value)
        if after is None:
            return None
        path = after
    return path.template


def _is_worth_keeping(payload: bytes, request: RateLimitRequest) -> bool:
    size = len(payload)
    if size <= MEMO_REQUEST_PARTS_MAX * PART_BYTES_MIN:
        return True
    if size > MEMO_REQUEST_BYTES_MAX:
        return False
    return sum(1 + len(each.entries) for each in request.descriptors) <= MEMO_REQUEST_PARTS_MAX
