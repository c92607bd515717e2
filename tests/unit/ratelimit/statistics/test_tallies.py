"""What a process counts, and what it hands on."""

import gc
import pickle

import pytest

from tollgate.actors.kernel.latencies import LATENCY_BOUNDS_S
from tollgate.actors.ratelimit.statistics import tallies as module
from tollgate.actors.ratelimit.statistics.tallies import (
    DYNAMIC_KEY_CHARS_MAX,
    OVERFLOW_DOMAIN,
    OVERFLOW_RULE,
    RULE_STATS,
    RuleTally,
    StatisticsDelta,
    Tallies,
    sanitised,
)


def hit(tallies: Tallies, tally: RuleTally, **added: int) -> None:
    """Add to a tally as the decision code does."""
    for stat, number in added.items():
        setattr(tally, stat, getattr(tally, stat) + number)
    if not tally.is_dirty:
        tallies.touch(tally)


def counts(**named: int) -> tuple[int, ...]:
    return tuple(named.get(stat, 0) for stat in RULE_STATS)


def test_a_drain_hands_on_every_stat_once() -> None:
    tallies = Tallies("front-1")
    added = {stat: position + 1 for position, stat in enumerate(RULE_STATS)}
    hit(tallies, rule := tallies.rule("d.k1_v1", is_dynamic=False), **added)

    assert tallies.drain().rules == {"d.k1_v1": (1, 2, 3, 4, 5, 6, 7)}
    assert tallies.drain().rules == {}

    hit(tallies, rule, total_hits=5, near_limit=2)
    hit(tallies, rule, total_hits=1)
    assert tallies.drain().rules == {"d.k1_v1": counts(total_hits=6, near_limit=2)}


def test_an_untouched_rule_is_not_handed_on() -> None:
    tallies = Tallies("front-1")
    rule = tallies.rule("d.k", is_dynamic=False)
    assert tallies.drain().rules == {}
    assert not rule.is_dirty


def test_a_tally_is_on_the_dirty_list_once_between_drains() -> None:
    tallies = Tallies("front-1")
    rule = tallies.rule("d.k", is_dynamic=False)
    touches = 0
    for _ in range(3):
        rule.total_hits += 1
        if not rule.is_dirty:
            touches += 1
            tallies.touch(rule)
    assert touches == 1
    tallies.drain()
    assert not rule.is_dirty


