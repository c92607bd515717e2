"""How the hits of a batch become few operations, and counts become running counts again."""

from collections.abc import Mapping, Sequence

import pytest

from tests.support.ratelimit.engine import RecordedCounters, planned_hit
from tollgate.actors.ratelimit.counting.counters import (
    LimitedHits,
    LocalCounters,
    PartitionCounts,
    Unreachable,
)
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.round import Bucket, Round, WindowEnds

NOW_S = 1_000_000


class HalfReachable(LocalCounters):
    """Counters of which the last one that is asked for cannot be reached."""

    failure = Unreachable("gone")

    def hit(  # type: ignore[override]
        self, batches: Mapping[int, Sequence[LimitedHits]], now_s: int
    ) -> Mapping[int, PartitionCounts]:
        return {
            number: [[*counts[:-1], self.failure] for counts in answer]
            for number, answer in super().hit(batches, now_s).items()
        }


def test_hits_in_a_row_on_one_counter_become_one_operation() -> None:
    bucket = Bucket(60)
    slots = [
        bucket.place(planned_hit(key, addend=addend))
        for key, addend in [(b"a", 1), (b"b", 2), (b"a", 0), (b"a", 3)]
    ]
    assert slots == [0, 1, 0, 0]
    assert bucket.keys == [b"a", b"b"]
    assert bucket.addends == [4, 2]


def test_hits_under_different_limits_stay_apart() -> None:
    bucket = Bucket(60)
    slots = [
        bucket.place(planned_hit(b"a", limit=limit, addend=addend))
        for limit, addend in [(5, 1), (5, 1), (9, 1), (5, 1)]
    ]
    assert slots == [0, 0, 1, 2]
    assert bucket.addends == [2, 1, 1]
    assert bucket.limits == [5, 9, 5]


def test_a_refund_ends_the_row_of_its_counter_alone() -> None:
    bucket = Bucket(60)
    slots = [
        bucket.place(planned_hit(key, addend=1, is_refund=is_refund))
        for key, is_refund in [
            (b"a", False),
            (b"b", False),
            (b"a", True),
            (b"a", True),
            (b"b", False),
            (b"a", False),
            (b"a", False),
        ]
    ]
    assert slots == [0, 1, 2, 3, 1, 4, 4]
    assert bucket.keys == [b"a", b"b", b"a", b"a", b"a"]
    assert bucket.addends == [1, 2, -1, -1, 2]


def test_counts_before_hits_and_after_refunds() -> None:
    store = RecordedCounters()
    round_ = Round(WindowEnds(NOW_S, has_calendar_months=False))
    hits = [
        planned_hit(addend=3),
        planned_hit(addend=5, is_refund=True),
        planned_hit(addend=2),
        planned_hit(addend=0),
    ]
    places = [round_.bucket(hit).place(hit) for hit in hits]
    round_.count(store)
    assert [round_.bucket(hits[0]).counts[place] for place in places] == [0, 0, 0, 0]
    assert store.counts(NOW_S) == {(NOW_S + 20, b"k"): 2}


def test_one_call_for_all_with_a_batch_per_window_and_partition() -> None:
    store = RecordedCounters(partitions=2)
    round_ = Round(WindowEnds(NOW_S, has_calendar_months=False))
    hits = [
        planned_hit(b"a", partition=0),
        planned_hit(b"b", partition=1),
        planned_hit(b"c", partition=1, unit=Unit.HOUR),
        planned_hit(b"d", partition=1),
    ]
    for hit in hits:
        round_.bucket(hit).place(hit)
    round_.count(store)
    minute, hour = NOW_S + 20, NOW_S + 800
    assert store.calls == [
        (
            "hit",
            {
                0: [(minute, [b"a"], [1], [10])],
                1: [(minute, [b"b", b"d"], [1, 1], [10, 10]), (hour, [b"c"], [1], [10])],
            },
        )
    ]


def test_nothing_to_count_asks_nobody() -> None:
    store = RecordedCounters()
    Round(WindowEnds(NOW_S, has_calendar_months=False)).count(store)
    assert store.calls == []


def test_a_partition_out_of_reach_fails_its_own_buckets() -> None:
    store = RecordedCounters(partitions=2)
    store.unreachable = {1: "gone"}
    round_ = Round(WindowEnds(NOW_S, has_calendar_months=False))
    hits = [
        planned_hit(partition=0),
        planned_hit(partition=1),
        planned_hit(partition=1, unit=Unit.DAY),
    ]
    buckets = [round_.bucket(hit) for hit in hits]
    for bucket, hit in zip(buckets, hits, strict=True):
        bucket.place(hit)
    round_.count(store)
    assert round_.has_failures
    assert buckets[0].counts == [0]
    for bucket in buckets[1:]:
        (count,) = bucket.counts
        assert isinstance(count, Unreachable)
        assert str(count) == "gone"


def test_a_counter_out_of_reach_fails_its_own_hits() -> None:
    store = HalfReachable()
    round_ = Round(WindowEnds(NOW_S, has_calendar_months=False))
    hits = [planned_hit(b"a", addend=2), planned_hit(b"b")]
    places = [round_.bucket(hit).place(hit) for hit in hits]
    round_.count(store)
    assert places == [0, 1]
    assert round_.has_failures
    assert round_.bucket(hits[0]).counts == [0, store.failure]


@pytest.mark.parametrize(
    ("has_calendar_months", "reset_s"), [(False, 1_592_000), (True, 1_678_400)]
)
def test_the_calendar_is_asked_if_it_should_be(has_calendar_months: bool, reset_s: int) -> None:
    round_ = Round(WindowEnds(NOW_S, has_calendar_months=has_calendar_months))
    assert round_.end_s(Unit.MONTH) == NOW_S + reset_s
    assert round_.bucket(planned_hit(unit=Unit.MONTH)).end_s == NOW_S + reset_s
