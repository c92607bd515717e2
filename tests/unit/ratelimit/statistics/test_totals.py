"""The sum of what all processes count: names, caps, expiry, processes that come and go."""

from collections.abc import Mapping

from tollgate.actors.kernel.latencies import LatencyTally
from tollgate.actors.ratelimit.statistics.tallies import RULE_STATS, StatisticsDelta, Tallies
from tollgate.actors.ratelimit.statistics.totals import (
    DYNAMIC_SERIES_IDLE_S,
    SERVICE_COUNTERS,
    SOURCE_SILENCE_S,
    Totals,
)

RULES = "ratelimit.service.rate_limit."


def delta(
    source: str = "front-1",
    *,
    rules: Mapping[str, int] | None = None,
    dynamic_rules: Mapping[str, int] | None = None,
    unknown_domains: Mapping[str, int] | None = None,
    counts: Mapping[str, int] | None = None,
    gauges: Mapping[str, float] | None = None,
) -> StatisticsDelta:
    """A delta whose rules were hit, within their limits."""
    return StatisticsDelta(
        source=source,
        rules={key: within_limit(hits) for key, hits in (rules or {}).items()},
        dynamic_rules={key: within_limit(hits) for key, hits in (dynamic_rules or {}).items()},
        unknown_domains=unknown_domains or {},
        counts=counts or {},
        gauges=gauges or {},
        latencies={},
    )


def within_limit(hits: int) -> tuple[int, ...]:
    return tuple(hits if stat in ("total_hits", "within_limit") else 0 for stat in RULE_STATS)


def hits_by_rule(totals: Totals) -> dict[str, int]:
    return {
        name.removeprefix(RULES).removesuffix(".total_hits"): number
        for name, number in totals.counters().items()
        if name.endswith(".total_hits")
    }


def test_service_counters_are_there_from_the_start() -> None:
    assert Totals().counters() == dict.fromkeys(SERVICE_COUNTERS, 0)


def test_deltas_of_all_processes_are_summed() -> None:
    totals = Totals()
    totals.absorb(delta("front-1", rules={"d.k": 3}, counts={"errors": 1}), 0.0)
    totals.absorb(delta("front-2", rules={"d.k": 4}, counts={"errors": 2}), 0.0)
    counters = totals.counters()
    assert counters[f"{RULES}d.k.total_hits"] == 7
    assert counters[f"{RULES}d.k.within_limit"] == 7
    assert counters["errors"] == 3


def test_a_rule_shows_its_stats_at_zero_but_rare_ones_only_once_counted() -> None:
    totals = Totals()
    totals.absorb(delta(rules={"d.k": 1}), 0.0)
    shown = {name.rpartition(".")[2] for name in totals.counters() if name.startswith(RULES)}
    assert shown == set(RULE_STATS) - {"over_limit_with_local_cache", "total_negative_hits"}

    rare = StatisticsDelta("front-1", {"d.k": (0, 0, 0, 0, 0, 2, 3)}, {}, {}, {}, {}, {})
    totals.absorb(rare, 0.0)
    assert totals.counters()[f"{RULES}d.k.over_limit_with_local_cache"] == 2
    assert totals.counters()[f"{RULES}d.k.total_negative_hits"] == 3


def test_a_process_that_restarts_takes_nothing_back() -> None:
    totals = Totals()
    for _ in range(2):
        front = Tallies("front-1")
        rule = front.rule("d.k", is_dynamic=False)
        rule.total_hits += 5
        front.touch(rule)
        totals.absorb(front.drain(), 0.0)
    assert hits_by_rule(totals) == {"d.k": 10}


def test_dynamic_series_beyond_the_cap_share_one_that_overflows() -> None:
    totals = Totals(dynamic_series_max=2)
    totals.absorb(delta(dynamic_rules={"d.u_1": 1, "d.u_2": 2, "d.u_3": 4, "d.u_4": 8}), 0.0)
    totals.absorb(delta(dynamic_rules={"d.u_2": 16, "d.u_4": 32}), 0.0)
    assert hits_by_rule(totals) == {"d.u_1": 1, "d.u_2": 18, "_overflow.dynamic_series": 44}


def test_configured_rules_are_not_capped() -> None:
    totals = Totals(dynamic_series_max=2)
    totals.absorb(delta(rules={f"d.k{nr}": 1 for nr in range(50)}), 0.0)
    assert len(hits_by_rule(totals)) == 50


