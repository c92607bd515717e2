"""What a plan holds, and how long it is remembered."""

import pickle

import pytest

from tests.support.ratelimit.engine import entries, rendered_limit, rules_from
from tollgate.actors.ratelimit.counting.routes import spread_over
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.plan import (
    EMPTY_DOMAIN,
    NO_DESCRIPTORS,
    UNKNOWN_OVERRIDE_UNIT,
    PlannedHit,
    Refusal,
    RefusalReason,
    RequestPlan,
    Unmet,
)
from tollgate.actors.ratelimit.decision.planner import (
    MEMO_REQUEST_BYTES_MAX,
    MEMO_REQUEST_PARTS_MAX,
    RequestPlanner,
)
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.descriptors import (
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)
from tollgate.actors.ratelimit.statistics.tallies import Tallies

RULES = rules_from("""
domain: d
descriptors:
  - {key: k, rate_limit: {unit: minute, requests_per_unit: 10, name: named}}
  - {key: shady, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 20}}
  - {key: quota, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 30}, metadata: {a: b}}
  - {key: open, rate_limit: {unlimited: true, replaces: [{name: named}]}}
""")
MALFORMED = Refusal(RefusalReason.INVALID, "not a request")


def request(*descriptors: str, hits_addend: int = 0) -> RateLimitRequest:
    return RateLimitRequest(
        "d", tuple(RateLimitDescriptor(entries(text)) for text in descriptors), hits_addend
    )


class Plans:
    """A planner, and the requests it had to decode."""

    def __init__(self, *, partitions: int = 1, **policy: object) -> None:
        self.decoded: list[bytes] = []
        self._planner = RequestPlanner(
            RULES,
            policy=Policy(**policy),  # type: ignore[arg-type]
            route=spread_over(partitions),
            tallies=Tallies("test"),
            decode=self._decode,
            render_limit=rendered_limit,
        )

    def of(self, asked: RateLimitRequest | bytes) -> RequestPlan | Refusal:
        return self._planner.plan(asked if isinstance(asked, bytes) else pickle.dumps(asked))

    def hits(self, asked: RateLimitRequest) -> tuple[PlannedHit, ...]:
        plan = self.of(asked)
        assert isinstance(plan, RequestPlan)
        return plan.hits

    def _decode(self, payload: bytes) -> RateLimitRequest | Refusal:
        self.decoded.append(payload)
        if payload == b"malformed":
            return MALFORMED
        decoded = pickle.loads(payload)
        assert isinstance(decoded, RateLimitRequest)
        return decoded


def test_one_step_per_descriptor_in_order() -> None:
    plan = Plans().of(request("unknown=x", "k=v", "open=v", "shady=v"))
    assert isinstance(plan, RequestPlan)
    # `open` replaces the rule `named`, so that is as though it were not there.
    assert plan.steps == (Unmet.NO_RULE, Unmet.NO_RULE, Unmet.UNLIMITED, plan.hits[0])
    assert plan.hits[0].unit is Unit.HOUR


def test_a_hit_has_what_its_rule_says() -> None:
    shady, quota, named = Plans().hits(request("shady=v", "quota=v", "k=v"))
    assert (shady.limit, shady.unit, shady.is_shadow, shady.is_quota) == (
        20,
        Unit.HOUR,
        True,
        False,
    )
    assert (quota.limit, quota.unit, quota.is_shadow, quota.is_quota) == (30, Unit.DAY, False, True)
    assert (shady.near, quota.near, named.near) == (16, 24, 8)
    assert (shady.metadata, quota.metadata) == (None, {"a": "b"})
    assert (shady.limit_wire, named.limit_wire) == (b"20/HOUR", b"10/MINUTE named")
    assert (shady.tally.metric_key, named.tally.metric_key) == ("d.shady", "d.k")


@pytest.mark.parametrize(
    ("of_descriptor", "of_request", "expected"),
    [(None, 0, 1), (None, 3, 3), (0, 3, 0), (5, 3, 5), (2**64 - 1, 0, 2**64 - 1)],
)
def test_a_descriptor_s_addend_goes_before_the_request_s(
    of_descriptor: int | None, of_request: int, expected: int
) -> None:
    descriptor = RateLimitDescriptor(entries("k=v"), hits_addend=of_descriptor)
    refund = RateLimitDescriptor(entries("k=v"), hits_addend=of_descriptor, is_negative_hits=True)
    hit, given_back = Plans().hits(RateLimitRequest("d", (descriptor, refund), of_request))
    assert (hit.addend, hit.signed_addend) == (expected, expected)
    assert (given_back.addend, given_back.signed_addend) == (expected, -expected)


def test_keys_spread_over_partitions_and_stay_there() -> None:
    plans = Plans(partitions=3)
    hits = [plans.hits(request(f"k={number}"))[0] for number in range(60)]
    assert {hit.partition for hit in hits} == {0, 1, 2}
    assert {hit.bucket % 8 for hit in hits} == {Unit.MINUTE}
    again = Plans(partitions=3)
    assert [again.hits(request(f"k={number}"))[0].bucket for number in range(60)] == [
        hit.bucket for hit in hits
    ]


