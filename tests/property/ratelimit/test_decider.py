"""Batches, memos, caches, partitions and reloads change no decision."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ratelimit.engine import (
    Engine,
    PartitionAnswers,
    RecordedCounters,
    entries,
    rule_stats,
    rules_from,
)
from tollgate.actors.ratelimit.counting.counters import Conditional, LimitedHits, LocalCounters
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.plan import Refusal
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.decision.response import RateLimitDecision
from tollgate.actors.ratelimit.rules.descriptors import (
    Override,
    RateLimitDescriptor,
    RateLimitRequest,
)

RULES = rules_from("""
domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: b, rate_limit: {unit: hour, requests_per_unit: 3}}
  - {key: shady, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: quota, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
  - {key: files, value: f*, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 4}}
  - {key: named, rate_limit: {unit: minute, requests_per_unit: 1, name: named}}
  - {key: other, rate_limit: {unit: minute, requests_per_unit: 6, replaces: [{name: named}]}}
  - {key: open, rate_limit: {unlimited: true}}
  - {key: detail, detailed_metric: true, rate_limit: {unit: second, requests_per_unit: 2}}
""")
HUGE = 2**64 - 1
# Few counters that are hit all the time, and everything there is.
CROWDED = ("a=1", "a=2", "b=1", "quota=1")
ALL = (
    *CROWDED,
    "shady=1",
    "quota=2",
    "files=f1",
    "files=f2",
    "named=1",
    "other=1",
    "open=1",
    "detail=1",
    "unmatched=1",
)
OVERRIDES = st.builds(Override, st.integers(0, 4), st.sampled_from([None, Unit.MINUTE, Unit.HOUR]))
POLICIES = st.builds(
    Policy,
    is_shadow_mode=st.booleans(),
    is_quota_mode=st.booleans(),
    stops_when_over=st.booleans(),
    has_dynamic_metadata=st.booleans(),
)
PARTITIONS = st.sampled_from([1, 2, 3])
Traffic = list[tuple[int, list[RateLimitRequest]]]


def traffic(*, is_plain: bool = False) -> st.SearchStrategy[Traffic]:
    """Batches of requests, each with the seconds that pass before it. Plain: nothing is given back,
    and nobody brings a limit along."""
    crowded = st.builds(
        RateLimitDescriptor,
        st.sampled_from(CROWDED).map(entries),
        hits_addend=st.sampled_from([None, 1, 2]),
        is_negative_hits=st.just(False) if is_plain else st.sampled_from([False, False, True]),
    )
    anything = st.builds(
        RateLimitDescriptor,
        st.sampled_from(ALL).map(entries),
        override=st.none() if is_plain else st.none() | OVERRIDES,
        hits_addend=st.sampled_from([None, 0, 1, 2, 3, 7, HUGE]),
        is_negative_hits=st.just(False) if is_plain else st.booleans(),
    )
    return st.one_of(
        _batches(st.builds(RateLimitRequest, st.just("d"), _few(crowded))),
        _batches(
            st.builds(
                RateLimitRequest,
                st.sampled_from(["d", "d", "d", "d", "unknown", ""]),
                _few(anything),
                st.integers(0, 3),
            )
        ),
    )


def _few(
    descriptor: st.SearchStrategy[RateLimitDescriptor],
) -> st.SearchStrategy[tuple[RateLimitDescriptor, ...]]:
    return st.lists(descriptor, max_size=4).map(tuple)


def _batches(request: st.SearchStrategy[RateLimitRequest]) -> st.SearchStrategy[Traffic]:
    # Some come again right behind themselves, as they do from one proxy.
    row = st.tuples(request, st.sampled_from([1, 1, 2, 3])).map(lambda row: [row[0]] * row[1])
    batch = st.lists(row, min_size=1, max_size=8).map(lambda rows: [*chain.from_iterable(rows)])
    return st.lists(st.tuples(st.sampled_from([0, 0, 1, 30, 60]), batch), max_size=5)


class Observed:
    """An engine with everything it answered and counted."""

    def __init__(self, policy: Policy, partitions: int) -> None:
        self._store = RecordedCounters(partitions)
        self._engine = Engine(RULES, policy=policy, store=self._store)
        self.answers: list[object] = []

    def wait(self, seconds: int) -> None:
        self._engine.clock.advance(seconds)

    def decide(self, *requests: RateLimitRequest) -> None:
        self.answers += map(seen, self._engine.decide(*requests))

    def counts(self) -> dict[tuple[int, bytes], int]:
        return self._store.counts(int(self._engine.clock.now_s()))

    def statistics(self) -> tuple[dict[str, dict[str, int]], object, object]:
        delta = self._engine.tallies.drain()
        return rule_stats(delta), delta.unknown_domains, delta.counts


def seen(answer: RateLimitDecision | Refusal) -> object:
    """What a caller sees of an answer."""
    if isinstance(answer, Refusal):
        return answer
    statuses = [
        (status.code, status.remaining, status.reset_s, status.hit and status.hit.limit_wire)
        for status in answer.statuses
    ]
    return answer.overall, statuses, answer.headers, answer.metadata


def in_batches(requests: Traffic, policy: Policy, partitions: int) -> Observed:
    observed = Observed(policy, partitions)
    for wait_s, batch in requests:
        observed.wait(wait_s)
        observed.decide(*batch)
    return observed


def one_by_one(requests: Traffic, policy: Policy, partitions: int) -> Observed:
    observed = Observed(policy, partitions)
    for wait_s, batch in requests:
        observed.wait(wait_s)
        for request in batch:
            observed.decide(request)
    return observed


def without_cache_hits(
    statistics: tuple[dict[str, dict[str, int]], object, object],
) -> tuple[dict[str, dict[str, int]], object, object]:
    rules, *others = statistics
    for stats in rules.values():
        stats.pop("over_limit_with_local_cache", None)
    return rules, others[0], others[1]


@settings(max_examples=3 * settings.default.max_examples)
@given(traffic(), POLICIES, PARTITIONS)
def test_a_batch_is_its_requests_one_by_one(
    requests: Traffic, policy: Policy, partitions: int
) -> None:
    batched = in_batches(requests, policy, partitions)
    single = one_by_one(requests, policy, partitions)
    assert batched.answers == single.answers
    assert batched.statistics() == single.statistics()
    assert batched.counts() == single.counts()


@settings(max_examples=2 * settings.default.max_examples)
@given(traffic(is_plain=True), POLICIES, PARTITIONS, st.sampled_from([500, 65_536]))
def test_a_local_cache_changes_no_decision(
    requests: Traffic, policy: Policy, partitions: int, cache_bytes: int
) -> None:
    """As long as nothing is given back (hits that the cache refuses are not counted) or held back
    (B9 has a rule of its own for counters in the cache)."""
    plain = replace(policy, stops_when_over=False)
    cached = replace(plain, local_cache_bytes=cache_bytes)
    expected = one_by_one(requests, plain, partitions)
    statistics = expected.statistics()
    for observed in (
        in_batches(requests, cached, partitions),
        one_by_one(requests, cached, partitions),
    ):
        assert observed.answers == expected.answers
        assert without_cache_hits(observed.statistics()) == statistics


@given(traffic(), POLICIES, PARTITIONS, st.sampled_from([0, 1, 2]))
def test_a_memo_changes_nothing(
    requests: Traffic, policy: Policy, partitions: int, entries_max: int
) -> None:
    expected = in_batches(requests, policy, partitions)
    bounded = in_batches(requests, replace(policy, plan_memo_entries_max=entries_max), partitions)
    assert bounded.answers == expected.answers
    assert bounded.statistics() == expected.statistics()
    assert bounded.counts() == expected.counts()


def rules_with_limit(requests_per_unit: int) -> str:
    return f"""
