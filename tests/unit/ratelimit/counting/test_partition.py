"""A partition that is asked for every hit, called as its actor is."""

import logging
import pickle
from typing import Any

import pytest

from tollgate.actors.ratelimit.counting.counters import TABLE_FULL, Unreachable
from tollgate.actors.ratelimit.counting.partition import DirectPartition


def hit(partition: DirectPartition, *keys: bytes) -> list[Any]:
    call = pickle.dumps(([(120, list(keys), [1] * len(keys))], 100))
    (counts,) = pickle.loads(partition.hit(call))
    return [str(count) if isinstance(count, Unreachable) else count for count in counts]


def test_a_full_partition_refuses_what_is_new_if_it_is_told_to() -> None:
    partition = DirectPartition(2, refuses_when_full=True)
    assert hit(partition, b"a", b"b", b"c", b"a") == [1, 1, TABLE_FULL, 2]
    request = ([120, 120], [b"a", b"c"], [1, 1], [10, 10])
    (answer,) = pickle.loads(partition.hit_conditionally(pickle.dumps(([request], 100))))
    assert [str(each) for each in answer] == [TABLE_FULL, TABLE_FULL]
    assert partition.describe() == {"counters": 2, "evicted": 0, "calls": 2}


def test_what_is_given_up_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    partition = DirectPartition(2, refuses_when_full=False)
    with caplog.at_level(logging.WARNING, "tollgate.counters"):
        for number in range(20):
            hit(partition, b"%d" % number)
    assert partition.describe()["evicted"] == 18
    (line,) = caplog.messages
    assert "1 counters whose windows have not ended" in line
