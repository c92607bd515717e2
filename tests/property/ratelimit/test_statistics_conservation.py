"""Whatever is counted is shown: once, whichever way it travelled."""

import threading
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.statistics.tallies import (
    RULE_STATS,
    RULES_PREFIX,
    StatisticsDelta,
    Tallies,
)
from tollgate.actors.ratelimit.statistics.totals import DYNAMIC_SERIES_IDLE_S, CappedSeries, Totals

PROCESSES = 3
STATS = st.sampled_from(RULE_STATS)
# Few names, so that they meet: in both kinds, and after what held them was dropped.
KEYS = st.sampled_from(["d.a", "d.b", "d.a.b", "d.10.0.0.1", "d.10_0_0_1"])

FRONTS = st.integers(0, PROCESSES - 1)
NUMBERS = st.integers(1, 9)
STEPS = st.one_of(
    st.tuples(
        st.sampled_from(["hit", "hit and hold"]), FRONTS, KEYS, st.booleans(), STATS, NUMBERS
    ),
    st.tuples(st.sampled_from(["domain", "count"]), FRONTS, KEYS, NUMBERS),
    st.tuples(st.sampled_from(["drain", "restart"]), FRONTS),
)


@given(st.lists(STEPS, max_size=80))
def test_the_deltas_of_any_drains_add_up_to_what_was_counted(steps: list[tuple]) -> None:
    totals, expected = Totals(), Counter()
    fronts = [Tallies(f"front-{nr}") for nr in range(PROCESSES)]
    held = []
    for what, nr, *arguments in steps:
        front = fronts[nr]
        match what:
            case "hit" | "hit and hold":
                key, is_dynamic, stat, by = arguments
                tally = front.rule(key, is_dynamic)
                setattr(tally, stat, getattr(tally, stat) + by)
                if not tally.is_dirty:
                    front.touch(tally)
                expected[f"{RULES_PREFIX}{tally.metric_key}.{stat}"] += by
                if what == "hit and hold":
                    held.append(tally)
            case "domain":
                key, by = arguments
                front.domain_not_found(key, by)
                name = "d.10_0_0_1" if "10" in key else key
                expected[f"{RULES_PREFIX}{name}.domain_not_found"] += by
            case "count":
                key, by = arguments
                front.count(key, by)
                expected[key] += by
            case "drain" | "restart":
                totals.absorb(front.drain(), 0.0)
                if what == "restart":
                    fronts[nr] = Tallies(f"front-{nr}")
    for front in fronts:
        totals.absorb(front.drain(), 0.0)
    counted = {name: number for name, number in totals.counters().items() if number}
    assert counted == {name: number for name, number in expected.items() if number}
    assert all(front.drain() == StatisticsDelta(front.source) for front in fronts)


@given(
    st.integers(0, 5),
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 9)), max_size=60),
)
def test_the_cap_is_never_exceeded_and_the_overflow_loses_nothing(
    series_max: int, additions: list[tuple[str, int]]
) -> None:
    series = CappedSeries(series_max=series_max, width=1, overflow_name="_overflow")
    for name, by in additions:
        series.add(name, (by,), 0.0)
        assert len(series) <= series_max
    assert sum(each.counts[0] for _, each in series.values()) == sum(by for _, by in additions)


@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 9), st.floats(0, 3_000)), max_size=60
    ),
)
def test_expiry_forgets_only_the_idle(
    series_max: int, additions: list[tuple[str, int, float]]
) -> None:
    """Against a model that looks at every series every time."""
    totals = Totals(dynamic_series_max=series_max)
    model: dict[str, tuple[int, float]] = {}
    overflow = 0
    now_s = 0.0
    for name, by, passed_s in additions:
        now_s += passed_s
        model = {
            each: (hits, touched_s)
            for each, (hits, touched_s) in model.items()
            if now_s - touched_s < DYNAMIC_SERIES_IDLE_S
        }
        if name in model or len(model) < series_max:
            model[name] = (model.get(name, (0, 0))[0] + by, now_s)
        else:
            overflow += by
        counts = (by, *[0] * (len(RULE_STATS) - 1))
        totals.absorb(StatisticsDelta("front-1", {}, {name: counts}, {}, {}, {}, {}), now_s)

        shown = {
            each.removeprefix(RULES_PREFIX).removesuffix(".total_hits"): number
            for each, number in totals.counters().items()
            if each.endswith(".total_hits")
        }
        assert shown.pop("_overflow.dynamic_series", 0) == overflow
        assert shown == {each: hits for each, (hits, _) in model.items()}


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_drains_in_another_thread_lose_nothing(hits_per_rule: list[int]) -> None:
    """One thread decides while another drains, as in a front."""
    front, totals = Tallies("front-1"), Totals()
    is_done = threading.Event()

    def drain() -> None:
        while not is_done.is_set():
            totals.absorb(front.drain(), 0.0)

    drainer = threading.Thread(target=drain)
    drainer.start()
    try:
        for nr, hits in enumerate(hits_per_rule):
            for _ in range(hits):
                tally = front.rule(f"d.k{nr}", is_dynamic=True)
                tally.total_hits += 1
                if not tally.is_dirty:
                    front.touch(tally)
                front.count("calls")
                front.observe("ShouldRateLimit", 1, 0.001)
    finally:
        is_done.set()
        drainer.join()
    totals.absorb(front.drain(), 0.0)
    counters = totals.counters()
    assert [counters[f"{RULES_PREFIX}d.k{nr}.total_hits"] for nr in range(len(hits_per_rule))] == (
        hits_per_rule
    )
    assert counters["calls"] == sum(hits_per_rule)
    assert totals.latencies()["ShouldRateLimit"].count == sum(hits_per_rule)