domain: d
descriptors:
  - {{key: a, rate_limit: {{unit: minute, requests_per_unit: {requests_per_unit}}}}}
  - {{key: b, rate_limit: {{unit: hour, requests_per_unit: {requests_per_unit}}}}}
"""


class ReloadingCounters(LocalCounters):
    """Counters with which a reload comes in the middle of every count."""

    engine: Engine
    limit = 100

    def hit(self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int) -> PartitionAnswers:
        self._reload()
        return super().hit(batches, now_s)

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> PartitionAnswers:
        self._reload()
        return super().hit_conditionally(batches, now_s)

    def _reload(self) -> None:
        self.limit += 1
        self.engine.use(rules_with_limit(self.limit))


@given(
    st.lists(st.lists(st.sampled_from(["a=1", "a=2", "b=1"]), min_size=1, max_size=4), max_size=5),
    PARTITIONS,
    st.booleans(),
)
def test_a_reload_never_mixes_with_a_batch(
    batches: list[list[str]], partitions: int, stops_when_over: bool
) -> None:
    store = ReloadingCounters(partitions)
    engine = store.engine = Engine(
        rules_with_limit(store.limit), policy=Policy(stops_when_over=stops_when_over), store=store
    )
    for batch in batches:
        limit = store.limit
        request = RateLimitRequest("d", tuple(RateLimitDescriptor(entries(text)) for text in batch))
        for answer in engine.decide(request, request):
            assert isinstance(answer, RateLimitDecision)
            limits = {status.hit.limit for status in answer.statuses if status.hit is not None}
            assert limits == {limit}