def test_an_addition_during_a_drain_is_in_that_delta_or_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread adds between the moment the flag is cleared and the reading, and after it."""
    tallies = Tallies("front-1")
    rule = tallies.rule("d.k", is_dynamic=False)
    reading = RuleTally.hand_on

    def hand_on(tally: RuleTally) -> tuple[int, ...]:
        hit(tallies, tally, total_hits=10)
        read = reading(tally)
        hit(tallies, tally, total_hits=100)
        return read

    hit(tallies, rule, total_hits=1)
    monkeypatch.setattr(RuleTally, "hand_on", hand_on)
    first = tallies.drain()
    monkeypatch.undo()
    assert first.rules == {"d.k": counts(total_hits=11)}
    assert tallies.drain().rules == {"d.k": counts(total_hits=100)}
    assert tallies.drain().rules == {}


def test_one_tally_per_key_while_somebody_holds_it() -> None:
    tallies = Tallies("front-1")
    held = tallies.rule("d.k", is_dynamic=False)
    assert tallies.rule("d.k", is_dynamic=False) is held
    assert tallies.rule("d.k", is_dynamic=True) is not held
    assert tallies.rule("d.other", is_dynamic=False) is not held


def test_a_tally_that_nobody_holds_is_handed_on_and_then_dropped() -> None:
    tallies = Tallies("front-1")
    hit(tallies, tallies.rule("d.k", is_dynamic=True), total_hits=1)
    gc.collect()
    # The plan is gone, its hits are not: the same key goes on in the same tally.
    hit(tallies, tallies.rule("d.k", is_dynamic=True), total_hits=2)
    assert tallies.drain().dynamic_rules == {"d.k": counts(total_hits=3)}
    gc.collect()
    hit(tallies, tallies.rule("d.k", is_dynamic=True), total_hits=4)
    assert tallies.drain().dynamic_rules == {"d.k": counts(total_hits=4)}


def test_dynamic_tallies_are_capped_and_configured_ones_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "DYNAMIC_TALLIES_MAX", 3)
    tallies = Tallies("front-1")
    # One of the three is the overflow tally itself.
    dynamic = [tallies.rule(f"d.user_{nr}", is_dynamic=True) for nr in range(5)]
    configured = [tallies.rule(f"d.k{nr}", is_dynamic=False) for nr in range(5)]
    assert [tally.metric_key for tally in dynamic] == [
        "d.user_0",
        "d.user_1",
        *[OVERFLOW_RULE] * 3,
    ]
    assert [tally.metric_key for tally in configured] == ["d.k0", "d.k1", "d.k2", "d.k3", "d.k4"]
    for tally in dynamic:
        hit(tallies, tally, total_hits=1)
    assert tallies.drain().dynamic_rules[OVERFLOW_RULE] == counts(total_hits=3)


def test_room_is_made_when_a_plan_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DYNAMIC_TALLIES_MAX", 2)
    tallies = Tallies("front-1")
    held = tallies.rule("d.user_0", is_dynamic=True)
    assert tallies.rule("d.user_1", is_dynamic=True).metric_key == OVERFLOW_RULE
    del held
    gc.collect()
    assert tallies.rule("d.user_1", is_dynamic=True).metric_key == "d.user_1"


def test_a_key_as_long_as_a_book_is_not_kept() -> None:
    tallies = Tallies("front-1")
    fits, too_long = "d." + "x" * (DYNAMIC_KEY_CHARS_MAX - 2), "d." + "x" * DYNAMIC_KEY_CHARS_MAX
    assert tallies.rule(fits, is_dynamic=True).metric_key == fits
    assert tallies.rule(too_long, is_dynamic=True).metric_key == OVERFLOW_RULE
    assert tallies.rule(too_long, is_dynamic=False).metric_key == too_long


def test_a_request_that_names_the_overflow_series_is_counted_there() -> None:
    tallies = Tallies("front-1")
    overflow = tallies.rule("d." + "x" * DYNAMIC_KEY_CHARS_MAX, is_dynamic=True)
    assert tallies.rule(OVERFLOW_RULE, is_dynamic=True) is overflow


def test_unknown_domains_are_counted_by_name_up_to_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNKNOWN_DOMAINS_MAX", 2)
    tallies = Tallies("front-1")
    for domain in ("a", "b", "c", "a", "d"):
        tallies.domain_not_found(domain, by=2)
    tallies.domain_not_found("x" * 5_000)
    assert tallies.drain().unknown_domains == {"a": 4, "b": 2, OVERFLOW_DOMAIN: 5}
    tallies.domain_not_found("c")
    assert tallies.drain().unknown_domains == {"c": 1}


def test_service_counters_are_handed_on_once_and_gauges_every_time() -> None:
    tallies = Tallies("front-1")
    tallies.count("ratelimit.service.config_load_success")
    tallies.count("ratelimit.service.config_load_success", 2)
    tallies.gauge("ratelimit.localcache.entryCount", 7)
    first, second = tallies.drain(), tallies.drain()
    assert first.counts == {"ratelimit.service.config_load_success": 3}
    assert second.counts == {}
    assert first.gauges == second.gauges == {"ratelimit.localcache.entryCount": 7}


def test_latencies_go_into_the_bucket_they_fit() -> None:
    tallies = Tallies("front-1")
    tallies.observe("ShouldRateLimit", 3, LATENCY_BOUNDS_S[0])
    tallies.observe("ShouldRateLimit", 2, LATENCY_BOUNDS_S[0] * 1.01)
    tallies.observe("Check", 1, 1_000.0)
    latencies = tallies.drain().latencies
    assert latencies["ShouldRateLimit"].counts[:3] == (3, 2, 0)
    assert latencies["ShouldRateLimit"].count == 5
    assert latencies["ShouldRateLimit"].sum_s == pytest.approx(LATENCY_BOUNDS_S[0] * 5.02)
    assert latencies["Check"].counts[-1] == 1
    assert tallies.drain().latencies == {}


def test_what_was_drained_is_not_drained_again() -> None:
    tallies, nothing = Tallies("front-1"), StatisticsDelta("front-1")
    assert tallies.drain() == nothing
    tallies.domain_not_found("d")
    assert tallies.drain() != nothing
    hit(tallies, tallies.rule("d.k", is_dynamic=False), total_hits=1)
    assert tallies.drain() != nothing
    assert tallies.drain() == nothing


def test_a_delta_travels() -> None:
    tallies = Tallies("front-1")
    hit(tallies, tallies.rule("d.k", is_dynamic=False), total_hits=1)
    hit(tallies, tallies.rule("d.u_1", is_dynamic=True), total_hits=1)
    tallies.domain_not_found("d")
    tallies.count("c")
    tallies.gauge("g", 1)
    tallies.observe("Check", 1, 0.1)
    delta = tallies.drain()
    assert pickle.loads(pickle.dumps(delta)) == delta


@pytest.mark.parametrize(
    ("metric_key", "name"),
    [
        ("d.path_/a.b", "d.path_/a.b"),
        ("d.host_example.com:443", "d.host_example.com_443"),
        ("d.a_x|y", "d.a_x_y"),
        ("d.remote_address_10.0.0.1", "d.remote_address_10_0_0_1"),
        ("d.cidr_192.168.100.200/24.k", "d.cidr_192_168_100_200/24.k"),
        ("d.version_1.2.3", "d.version_1.2.3"),
        ("d.v_1.2.3.4.5", "d.v_1_2_3_4.5"),
        ("d.v_1234.5.6.7", "d.v_1234_5_6_7"),
        ("d.ip_10.0.0.1.x_192.168.1.254", "d.ip_10_0_0_1.x_192_168_1_254"),
        ("d.k_wide*", "d.k_wide*"),
        ("d.k_ünïcode", "d.k_ünïcode"),
        ("d.k_a\nb\x7fc\ud800d", "d.k_a_b_c_d"),
    ],
)
def test_metric_keys_are_made_fit_for_names(metric_key: str, name: str) -> None:
    assert sanitised(metric_key) == name
    assert sanitised(name) == name
    tally = Tallies("front-1").rule(metric_key, is_dynamic=True)
    assert tally.metric_key == name