def test_a_prefix_makes_other_counters() -> None:
    (plain,), (prefixed,) = (
        Plans(counter_key_prefix=prefix).hits(request("k=v")) for prefix in ("", "prefix:")
    )
    assert plain.key != prefixed.key


def test_quota_mode_makes_every_limit_a_quota_and_counts_those_without() -> None:
    plan = Plans(is_quota_mode=True).of(request("shady=v", "unknown=x", "open=v", "k=v"))
    assert isinstance(plan, RequestPlan)
    assert [hit.is_quota for hit in plan.hits] == [True]
    assert plan.passing_quotas == 2
    plan = Plans().of(request("unknown=x"))
    assert isinstance(plan, RequestPlan)
    assert plan.passing_quotas == 0


def test_an_unknown_domain_is_noted_once_per_descriptor() -> None:
    plan = Plans().of(
        RateLimitRequest("other", (RateLimitDescriptor(entries("k=v")), RateLimitDescriptor(())))
    )
    assert isinstance(plan, RequestPlan)
    assert (plan.unknown_domain, plan.unknown_domain_hits, plan.hits) == ("other", 2, ())


def test_the_request_is_kept_only_for_a_reply_that_quotes_it() -> None:
    asked = request("k=v")
    plain, quoting = Plans().of(asked), Plans(has_dynamic_metadata=True).of(asked)
    assert isinstance(plain, RequestPlan)
    assert isinstance(quoting, RequestPlan)
    assert (plain.request, quoting.request) == (None, asked)


REFUSED = {
    "malformed": (b"malformed", MALFORMED),
    "F01": (RateLimitRequest("", (RateLimitDescriptor(entries("k=v")),)), EMPTY_DOMAIN),
    "F02": (RateLimitRequest("d", ()), NO_DESCRIPTORS),
    "F05": (RateLimitRequest("", ()), EMPTY_DOMAIN),
    "B27": (
        RateLimitRequest("d", (RateLimitDescriptor((), Override(5, None)),)),
        UNKNOWN_OVERRIDE_UNIT,
    ),
}


@pytest.mark.parametrize(("asked", "refusal"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_is_not_remembered(asked: RateLimitRequest | bytes, refusal: Refusal) -> None:
    plans = Plans()
    assert [plans.of(asked), plans.of(asked)] == [refusal, refusal]
    assert len(plans.decoded) == 2


def test_an_override_without_unit_in_an_unknown_domain_passes() -> None:
    plan = Plans().of(RateLimitRequest("other", (RateLimitDescriptor((), Override(5, None)),)))
    assert isinstance(plan, RequestPlan)
    assert plan.steps == (Unmet.NO_RULE,)


def test_a_plan_is_made_once() -> None:
    plans = Plans()
    assert plans.of(request("k=v")) is plans.of(request("k=v"))
    assert plans.of(request("k=w")) is not plans.of(request("k=v"))
    assert len(plans.decoded) == 2


@pytest.mark.parametrize(
    ("entries_max", "decoded"),
    [
        pytest.param(0, [0, 1, 0, 0, 1, 2, 0], id="no memo"),
        pytest.param(1, [0, 1, 0, 1, 2, 0], id="one place"),
        pytest.param(2, [0, 1, 2, 0], id="two places: the oldest goes"),
        pytest.param(3, [0, 1, 2], id="room for all"),
    ],
)
def test_the_memo_is_bounded(entries_max: int, decoded: list[int]) -> None:
    plans = Plans(plan_memo_entries_max=entries_max)
    payloads = [pickle.dumps(request(f"k={number}")) for number in range(3)]
    for number in (0, 1, 0, 0, 1, 2, 0):
        plans.of(payloads[number])
    assert [payloads.index(payload) for payload in plans.decoded] == decoded


@pytest.mark.parametrize(("excess", "times"), [(0, 1), (1, 2)])
def test_long_requests_are_not_remembered(excess: int, times: int) -> None:
    plans = Plans()
    empty = len(pickle.dumps(request("k=" + "x" * 1_000))) - 1_000
    payload = pickle.dumps(request("k=" + "x" * (MEMO_REQUEST_BYTES_MAX - empty + excess)))
    assert len(payload) == MEMO_REQUEST_BYTES_MAX + excess
    for _ in range(2):
        plans.of(payload)
    assert len(plans.decoded) == times


@pytest.mark.parametrize(("excess", "times"), [(0, 1), (1, 2)])
def test_requests_of_many_parts_are_not_remembered(excess: int, times: int) -> None:
    plans = Plans()
    quarters = MEMO_REQUEST_PARTS_MAX // 4
    asked = RateLimitRequest(
        "d",
        (RateLimitDescriptor(entries("a=1,b=2,c=3")),) * quarters
        + (RateLimitDescriptor(()),) * excess,
    )
    for _ in range(2):
        plans.of(asked)
    assert len(plans.decoded) == times
