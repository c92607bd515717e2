"""The bounds of a counter table. What it counts is in property/ratelimit/test_counters.py."""

import pytest

from tollgate.actors.ratelimit.counting import counters
from tollgate.actors.ratelimit.counting.counters import (
    EXPIRY_GRACE_S,
    FULL,
    Conditional,
    CounterTable,
    Hits,
)

END_S = 120


def hit(table: CounterTable, now_s: int, end_s: int, *keys: bytes, by: int = 1) -> list[int]:
    return table.hit([Hits(end_s, list(keys), [by] * len(keys))], now_s)[0]


def keys(prefix: str, count: int) -> list[bytes]:
    return [f"{prefix}{number}".encode() for number in range(count)]


def test_a_window_goes_when_clocks_that_lag_have_left_it_too() -> None:
    table = CounterTable()
    hit(table, 100, END_S, b"k")
    assert hit(table, END_S + EXPIRY_GRACE_S - 1, END_S, b"k") == [2]
    hit(table, END_S + EXPIRY_GRACE_S, END_S + 60)
    assert len(table) == 0


def test_looking_and_giving_back_make_no_counter() -> None:
    table = CounterTable()
    assert hit(table, 100, END_S, b"k", by=0) == [0]
    assert hit(table, 100, END_S, b"k", by=-3) == [0]
    assert len(table) == 0


def test_the_same_key_in_two_windows_is_two_counters() -> None:
    table = CounterTable()
    assert hit(table, 119, 120, b"k") == [1]
    assert hit(table, 120, 180, b"k") == [1]
    assert hit(table, 119, 120, b"k") == [2]
    assert len(table) == 2


def test_ended_windows_are_freed_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "FREED_PER_CALL_MAX", 10)
    table = CounterTable()
    hit(table, 100, 120, *keys("a", 25))
    hit(table, 100, 180, *keys("b", 3))
    sizes = []
    for _ in range(4):
        hit(table, 130, 180, b"look", by=0)
        sizes.append(len(table))
    assert sizes == [18, 8, 3, 3]
    assert hit(table, 130, 180, b"b0") == [2]
    assert table.evicted == 0


def test_several_ended_windows_share_the_freeing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "FREED_PER_CALL_MAX", 10)
    table = CounterTable()
    hit(table, 100, 101, *keys("a", 4))
    hit(table, 100, 102)
    hit(table, 100, 103, *keys("c", 4))
    hit(table, 100, 104, *keys("d", 4))
    hit(table, 110, 180, b"k")
    assert len(table) == 3
    hit(table, 110, 180, b"k")
    assert len(table) == 1


def test_what_ended_goes_first_when_the_table_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "FREED_PER_CALL_MAX", 1)
    table = CounterTable(counters_max=10)
    hit(table, 100, 120, *keys("a", 6))
    hit(table, 100, 180, *keys("b", 4))
    hit(table, 130, 180, *keys("c", 6))
    assert len(table) == 10
    assert table.evicted == 0
    assert hit(table, 130, 180, *keys("b", 4), by=0) == [1] * 4
    assert hit(table, 130, 180, *keys("c", 6), by=0) == [1] * 6


def test_then_what_was_not_used_for_longest_whatever_its_window() -> None:
    table = CounterTable(counters_max=16)
    hit(table, 100, 180, *keys("late", 8))
    hit(table, 100, 120, *keys("soon", 8))
    hit(table, 100, 180, *keys("late", 6))
    hit(table, 100, 180, *keys("new", 4))
    assert (table.evicted, len(table)) == (4, 16)
    found = {key for key in [*keys("late", 8), *keys("new", 4)] if table.count(180, key)}
    assert found >= {*keys("late", 6), *keys("new", 4)}
    assert table.count(180, b"late0") == 2


def test_looks_are_use_too() -> None:
    table = CounterTable(counters_max=8)
    hit(table, 100, 180, *keys("k", 8))
    assert hit(table, 100, 180, b"k0", by=0) == [1]
    hit(table, 100, 180, *keys("new", 2))
    assert table.count(180, b"k0") == 1


def test_generations_beyond_their_number_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "GENERATIONS", 2)
    monkeypatch.setattr(counters, "FREED_PER_CALL_MAX", 2)
    table = CounterTable(counters_max=12)
    for start in range(0, 12, 3):
        hit(table, 100, 180, *[b"k%d" % number for number in range(start, start + 3)])
    for _ in range(8):
        hit(table, 100, 180)
    assert len(table._generations) == 2
    assert hit(table, 100, 180, *keys("k", 12), by=0) == [1] * 12
    assert (table.evicted, len(table)) == (0, 12)


def test_a_table_may_refuse_what_is_new_rather_than_forget() -> None:
    table = CounterTable(counters_max=3, refuses_when_full=True)
    assert hit(table, 100, 120, *keys("k", 5)) == [1, 1, 1, FULL, FULL]
    assert hit(table, 100, 120, b"k0", b"new", b"k2", b"new") == [2, FULL, 2, FULL]
    assert hit(table, 100, 120, b"new", by=0) == [0]
    assert (table.evicted, len(table)) == (0, 3)
    assert hit(table, 130, 180, b"new") == [1]


def test_a_conditional_request_without_room_for_all_is_not_counted() -> None:
    table = CounterTable(counters_max=2, refuses_when_full=True)
    request = Conditional([120, 120], [b"a", b"b"], [1, 1], [10, 10])
    hit(table, 100, 120, b"a")
    assert table.hit_conditionally([request], 100) == [[2, 1]]
    other = Conditional([120, 120], [b"a", b"c"], [1, 1], [10, 10])
    assert table.hit_conditionally([other], 100) == [[FULL, FULL]]
    assert table.count(120, b"a") == 2


def test_a_single_place_is_enough_to_count_in() -> None:
    table = CounterTable(counters_max=1)
    assert hit(table, 100, 120, b"a", b"a", b"b", b"b", b"a") == [1, 2, 1, 2, 1]
    assert len(table) == 1
    assert table.evicted == 2


def test_a_full_table_goes_on_counting_what_it_knows() -> None:
    table = CounterTable(counters_max=3)
    hit(table, 100, 120, *keys("a", 3))
    assert hit(table, 100, 120, *keys("a", 3)) == [2, 2, 2]
    assert hit(table, 100, 120, b"new", by=0) == [0]
    assert table.evicted == 0


def test_conditional_hits_are_bounded_too() -> None:
    table = CounterTable(counters_max=2)
    for key in keys("k", 5):
        table.hit_conditionally([Conditional([120], [key], [1], [10])], 100)
        assert len(table) <= 2


def test_a_clock_that_ran_ahead_does_not_stop_the_sweeping() -> None:
    table = CounterTable()
    hit(table, 1_000_000, 1_000_020, b"from the future")
    for now_s in range(100, 200):
        hit(table, now_s, now_s + 1, b"k")
    assert len(table) <= EXPIRY_GRACE_S + 2


def test_a_table_holds_something() -> None:
    with pytest.raises(AssertionError, match="at least one counter"):
        CounterTable(counters_max=0)
