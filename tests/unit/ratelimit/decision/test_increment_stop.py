"""Which calls a batch costs under STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, and what they count."""

from tests.support.ratelimit.engine import RecordedCounters, planned_hit
from tollgate.actors.ratelimit.counting.counters import (
    Conditional,
    Unreachable,
    conditional_addends,
)
from tollgate.actors.ratelimit.counting.windows import Unit
from tollgate.actors.ratelimit.decision.increment_stop import ConditionalCounts, count_conditionally
from tollgate.actors.ratelimit.decision.plan import PlannedHit
from tollgate.actors.ratelimit.decision.round import Round, WindowEnds

NOW_S = 1_000_000
MINUTE, HOUR = NOW_S + 20, NOW_S + 800


def count(store: RecordedCounters, *requests: list[PlannedHit]) -> list[ConditionalCounts]:
    addends = [[hit.signed_addend for hit in hits] for hits in requests]
    return count_conditionally(
        requests, addends, Round(WindowEnds(NOW_S, has_calendar_months=False)), store
    )


def on(partition: int, key: bytes, *, limit: int = 2, addend: int = 1) -> PlannedHit:
    return planned_hit(key, partition=partition, limit=limit, addend=addend)


def test_a_batch_whose_requests_are_together_costs_one_call() -> None:
    store = RecordedCounters(partitions=2)
    assert count(store, [on(0, b"a"), on(0, b"b")], [on(1, b"c")], [], [on(0, b"a")]) == [
        [1, 1],
        [1],
        [],
        [2],
    ]
    assert store.calls == [
        (
            "conditional",
            {
                0: [
                    ([MINUTE, MINUTE], [b"a", b"b"], [1, 1], [2, 2]),
                    ([MINUTE], [b"a"], [1], [2]),
                ],
                1: [([MINUTE], [b"c"], [1], [2])],
            },
        )
    ]


def test_a_batch_with_a_request_that_is_apart_costs_a_look_and_a_call() -> None:
    store = RecordedCounters(partitions=2)
    hour = planned_hit(b"h", partition=0, unit=Unit.HOUR, limit=5)
    assert count(store, [on(0, b"a"), on(1, b"b")], [on(0, b"a"), hour]) == [[1, 1], [2, 1]]
    look, call = store.calls
    assert look == (
        "hit",
        {
            0: [(MINUTE, [b"a"], [0], [2]), (HOUR, [b"h"], [0], [5])],
            1: [(MINUTE, [b"b"], [0], [2])],
        },
    )
    assert call == (
        "conditional",
        {
            0: [
                ([MINUTE], [b"a"], [1], [None]),
                ([MINUTE, HOUR], [b"a", b"h"], [1, 1], [2, 5]),
            ],
            1: [([MINUTE], [b"b"], [1], [None])],
        },
    )


def test_nothing_to_count_asks_nobody() -> None:
    store = RecordedCounters()
    assert count(store, [], []) == [[], []]
    assert store.calls == []


def test_a_batch_is_decided_in_its_order_wherever_its_counters_live() -> None:
    store = RecordedCounters(partitions=2)
    apart = [on(0, b"a", limit=1), on(1, b"b")]
    assert count(store, apart, [on(0, b"a", limit=1)], apart) == [[1, 1], [2], [3, 1]]


def test_a_counter_named_twice_is_seen_twice_by_the_next_request() -> None:
    store = RecordedCounters(partitions=2)
    twice = [on(0, b"a"), on(0, b"a"), on(1, b"b")]
    assert count(store, twice, [on(0, b"a"), on(1, b"b")]) == [[1, 2, 1], [3, 1]]


def test_a_partition_out_of_reach_fails_its_own_hits() -> None:
    store = RecordedCounters(partitions=2)
    store.unreachable = {1: "gone"}
    together, apart, lost = count(
        store, [on(0, b"a")], [on(0, b"a"), on(1, b"b")], [on(1, b"b"), on(1, b"c")]
    )
    assert together == [1]
    assert apart[0] == 2
    for failure in (apart[1], *lost):
        assert isinstance(failure, Unreachable)
    assert store.counts(NOW_S)[MINUTE, b"a"] == 2


def conditional(*operations: tuple[bytes, int, int | None]) -> Conditional:
    keys, addends, limits = (list(column) for column in zip(*operations, strict=True))
    return Conditional([60] * len(keys), keys, addends, limits)


def test_all_are_counted_when_none_would_exceed() -> None:
    request = conditional((b"a", 1, 5), (b"b", 2, 5), (b"c", 0, 0))
    assert conditional_addends({b"a": 4, b"b": 3, b"c": 0}, request) == [1, 2, 0]


def test_only_those_that_would_exceed_are_counted() -> None:
    request = conditional((b"a", 1, 5), (b"b", 3, 5), (b"c", 1, 1))
    assert conditional_addends({b"a": 4, b"b": 3, b"c": 1}, request) == [0, 3, 1]


def test_looking_at_what_is_over_holds_back() -> None:
    request = conditional((b"a", 1, 5), (b"b", 0, 5))
    assert conditional_addends({b"a": 0, b"b": 6}, request) == [0, 0]
    assert conditional_addends({b"a": 0, b"b": 5}, request) == [1, 0]


def test_a_counter_named_twice_exceeds_when_one_hit_alone_would() -> None:
    request = conditional((b"a", 1, 5), (b"a", 1, 5), (b"b", 1, 5))
    assert conditional_addends({b"a": 4, b"b": 0}, request) == [1, 1, 1]
    assert conditional_addends({b"a": 5, b"b": 0}, request) == [1, 1, 0]


def test_what_has_no_limit_is_counted_and_seen_by_what_follows() -> None:
    assert conditional_addends({b"a": 5}, conditional((b"a", -2, None), (b"a", 2, 5))) == [-2, 2]
    assert conditional_addends(
        {b"a": 5, b"b": 0}, conditional((b"a", 2, 5), (b"a", -2, None), (b"b", 1, 5))
    ) == [
        2,
        -2,
        0,
    ]
    assert conditional_addends({b"a": 1}, conditional((b"a", -9, None), (b"a", 6, 5))) == [-9, 6]
