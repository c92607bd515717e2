"""Planning by shape gives what planning from the rules gives, whatever was planned before."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.support.ratelimit.engine import rendered_limit
from tests.support.ratelimit.plain_planner import PlainPlanner
from tollgate.actors.ratelimit.counting.routes import spread_over
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.plan import PlannedHit, RequestPlan
from tollgate.actors.ratelimit.decision.planner import RequestPlanner
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.descriptors import (
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.actors.ratelimit.rules.rule_set import Level, Limit, LimitRule, RuleSet, Source
from tollgate.actors.ratelimit.statistics.tallies import Tallies

SOURCE = Source("f", 1)
NAMES = st.sampled_from(["", "", "x", "y", "z"])
DEEP: dict[str, object] = {"level": [[[[]]]]}
for _ in range(40):
    DEEP = {"level": DEEP}

# Few letters, so that things meet; `_` joins, so that one text is met from several sides.
KEYS = st.sampled_from(["a", "b", "a_b", "a_", "_", "ab"])
VALUES = st.sampled_from(["", "a", "b", "a_b", "b_a", "ab", "é", "v" * 70, "*b"])
RULE_VALUES = VALUES | st.sampled_from(["*", "a*", "*b", "a*b", "_*"])
LIMITS = st.builds(
    Limit,
    st.integers(0, 9),
    st.none() | st.sampled_from([Unit.SECOND, Unit.DAY]),
    NAMES,
    st.lists(NAMES.filter(bool), max_size=2).map(tuple),
)


def levels(deeper: st.SearchStrategy[Level]) -> st.SearchStrategy[Level]:
    rules = st.builds(
        LimitRule,
        key=KEYS | st.sampled_from(["*", "a*", "*_b"]),
        value=RULE_VALUES,
        source=st.just(SOURCE),
        limit=st.none() | LIMITS | LIMITS,
        is_shadow=st.booleans(),
        is_quota=st.booleans(),
        has_detailed_metric=st.booleans(),
        has_value_to_metric=st.booleans(),
        shares_threshold=st.booleans(),
        metadata=st.sampled_from([None, None, {"a": [1]}, DEEP]),
        children=deeper,
    )
    return st.lists(rules, min_size=1, max_size=6, unique_by=lambda rule: rule.id).map(Level.of)


RULE_SETS = st.recursive(st.just(Level()), levels, max_leaves=16).map(
    lambda level: RuleSet({"d": level, "empty": Level()})
)
DESCRIPTORS = st.builds(
    RateLimitDescriptor,
    st.lists(st.tuples(KEYS, VALUES), max_size=3).map(tuple),
    override=st.sampled_from([None, None, None, Override(3, Unit.HOUR), Override(3, None)]),
    hits_addend=st.sampled_from([None, None, 0, 2]),
    is_negative_hits=st.booleans(),
)
REQUESTS = st.builds(
    RateLimitRequest,
    st.sampled_from(["d", "d", "d", "d", "empty", "unknown", ""]),
    st.lists(DESCRIPTORS, max_size=4).map(tuple),
    st.sampled_from([0, 3]),
)
POLICIES = st.builds(
    Policy,
    is_quota_mode=st.booleans(),
    has_dynamic_metadata=st.booleans(),
    counter_key_prefix=st.sampled_from(["", "p:"]),
)


def shown(plan: object) -> object:
    """Everything that a plan says, tallies by their identity."""
    if not isinstance(plan, RequestPlan):
        return plan
    steps = [_fields(step) if isinstance(step, PlannedHit) else step for step in plan.steps]
    assert [step for step in plan.steps if isinstance(step, PlannedHit)] == list(plan.hits)
    others = (plan.passing_quotas, plan.unknown_domain, plan.unknown_domain_hits, plan.request)
    return steps, others


def _fields(hit: PlannedHit) -> dict[str, object]:
    return {name: getattr(hit, name) for name in PlannedHit.__slots__}


@given(RULE_SETS, POLICIES, st.lists(REQUESTS, max_size=12), st.sampled_from([1, 3]))
def test_plans_are_those_of_the_plain_planner(
    rules: RuleSet, policy: Policy, requests: Sequence[RateLimitRequest], partitions: int
) -> None:
    tallies = Tallies("test")
    plain = PlainPlanner(
        rules,
        policy=policy,
        partitions=partitions,
        tallies=tallies,
        render_limit=rendered_limit,
    )
    by_shape = RequestPlanner(
        rules,
        policy=policy,
        route=spread_over(partitions),
        tallies=tallies,
        decode=lambda payload: requests[payload[0]],
        render_limit=rendered_limit,
    )
    for number, request in enumerate(requests):
        planned = by_shape.plan(bytes([number]))
        assert shown(planned) == shown(plain.plan_request(request))
