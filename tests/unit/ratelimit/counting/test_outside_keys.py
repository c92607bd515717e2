"""Counters in outside stores have the reference's names, byte for byte (B6)."""

import pytest

from tests.support.ratelimit.engine import Engine, RecordedCounters, entries
from tollgate.actors.ratelimit.counting.routes import per_second_apart, spread_over
from tollgate.actors.ratelimit.counting.windows import Unit, Window, window_at
from tollgate.actors.ratelimit.decision.counter_keys import (
    OutsideKeyForm,
    counter_name,
    window_ending,
)
from tollgate.actors.ratelimit.decision.policy import Policy
from tollgate.actors.ratelimit.rules.descriptors import RateLimitDescriptor, RateLimitRequest

RULES = """\
domain: domain
descriptors:
  - {key: key, value: value, rate_limit: {unit: second, requests_per_unit: 10}}
  - {key: key2, rate_limit: {unit: minute, requests_per_unit: 10}}
  - key: key3
    value: value3
    rate_limit: {unit: hour, requests_per_unit: 10}
    descriptors:
      - {key: subkey3, value: subvalue3, rate_limit: {unit: day, requests_per_unit: 10}}
  - key: files
    value: files/*
    share_threshold: true
    rate_limit: {unit: second, requests_per_unit: 10}
  - key: parent
    descriptors:
      - key: files
        value: nested/*
        share_threshold: true
        rate_limit: {unit: second, requests_per_unit: 10}
  - key: files
    value: top/*
    share_threshold: true
    descriptors:
      - key: files
        value: nested/*
        share_threshold: true
        rate_limit: {unit: second, requests_per_unit: 10}
  - {key: open, value: a*, rate_limit: {unit: second, requests_per_unit: 10}}
"""


@pytest.mark.parametrize(
    ("asked", "now_s", "prefix", "name"),
    [
        ("key=value", 1234, "", b"domain_key_value_1234"),
        ("key=value", 1234, "prefix:", b"prefix:domain_key_value_1234"),
        ("key2=any", 1234, "", b"domain_key2_any_1200"),
        ("key2=", 1234, "", b"domain_key2__1200"),
        ("key2=é", 1234, "", "domain_key2_é_1200".encode()),
        ("key3=value3", 1_000_000, "", b"domain_key3_value3_997200"),
        (
            "key3=value3,subkey3=subvalue3",
            1_000_000,
            "",
            b"domain_key3_value3_subkey3_subvalue3_950400",
        ),
        ("files=files/a.pdf", 1234, "", b"domain_files_files/*_1234"),
        ("parent=value1,files=nested/x", 1234, "", b"domain_parent_value1_files_nested/*_1234"),
        ("files=top/1,files=nested/2", 1234, "", b"domain_files_top/*_files_nested/*_1234"),
        ("open=abc", 1234, "", b"domain_open_abc_1234"),
    ],
)
def test_a_counter_has_the_references_name(
    asked: str, now_s: int, prefix: str, name: bytes
) -> None:
    policy = Policy(has_outside_counters=True, counter_key_prefix=prefix)
    engine = Engine(RULES, policy=policy, store=RecordedCounters())
    engine.clock.set(now_s)
    engine.ask(RateLimitRequest("domain", (RateLimitDescriptor(entries(asked)),)))
    assert isinstance(engine.store, RecordedCounters)
    ((_, batches),) = engine.store.calls
    ((hits,),) = batches.values()
    (key,) = hits.keys
    assert isinstance(hits.end_s, int)
    window = window_ending(key, hits.end_s, has_calendar_months=False)
    assert counter_name(key, window.start_s) == name


def test_a_key_is_the_same_whether_values_are_known_before_or_filled_in() -> None:
    pairs = entries("a=b,c=,d=é")
    filled_in = OutsideKeyForm("p", "d", [(key, None) for key, _ in pairs], Unit.DAY).key(pairs)
    assert filled_in == OutsideKeyForm("p", "d", pairs, Unit.DAY).key(())
    assert filled_in == "4|pd_a_b_c__d_é_".encode()
    mixed = [("a", "b"), ("c", None), ("d", "é")]
    assert OutsideKeyForm("p", "d", mixed, Unit.DAY).key(pairs) == filled_in
    assert OutsideKeyForm("", "d", (), Unit.DAY).key(()) == b"4|d_"


def test_counters_of_two_units_have_keys_of_their_own() -> None:
    keys = {OutsideKeyForm("", "d", (), unit).key(()) for unit in Unit}
    assert len(keys) == len(Unit)


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("has_calendar_months", [False, True])
@pytest.mark.parametrize("now_s", [0, 1_000_000, 1_709_164_800])
def test_a_window_follows_from_its_end(unit: Unit, has_calendar_months: bool, now_s: int) -> None:
    window = window_at(unit, now_s, has_calendar_months=has_calendar_months)
    key = OutsideKeyForm("", "d", (), unit).key(())
    found = window_ending(key, window.end_s, has_calendar_months=has_calendar_months)
    assert found == window


def test_a_calendar_month_begins_on_its_first_day() -> None:
    key = OutsideKeyForm("", "d", (), Unit.MONTH).key(())
    march = Window(1_709_251_200, 1_711_929_600)
    assert window_ending(key, march.end_s, has_calendar_months=True) == march


def test_routes() -> None:
    assert [per_second_apart(b"k", unit) for unit in (Unit.SECOND, Unit.MINUTE, Unit.YEAR)] == [
        *(1, 0, 0)
    ]
    spread = spread_over(3)
    assert {spread(b"%d" % number, Unit.DAY) for number in range(50)} == {0, 1, 2}
    assert spread_over(1)(b"k", Unit.DAY) == 0


def test_a_hit_goes_where_its_route_leads() -> None:
    store = RecordedCounters(partitions=2)
    engine = Engine(
        RULES, policy=Policy(has_outside_counters=True), store=store, route=per_second_apart
    )
    asked = [RateLimitDescriptor(entries(text)) for text in ("key=value", "key2=any")]
    engine.ask(RateLimitRequest("domain", tuple(asked)))
    ((_, batches),) = store.calls
    assert {number: [len(hits.keys) for hits in batch] for number, batch in batches.items()} == {
        0: [1],
        1: [1],
    }
