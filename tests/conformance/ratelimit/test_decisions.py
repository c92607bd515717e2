"""The cases of counting and deciding: docs/ratelimit.md, 3C to 3E, parts of 3B, 3F and 3G."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.ratelimit.decision_cases import (
    Case,
    Stats,
    Step,
    answered,
    cases,
    counted,
    expected_stats,
    request,
    summed,
)
from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tests.support.ratelimit.engine import Engine, RecordedCounters, rules_from
from tollgate.actors.ratelimit.counting.counters import CounterStore
from tollgate.actors.ratelimit.counting.routes import Route
from tollgate.actors.ratelimit.decision.plan import Refusal
from tollgate.actors.ratelimit.decision.policy import Policy

CASES = list(cases(Path(__file__).with_name("decisions")))


class Run:
    """One case being run."""

    def __init__(
        self,
        case: Case,
        store: CounterStore,
        clock: ManualClock | None = None,
        route: Route | None = None,
    ) -> None:
        self._store = store
        self._engine = Engine(case.rules, policy=case.policy, store=store, clock=clock, route=route)
        self._total: Stats = {}

    def step(self, step: Step) -> None:
        if "at" in step:
            self.go_to(step["at"])
        if "store" in step:
            self.lose(step["store"])
        if "reload" in step:
            self._engine.use(step["reload"])
        if "preload" in step:
            self._engine.decide(request(step["preload"]))
            self._engine.tallies.drain()
            self._total = {}
        answers = step.get("answers", [step.get("answer")] * step.get("times", 1))
        for answer in answers if "ask" in step else ():
            self._ask(step, answer)
        if "total" in step:
            assert self._total == expected_stats(step["total"])
        if "cache" in step:
            self._check_cache(step["cache"])

    def go_to(self, now_s: float) -> None:
        self._engine.clock.set(now_s)

    def lose(self, error: str) -> None:
        """Every partition is out of reach from here on, or none."""
        assert isinstance(self._store, RecordedCounters)
        every = range(self._store.partitions if error else 0)
        self._store.unreachable = dict.fromkeys(every, error)

    def _ask(self, step: Step, expected: str) -> None:
        (answer,) = self._engine.decide(request(step["ask"]))
        assert answered(answer, expected) == expected
        delta = self._engine.tallies.drain()
        services = {name.rpartition(".")[2]: by for name, by in delta.counts.items()}
        assert services == step.get("service", {})
        stats = counted(delta)
        self._total = summed(self._total, stats)
        if "deltas" in step:
            assert stats == expected_stats(step["deltas"])
        if "headers" in step:
            assert not isinstance(answer, Refusal)
            assert list(answer.headers) == list(step["headers"].items())
        if "metadata" in step:
            assert not isinstance(answer, Refusal)
            assert answer.metadata == step["metadata"]

    def _check_cache(self, expected: Mapping[str, Any]) -> None:
        cache = self._engine.decider.cache
        assert cache is not None
        gauges = {"entries": len(cache)} | {
            name: getattr(cache.gauges, f"{name}_count") for name in expected if name != "entries"
        }
        assert gauges == expected


class LentRun(Run):
    """A case that a front runs with what it borrows."""

    def __init__(self, case: Case, partitions: int) -> None:
        self._branch = Branch(ManualClock(1_000_000), partitions=partitions)
        (front,) = self._branch.fronts
        super().__init__(case, front, self._branch.clock)
        self._branch.exchange()

    def go_to(self, now_s: float) -> None:
        clock = self._branch.clock
        if now_s >= clock.now_s():
            self._branch.rest(now_s - clock.now_s())
        clock.turn(now_s - clock.now_s())  # (back in time, for the time of day alone)
        self._branch.rest(0)


@pytest.mark.parametrize("partitions", [1, 3], ids=["1 partition", "3 partitions"])
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_answers_are_those_of_the_case(case: Case, partitions: int) -> None:
    run = Run(case, RecordedCounters(partitions))
    for step in case.steps:
        run.step(step)


# Who borrows goes on deciding when the partitions are away: that is told elsewhere.
LENT_CASES = [case for case in CASES if not any("store" in step for step in case.steps)]


@pytest.mark.parametrize("partitions", [1, 3], ids=["1 partition", "3 partitions"])
@pytest.mark.parametrize("case", LENT_CASES, ids=[case.id for case in LENT_CASES])
def test_borrowed_counters_answer_as_the_case_says(case: Case, partitions: int) -> None:
    run = LentRun(case, partitions)
    for step in case.steps:
        run.step(step)


def test_e30_rule_metadata_is_never_changed() -> None:
    """The case E23 a thousand times, from several threads, with more to merge."""
    rules = rules_from("""
domain: d
descriptors:
  - {key: a, rate_limit: {unit: day, requests_per_unit: 9999}, metadata: {in: {a: 1, list: [1]}}}
  - {key: b, rate_limit: {unit: day, requests_per_unit: 9999}, metadata: {in: {b: 2}, b: {c: 3}}}
""")
    before = deepcopy(rules)
    engine = Engine(
        rules, policy=Policy(has_dynamic_metadata=True), store=RecordedCounters(partitions=2)
    )
    asked = request("d [a=v] [b=v]")
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: engine.ask(asked), range(1_000)))
    merged = {"in": {"a": 1, "list": [1], "b": 2}, "b": {"c": 3}}
    assert all(answer.metadata and answer.metadata["metadata"] == merged for answer in answers)
    assert rules == before


def test_no_two_cases_have_one_id() -> None:
    ids = [case.id for case in CASES]
    assert sorted(set(ids)) == sorted(ids)
