"""Batches whose requests meet failing partitions, other threads, reloads and each other."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.ratelimit.engine import (
    Engine,
    PartitionAnswers,
    RecordedCounters,
    entries,
    rule_stats,
)
from tollgate.actors.ratelimit.counting.counters import Hits
from tollgate.actors.ratelimit.decision.decider import HELD_REQUESTS_MAX
from tollgate.actors.ratelimit.decision.judge import BACKEND_ERROR, SERVICE_ERROR
from tollgate.actors.ratelimit.decision.plan import (
    EMPTY_DOMAIN,
    NOT_CONFIGURED,
    Refusal,
    RefusalReason,
)
from tollgate.actors.ratelimit.decision.policy import FailureMode, Policy
from tollgate.actors.ratelimit.decision.response import OK, OVER_LIMIT, RateLimitDecision
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest

RULES = """
domain: d
descriptors:
  - {key: k, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: many, rate_limit: {unit: minute, requests_per_unit: 100}}
"""
PATIENCE_S = 60
CACHED = Policy(local_cache_bytes=65_536)
LOST = Refusal(RefusalReason.BACKEND, "partition 1 is gone")


def ask(*descriptors: str, addend: int = 1, is_refund: bool = False) -> RateLimitRequest:
    return RateLimitRequest(
        "d",
        tuple(
            RateLimitDescriptor(entries(text), hits_addend=addend, is_negative_hits=is_refund)
            for text in descriptors
        ),
    )


def outcome(answer: RateLimitDecision | Refusal) -> object:
    """The overall code and what remains per descriptor; or the refusal."""
    if isinstance(answer, Refusal):
        return answer
    return answer.overall, *(status.remaining for status in answer.statuses)


class TwoPartitions:
    """An engine over two partitions, with a descriptor that is counted in each."""

    def __init__(self, policy: Policy) -> None:
        self.store = RecordedCounters(partitions=2)
        self.engine = Engine(RULES, policy=policy, store=self.store)
        homes: dict[int, str] = {}
        number = 0
        while len(homes) < 2:
            text = f"k={number}"
            self.engine.ask(ask(text, addend=0))
            (home,) = self.store.calls[-1][1]
            homes.setdefault(home, text)
            number += 1
        self.here, self.there = homes[0], homes[1]
        self.engine.tallies.drain()

    def decide(self, *requests: RateLimitRequest) -> list[object]:
        return [outcome(answer) for answer in self.engine.decide(*requests)]


@pytest.fixture(params=[False, True], ids=["", "stop"])
def stops_when_over(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_a_lost_partition_refuses_those_who_need_it_and_nobody_else(stops_when_over: bool) -> None:
    both = TwoPartitions(Policy(stops_when_over=stops_when_over))
    both.store.unreachable = {1: "partition 1 is gone"}
    answers = both.decide(
        ask(both.here), ask(both.there, addend=2), ask(both.here), ask("unknown=x")
    )
    assert answers == [(OK, 2), LOST, (OK, 1), (OK, 0)]
    delta = both.engine.tallies.drain()
    assert delta.counts == {BACKEND_ERROR: 1}
    assert rule_stats(delta) == {"d.k": {"total_hits": 4, "within_limit": 2}}


def test_what_a_refused_request_has_counted_is_seen_by_those_behind_it(
    stops_when_over: bool,
) -> None:
    both = TwoPartitions(Policy(stops_when_over=stops_when_over))
    both.store.unreachable = {1: "partition 1 is gone"}
    answers = both.decide(
        ask(both.here, both.there, addend=3), ask(both.here), ask(both.here, addend=0)
    )
    assert answers == [LOST, (OVER_LIMIT, 0), (OVER_LIMIT, 0)]
    both.store.unreachable = {}
    assert both.decide(ask(both.here, addend=0)) == [(OVER_LIMIT, 0)]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (FailureMode.ALLOW, [(OK, 2, 2), (OK, 1, 2), (OVER_LIMIT, 2, 0)]),
        (FailureMode.DENY, [(OVER_LIMIT, 2, 0), (OVER_LIMIT, 1, 0), (OVER_LIMIT, 2, 0)]),
    ],
)
def test_a_lost_partition_with_a_failure_mode(
    mode: FailureMode, expected: list[object], stops_when_over: bool
) -> None:
    policy = Policy(failure_mode=mode, stops_when_over=stops_when_over, local_cache_bytes=65_536)
    both = TwoPartitions(policy)
    both.store.unreachable = {1: "partition 1 is gone"}
    one = ask(both.here, both.there)
    refund, hits = ask(both.here, is_refund=True), ask(both.there, addend=4)
    mixed = RateLimitRequest("d", refund.descriptors + hits.descriptors)
    assert both.decide(one, one, mixed) == expected
    assert both.engine.tallies.drain().counts == {BACKEND_ERROR: 3}
    assert both.engine.decider.cache is not None
    assert len(both.engine.decider.cache) == 0


def test_answers_come_in_order_and_of_the_same_length() -> None:
    engine = Engine(RULES)
    nothing = RateLimitRequest("", ())
    answers = engine.decide(ask("k=1"), nothing, ask("k=1"), nothing, ask("unknown=x"), ask("k=2"))
    assert [outcome(answer) for answer in answers] == [
        (OK, 2),
        EMPTY_DOMAIN,
        (OK, 1),
        EMPTY_DOMAIN,
        (OK, 0),
        (OK, 2),
    ]
    assert engine.tallies.drain().counts == {SERVICE_ERROR: 2}
    assert engine.decide() == []


def test_without_rules_nothing_is_decided() -> None:
    engine = Engine(None)
    assert engine.decide(ask("k=1"), RateLimitRequest("", ())) == [NOT_CONFIGURED, EMPTY_DOMAIN]
    assert engine.tallies.drain().counts == {SERVICE_ERROR: 2}


def test_hundreds_of_hits_in_one_batch() -> None:
    engine = Engine(RULES)
    request = ask(*["many=1"] * 256)
    answers = engine.decide(*[request] * 3)
    overs = [
        status.code == OVER_LIMIT
        for answer in answers
        if isinstance(answer, RateLimitDecision)
        for status in answer.statuses
    ]
    assert overs == [False] * 100 + [True] * (3 * 256 - 100)
    assert rule_stats(engine.tallies.drain())["d.many"] == {
        "total_hits": 768,
        "over_limit": 668,
        "near_limit": 20,
        "within_limit": 100,
    }


def test_equal_requests_over_their_limit_share_one_answer() -> None:
    engine = Engine(RULES)
    answers = engine.decide(*[ask("k=1")] * 5, ask("k=2"), ask("k=1"))
    left = [(OK, 2), (OK, 1), (OK, 0), (OVER_LIMIT, 0), (OVER_LIMIT, 0), (OK, 2), (OVER_LIMIT, 0)]
    assert [outcome(answer) for answer in answers] == left
    assert answers[3] is answers[4]


def test_equal_requests_in_a_row_are_counted_as_one_by_one() -> None:
    requests = [
        *[ask("many=1", "many=2")] * 3,
        *[ask("many=1", "many=1")] * 2,
        *[ask("many=1", addend=2, is_refund=True)] * 2,
        *[ask("many=1", "unknown=1")] * 2,
    ]
    together, apart = Engine(RULES), Engine(RULES)
    assert [outcome(each) for each in together.decide(*requests)] == [
        outcome(each) for request in requests for each in apart.decide(request)
    ]
    assert rule_stats(together.tallies.drain()) == rule_stats(apart.tallies.drain())


class InterruptedCounters(RecordedCounters):
    """Counters that let something happen after they have counted and before they answer."""

    interruption: Callable[[], object] | None = None

    def hit(self, batches: Mapping[int, Sequence[Hits]], now_s: int) -> PartitionAnswers:
        answers = super().hit(batches, now_s)
        interruption, self.interruption = self.interruption, None
        if interruption is not None:
            interruption()
        return answers


def test_a_refund_during_a_count_makes_the_local_cache_forget_that_count() -> None:
    store = InterruptedCounters()
    engine = Engine(RULES, policy=CACHED, store=store)
    store.interruption = lambda: engine.ask(ask("k=1", addend=3, is_refund=True))
    assert outcome(engine.ask(ask("k=1", addend=4))) == (OVER_LIMIT, 0)
    assert outcome(engine.ask(ask("k=1"))) == (OK, 1)


def test_a_refund_in_the_same_batch_does_so_too() -> None:
    engine = Engine(RULES, policy=CACHED)
    batch = [ask("k=1", addend=4), ask("k=1", addend=3, is_refund=True), ask("k=1")]
    assert [outcome(answer) for answer in engine.decide(*batch)] == [
        (OVER_LIMIT, 0),
        (OK, 2),
        (OK, 1),
    ]
    assert outcome(engine.ask(ask("k=1"))) == (OK, 0)


def test_a_refund_makes_room_for_the_hits_behind_it_in_the_batch() -> None:
    engine = Engine(RULES, policy=CACHED)
    assert outcome(engine.ask(ask("k=1", addend=4))) == (OVER_LIMIT, 0)
    batch = [ask("k=1"), ask("k=1", addend=2, is_refund=True), ask("k=1")]
    assert [outcome(answer) for answer in engine.decide(*batch)] == [
        (OVER_LIMIT, 0),
        (OK, 1),
        (OK, 0),
    ]


def test_the_time_of_a_batch_is_one_instant() -> None:
    store = InterruptedCounters()
    engine = Engine(RULES, store=store)
    store.interruption = lambda: engine.clock.advance(60)
    decision = engine.ask(ask("k=1"))
    assert decision.statuses[0].reset_s == 20
    assert outcome(engine.ask(ask("k=1"))) == (OK, 2)


class InterruptedEngine(Engine):
    """An engine that lets something happen whenever it decodes or encodes."""

    interruption: Callable[[], object] | None = None

    def _decode(self, payload: bytes) -> RateLimitRequest:
        self._interrupt()
        return super()._decode(payload)

    def _keep(self, decision: RateLimitDecision) -> bytes:
        self._interrupt()
        return super()._keep(decision)

    def _interrupt(self) -> None:
        if self.interruption is not None:
            self.interruption()


@pytest.mark.parametrize("policy", [Policy(), CACHED, Policy(stops_when_over=True)])
def test_other_batches_are_decided_while_one_is_planned_and_encoded(policy: Policy) -> None:
    engine = InterruptedEngine(RULES, policy=policy)
    others: list[object] = []
    counted: list[int] = []

    def interrupt() -> None:
        counted.append(rule_stats(engine.tallies.drain()).get("d.k", {}).get("total_hits", 0))
        engine.interruption = None
        others.extend(thread.submit(engine.decide, ask("many=1", addend=0)).result(PATIENCE_S))
        engine.interruption = interrupt

    requests = [ask(f"k={number}") for number in range(3 * HELD_REQUESTS_MAX + 1)]
    with ThreadPoolExecutor(1) as thread:
        engine.interruption = interrupt
        answers = engine.decide(*requests)
        engine.interruption = None
    assert [outcome(answer) for answer in answers] == [(OK, 2)] * len(requests)
    assert len(others) == 2 * len(requests)
    # The first answer of each share is encoded when that share alone has been judged.
    assert [hits for hits in counted if hits] == [HELD_REQUESTS_MAX] * 3 + [1]


@pytest.fixture
def _hasty_threads() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


@pytest.mark.usefixtures("_hasty_threads")
@pytest.mark.parametrize("policy", [Policy(), CACHED, Policy(stops_when_over=True)])
def test_several_threads_admit_exactly_the_limit(policy: Policy) -> None:
    engine = Engine(RULES, policy=policy, store=RecordedCounters(partitions=2))
    with ThreadPoolExecutor(4) as threads:
        batches = list(threads.map(lambda _: engine.decide(*[ask("many=1")] * 5), range(32)))
    codes = [outcome(answer) for batch in batches for answer in batch]
    remaining = sorted(code[1] for code in codes if isinstance(code, tuple) and code[0] == OK)
    assert remaining == list(range(100))
    stats = rule_stats(engine.tallies.drain())["d.many"]
    assert (stats["total_hits"], stats["within_limit"], stats["over_limit"]) == (160, 100, 60)