def test_what_a_process_had_to_put_into_its_overflow_joins_ours() -> None:
    totals = Totals(dynamic_series_max=1)
    totals.absorb(delta(dynamic_rules={"_overflow.dynamic_series": 1}), 0.0)
    totals.absorb(delta(dynamic_rules={"d.u_1": 2}), 0.0)
    assert hits_by_rule(totals) == {"d.u_1": 2, "_overflow.dynamic_series": 1}


def test_unknown_domains_are_capped_as_well() -> None:
    totals = Totals(dynamic_series_max=1)
    totals.absorb(delta(unknown_domains={"a": 1, "b": 2, "c": 3}), 0.0)
    counters = totals.counters()
    assert counters[f"{RULES}a.domain_not_found"] == 1
    assert counters[f"{RULES}_overflow.domain_not_found"] == 5
    assert f"{RULES}b.domain_not_found" not in counters


def test_an_idle_dynamic_series_is_forgotten_and_makes_room() -> None:
    totals = Totals(dynamic_series_max=2)
    totals.absorb(delta(dynamic_rules={"d.u_1": 1, "d.u_2": 2}, unknown_domains={"a": 1}), 0.0)
    totals.absorb(delta(dynamic_rules={"d.u_2": 4}), 1.0)
    totals.absorb(delta(dynamic_rules={"d.u_3": 8}), DYNAMIC_SERIES_IDLE_S)
    assert hits_by_rule(totals) == {"d.u_2": 6, "d.u_3": 8}
    assert f"{RULES}a.domain_not_found" not in totals.counters()


def test_a_configured_rule_is_never_forgotten() -> None:
    totals = Totals()
    totals.absorb(delta(rules={"d.k": 1}), 0.0)
    totals.absorb(delta(), DYNAMIC_SERIES_IDLE_S * 10)
    assert hits_by_rule(totals) == {"d.k": 1}


def test_an_override_under_the_key_of_a_rule_counts_as_the_rule() -> None:
    totals = Totals(dynamic_series_max=1)
    totals.absorb(delta(dynamic_rules={"d.k_v": 1}), 0.0)
    totals.absorb(delta(rules={"d.k_v": 2}), 0.0)
    totals.absorb(delta(dynamic_rules={"d.k_v": 4, "d.u_1": 8}), 0.0)
    assert hits_by_rule(totals) == {"d.k_v": 7, "d.u_1": 8}


def test_of_ages_the_oldest_is_shown() -> None:
    totals = Totals()
    for process, age_s in (("one", 3.0), ("two", 5.0), ("three", 4.0)):
        totals.absorb(delta(process, gauges={"rates.age_seconds": age_s}), 0.0)
    assert totals.gauges() == {"rates.age_seconds": 5.0}


def test_gauges_are_summed_over_the_processes_that_are_heard_from() -> None:
    totals = Totals()
    totals.absorb(delta("front-1", gauges={"entries": 3}), 0.0)
    totals.absorb(delta("front-2", gauges={"entries": 4}), 0.0)
    assert totals.gauges() == {"entries": 7}
    totals.absorb(delta("front-1", gauges={"entries": 5}), SOURCE_SILENCE_S - 1)
    assert totals.gauges() == {"entries": 9}
    totals.absorb(delta("front-1", gauges={"entries": 5}), SOURCE_SILENCE_S)
    assert totals.gauges() == {"entries": 5}


def test_latencies_are_summed_by_method() -> None:
    totals = Totals()
    for seconds in (0.001, 0.001, 0.3):
        front = Tallies("front-1")
        front.observe("ShouldRateLimit", 2, seconds)
        totals.absorb(front.drain(), 0.0)
    expected = LatencyTally()
    expected.observe(4, 0.001)
    expected.observe(2, 0.3)
    assert totals.latencies()["ShouldRateLimit"].counts == expected.value().counts


def test_statistics_stay_as_they_were_when_more_comes_in() -> None:
    totals = Totals()
    totals.absorb(delta(rules={"d.k": 1}, gauges={"entries": 1}), 0.0)
    before = totals.statistics()
    totals.absorb(delta(rules={"d.k": 1}, gauges={"entries": 9}), 0.0)
    assert before.counters[f"{RULES}d.k.total_hits"] == 1
    assert before.gauges == {"entries": 1}
