"""A partition that is asked for every hit, called as its actor is."""

import logging
import pickle
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.counting.counters import TABLE_FULL, Unreachable
from tollgate.actors.ratelimit.counting.partition import DirectPartition
from tollgate.actors.ratelimit.lending.partition import listing


def hit(partition: DirectPartition, *keys: bytes) -> list[Any]:
    call = pickle.dumps(([(120, list(keys), [1] * len(keys))], 100))
    (counts,) = pickle.loads(partition.hit(call))
    return [str(count) if isinstance(count, Unreachable) else count for count in counts]


def described(partition: DirectPartition) -> tuple[int, int, int]:
    said = partition.describe()
    return said["counters"], said["evicted"], said["resets"]


def test_a_full_partition_refuses_what_is_new_if_it_is_told_to() -> None:
    partition = DirectPartition(2, ManualClock(100), refuses_when_full=True)
    assert hit(partition, b"a", b"b", b"c", b"a") == [1, 1, TABLE_FULL, 2]
    request = ([120, 120], [b"a", b"c"], [1, 1], [10, 10])
    (answer,) = pickle.loads(partition.hit_conditionally(pickle.dumps(([request], 100))))
    assert [str(each) for each in answer] == [TABLE_FULL, TABLE_FULL]
    assert described(partition) == (2, 0, 0)


def test_what_is_given_up_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    partition = DirectPartition(2, ManualClock(100), refuses_when_full=False)
    with caplog.at_level(logging.WARNING, "tollgate.counters"):
        for number in range(20):
            hit(partition, b"%d" % number)
    assert partition.describe()["evicted"] == 18
    (line,) = caplog.messages
    assert "1 counters whose windows have not ended" in line


def listed(partition: DirectPartition) -> dict[bytes, int]:
    rows: dict[bytes, int] = {}
    after = None
    while True:
        page = partition.list_counters(lambda key: key != b"unwanted", after)
        rows |= {row.key: row.hits for row in page.rows}
        after = page.after
        if after is None:
            return rows


def test_counters_are_listed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "LOOKED_AT_MAX", 3)
    partition = DirectPartition(40, ManualClock(100), refuses_when_full=False)
    keys = [b"k%d" % number for number in range(35)]
    hit(partition, *keys, b"unwanted")
    hit(partition, *keys[:20])
    assert listed(partition) == {key: 2 if key in keys[:20] else 1 for key in keys}


def test_a_counter_that_is_reset_begins_again_at_0() -> None:
    partition = DirectPartition(8, ManualClock(100), refuses_when_full=False)
    for _ in range(3):
        hit(partition, b"a", b"b")
    hit(partition, *[b"c%d" % number for number in range(5)])  # (so the others are not the newest)
    (reset,) = partition.reset_counters([b"a", b"none"])
    assert (reset.row.hits, reset.failure) == (3, None)
    assert [row.hits for row in partition.find_counters([b"a"])] == [0]
    assert described(partition) == (7, 0, 1)
    assert hit(partition, b"a", b"b", b"c0") == [1, 4, 2]
    partition.reset_counters([b"c0"])
    assert hit(partition, b"c0") == [1]


def test_a_counter_that_is_only_looked_at_is_in_use() -> None:
    partition = DirectPartition(2, ManualClock(100), refuses_when_full=False)
    hit(partition, b"looked at", b"other")
    partition.hit(pickle.dumps(([(120, [b"looked at"], [0])], 100)))
    hit(partition, b"new")
    assert [row.key for row in partition.find_counters([b"looked at", b"other"])] == [b"looked at"]


def test_what_has_ended_is_not_shown_and_makes_room_for_all_of_a_request() -> None:
    clock = ManualClock(100)
    partition = DirectPartition(2, clock, refuses_when_full=True)
    hit(partition, b"a", b"b")
    clock.advance(21)
    assert partition.list_counters(bool, None).rows == partition.find_counters([b"a"]) == []
    assert partition.reset_counters([b"a"]) == []
    clock.advance(10)
    request = ([180, 180], [b"c", b"d"], [1, 1], [10, 10])
    (answer,) = pickle.loads(partition.hit_conditionally(pickle.dumps(([request], 131))))
    assert answer == [1, 1]
    clock.advance(60)
    assert described(partition) == (0, 0, 0)


def test_hits_that_are_given_back_are_told_of() -> None:
    partition = DirectPartition(8, ManualClock(100), refuses_when_full=False)
    hit(partition, b"a")
    assert partition.describe()["falls"] == 0
    partition.hit(pickle.dumps(([(120, [b"a"], [-1])], 100)))
    request = ([120], [b"a"], [-1], [None])
    partition.hit_conditionally(pickle.dumps(([request], 100)))
    assert partition.describe()["falls"] == 2
