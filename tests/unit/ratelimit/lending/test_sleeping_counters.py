"""Counters that were restored by a clock that may be wrong."""

import pytest

from tests.support.ratelimit.journals import Counts, counts_of
from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.partition import sleeping_counters
from tollgate.actors.ratelimit.lending.partition.sleeping_counters import (
    BELIEVED_AFTER_S,
    SleepingCounters,
)
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms

DAY_S = 86_400
END_S = START_S + 60
TERMS = Terms()


def everything(asleep: SleepingCounters) -> Counts:
    return counts_of(each for slot in range(SLOTS) for each in asleep.columns(slot))


def test_they_wake_when_the_clock_is_set_back_before_their_windows_end() -> None:
    asleep = SleepingCounters()
    asleep.put((100, [b"a", b"b"], [1, 2]), 0.0)
    asleep.put((100, [b"b"], [3]), 0.0)
    asleep.put((50, [b"c"], [4]), 0.0)
    assert everything(asleep) == {(100, b"a"): 1, (100, b"b"): 3, (50, b"c"): 4}
    assert asleep.wake(100.0) == []
    assert counts_of(asleep.wake(99.0)) == {(100, b"a"): 1, (100, b"b"): 3}
    assert asleep.wake(99.0) == []
    assert everything(asleep) == {(50, b"c"): 4}
    assert len(asleep) == 1


def test_they_wake_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleeping_counters, "WOKEN_AT_ONCE", 10)
    asleep = SleepingCounters()
    keys = [b"key %d" % number for number in range(1_000)]
    asleep.put((100, keys, [1] * len(keys)), 0.0)
    woken = []
    while some := asleep.wake(0.0):
        assert sum(len(each) for _, each, _ in some) < 40
        woken += [key for _, each, _ in some for key in each]
    assert sorted(woken) == sorted(keys)
    assert len(asleep) == 0


def test_the_clock_is_believed_after_an_hour() -> None:
    asleep = SleepingCounters()
    asleep.put((100, [b"a"], [1]), 5.0)
    asleep.bound(10, 5.0 + BELIEVED_AFTER_S - 1)
    assert len(asleep) == 1
    asleep.bound(10, 5.0 + BELIEVED_AFTER_S)
    assert len(asleep) == 0
    assert everything(asleep) == {}


def test_those_whose_windows_ended_first_make_room() -> None:
    asleep = SleepingCounters()
    for end_s in (300, 100, 200):
        asleep.put((end_s, [b"a", b"b"], [1, 2]), 0.0)
    asleep.bound(5, 0.0)
    assert {end_s for end_s, _ in everything(asleep)} == {200, 300}
    asleep.bound(4, 0.0)
    assert len(asleep) == 4
    asleep.bound(0, 0.0)
    assert len(asleep) == 0


# In a partition that lends


def restart(pair: Pair, count: int, *, ahead_s: float, is_new: bool = True) -> None:
    """The partition starts, with a clock that is ahead."""
    pair.partition = Lender(TERMS, 1 if is_new else 2, pair.now_s, is_new=is_new)
    pair.partition.restore([(END_S, [b"k"], [count])], START_S + ahead_s, pair.now_s)


def test_a_lent_counter_goes_on_where_it_was_when_the_clock_is_right_again() -> None:
    pair = Pair(TERMS)
    restart(pair, 5, ahead_s=DAY_S)
    assert len(pair.partition.restored.asleep) == 1
    # (the pair's clocks are right from now on)
    assert pair.hit_one(b"k", 100) == 1, "the front has the slot whole, and knows nothing yet"
    pair.rest(1.0)
    assert pair.hit_one(b"k", 100) == 7
    assert len(pair.partition.restored.asleep) == 0
    pair.rest(1.0)
    assert pair.hit_one(b"k", 100) == 8


def test_nobody_who_knows_the_hits_already_counts_them_twice() -> None:
    pair = Pair(TERMS)
    for _ in range(6):
        pair.hit_one(b"k", 100)
    pair.rest(0.2)
    restart(pair, 5, ahead_s=DAY_S, is_new=False)
    for _ in range(8):
        pair.rest(0.5)
    assert pair.hit_one(b"k", 100) == 7
    assert len(pair.partition.restored.asleep) == 0


def test_sleepers_give_way_to_live_counters() -> None:
    pair = Pair(Terms(counters_max=3))
    pair.partition = Lender(pair.terms, 1, pair.now_s, is_new=True)
    ended: list[tuple[int, list[bytes], list[int]]] = [
        (START_S - 10, [b"a", b"b"], [1, 1]),
        (START_S - 20, [b"c"], [1]),
    ]
    pair.partition.restore([*ended, (END_S, [b"d"], [1])], START_S, pair.now_s)
    assert len(pair.partition.restored.asleep) == 3
    pair.rest(0.2)
    assert len(pair.partition.restored.asleep) == 2
