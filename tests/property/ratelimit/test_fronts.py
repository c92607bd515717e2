"""However the calls of several fronts mix: no window admits more than its limit, no hit is lost."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from threading import Semaphore

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.engine import Engine, PartitionAnswers, entries, rules_from
from tollgate.actors.ratelimit.counting.counters import (
    EXPIRY_GRACE_S,
    Conditional,
    Hits,
    LimitedHits,
    LocalCounters,
)
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.decision.response import OK, RateLimitDecision, Status
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest

RULES = rules_from("""
domain: d
descriptors:
  - {key: a, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: b, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: files, value: f*, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 7}}
""")
FRONTS = 3
DESCRIPTORS = st.builds(
    RateLimitDescriptor,
    st.sampled_from(["a=1", "b=1", "b=2", "files=f1", "files=f2"]).map(entries),
    hits_addend=st.sampled_from([None, None, 0, 2, 3]),
)
REQUESTS = st.builds(
    RateLimitRequest, st.just("d"), st.lists(DESCRIPTORS, min_size=1, max_size=3).map(tuple)
)
# What each front is asked, one batch after another, after some seconds have passed.
SCENES = st.tuples(
    st.sampled_from([0, 1, 1, 30]),
    st.lists(
        st.lists(st.lists(REQUESTS, min_size=1, max_size=3), max_size=2),
        min_size=FRONTS,
        max_size=FRONTS,
    ),
)
Scene = tuple[int, list[list[list[RateLimitRequest]]]]


class Stage:
    """Threads that move one at a time: whose turn it is comes from a list, not from chance."""

    def __init__(self, order: Iterator[int]) -> None:
        self._order = order
        self._entrances: list[Semaphore] = []
        self._is_still = Semaphore(0)
        self._gone: list[int] = []

    def play(self, parts: Sequence[Callable[[], None]]) -> None:
        """Run all parts to their ends."""
        self._entrances = [Semaphore(0) for _ in parts]
        self._gone = []
        with ThreadPoolExecutor(len(parts)) as threads:
            runs = []
            for actor, part in enumerate(parts):
                runs.append(threads.submit(self._run, actor, part))
                self._is_still.acquire()
            there = list(range(len(parts)))
            while there:
                actor = there[next(self._order) % len(there)]
                self._entrances[actor].release()
                self._is_still.acquire()
                there = [each for each in there if each not in self._gone]
        for run in runs:
            run.result()

    def wait_for_turn(self, actor: int) -> None:
        self._is_still.release()
        self._entrances[actor].acquire()

    def _run(self, actor: int, part: Callable[[], None]) -> None:
        self.wait_for_turn(actor)
        try:
            part()
        finally:
            self._gone.append(actor)
            self._is_still.release()


class StagedCounters:
    """One front's way to the shared counters: others may go first before every single call."""

    def __init__(self, counters: LocalCounters, stage: Stage, front: int) -> None:
        self._counters = counters
        self._stage = stage
        self._front = front
        self.partitions = counters.partitions

    def hit(self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int) -> PartitionAnswers:
        answers: PartitionAnswers = {}
        for partition, batch in batches.items():
            self._stage.wait_for_turn(self._front)
            answers |= self._counters.hit({partition: batch}, now_s)
        return answers

    def hit_conditionally(
        self, batches: Mapping[int, Sequence[Conditional]], now_s: int
    ) -> PartitionAnswers:
        answers: PartitionAnswers = {}
        for partition, batch in batches.items():
            self._stage.wait_for_turn(self._front)
            answers |= self._counters.hit_conditionally({partition: batch}, now_s)
        return answers


class Fronts:
    """Several engines over shared counters; their clocks lag behind the true time by `lags_s`."""

    def __init__(
        self, policy: Policy, partitions: int, lags_s: Sequence[int], order: Iterator[int]
    ) -> None:
        self.counters = LocalCounters(partitions)
        self.decided: list[tuple[int, RateLimitDecision]] = []
        self._stage = Stage(order)
        self._engines = [
            Engine(
                RULES,
                policy=policy,
                store=StagedCounters(self.counters, self._stage, front),
                clock=ManualClock(1_000_000 - lag_s),
            )
            for front, lag_s in enumerate(lags_s)
        ]

    def play(self, scene: Scene) -> None:
        wait_s, scripts = scene
        for engine in self._engines:
            engine.clock.advance(wait_s)
        self._stage.play(
            [
                lambda engine=engine, script=script: self._ask(engine, script)  # type: ignore[misc]
                for engine, script in zip(self._engines, scripts, strict=True)
            ]
        )

    def _ask(self, engine: Engine, script: list[list[RateLimitRequest]]) -> None:
        for batch in script:
            for answer in engine.decide(*batch):
                assert isinstance(answer, RateLimitDecision)
                self.decided.append((int(engine.clock.now_s()), answer))


def hits_by_window(
    fronts: Fronts, is_counted: Callable[[RateLimitDecision, Status], bool]
) -> Counter[tuple[bytes, int, int]]:
    """Hits by (counter, end of its window, limit)."""
    hits: Counter[tuple[bytes, int, int]] = Counter()
    for now_s, decision in fronts.decided:
        for status in decision.statuses:
            assert status.hit is not None
            if is_counted(decision, status):
                window = (status.hit.key, now_s + status.reset_s, status.hit.limit)
                hits[window] += status.hit.addend
    return hits


LAGS = st.lists(st.integers(0, EXPIRY_GRACE_S), min_size=FRONTS, max_size=FRONTS)
ORDERS = st.lists(st.integers(0, FRONTS - 1), min_size=1, max_size=30)


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(SCENES, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([0, 65_536]),
    st.integers(1, 3),
    LAGS,
    ORDERS,
)
def test_no_window_admits_more_than_its_limit(
    scenes: list[Scene],
    stops_when_over: bool,
    cache_bytes: int,
    partitions: int,
    lags_s: list[int],
    order: list[int],
) -> None:
    policy = Policy(stops_when_over=stops_when_over, local_cache_bytes=cache_bytes)
    fronts = Fronts(policy, partitions, lags_s, cycle(order))
    for scene in scenes:
        fronts.play(scene)
    # With hits held back, only a request that is within all its limits was admitted.
    admitted = hits_by_window(
        fronts,
        lambda decision, status: (decision.overall if stops_when_over else status.code) == OK,
    )
    assert all(hits <= limit for (_, _, limit), hits in admitted.items())


@given(st.lists(SCENES, min_size=1, max_size=3), st.integers(1, 3), ORDERS)
def test_no_hit_is_lost_or_counted_twice(
    scenes: list[Scene], partitions: int, order: list[int]
) -> None:
    fronts = Fronts(Policy(), partitions, [0] * FRONTS, cycle(order))
    for scene in scenes:
        fronts.play(scene)
    now_s = 1_000_000 + sum(wait_s for wait_s, _ in scenes)
    asked = hits_by_window(fronts, lambda *_: True)
    for (key, end_s, _), hits in asked.items():
        if end_s > now_s:
            look = [Hits(end_s, [key], [0])]
            counts = [table.hit(look, now_s)[0][0] for table in fronts.counters.tables]
            assert sum(counts) == max(counts) == hits
