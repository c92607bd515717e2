"""One front that counts what it is lent, against the counter table that it does not have to ask."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.counting.counters import Conditional, CounterTable, Hits
from tollgate.actors.ratelimit.counting.windows import Unit, window_at
from tollgate.actors.ratelimit.lending.messages import LimitedHits
from tollgate.actors.ratelimit.lending.terms import Terms

KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"])
UNITS = st.sampled_from([Unit.SECOND, Unit.MINUTE, Unit.HOUR])
ADDENDS = st.sampled_from([1, 1, 1, 2, 0, -1, -3, 2**64])
LIMITS = st.sampled_from([0, 1, 3, 1_000])
OPERATIONS = st.lists(st.tuples(UNITS, KEYS, ADDENDS, LIMITS), max_size=6)
# The seconds that pass before a call, and what it asks.
CALLS = st.lists(st.tuples(st.sampled_from([0.0, 0.01, 0.3, 1.0, 61.0]), OPERATIONS), max_size=12)
REQUESTS = st.lists(
    st.lists(
        st.tuples(UNITS, KEYS, ADDENDS, st.one_of(st.none(), LIMITS)),
        max_size=3,
        unique_by=lambda operation: operation[:2],
    ),
    max_size=4,
)
TERMS = st.sampled_from(
    [
        Terms(),
        Terms(handed_over_max=0),  # nothing is lent whole
        Terms(handed_over_max=1, loan_min=1, notes_max=8, loans_max=2),
        Terms(items_per_message_max=1, reported_max=1),
    ]
)


def columns(now_s: float, operations: list[tuple[Unit, bytes, int, int]]) -> list[LimitedHits]:
    """Operations side by side, by window; keys of different units are different keys."""
    by_end: dict[int, LimitedHits] = {}
    for unit, key, addend, limit in operations:
        end_s = window_at(unit, int(now_s)).end_s
        hits = by_end.setdefault(end_s, LimitedHits(end_s, [], [], []))
        hits.keys.append(bytes((unit,)) + key)
        hits.addends.append(addend)
        hits.limits.append(limit)
    return list(by_end.values())


def conditionals(
    now_s: float, requests: list[list[tuple[Unit, bytes, int, int | None]]]
) -> list[Conditional]:
    return [
        Conditional(
            [window_at(unit, int(now_s)).end_s for unit, *_ in request],
            [bytes((unit,)) + key for unit, key, *_ in request],
            [addend for *_, addend, _ in request],
            [None if addend < 0 else limit for *_, addend, limit in request],
        )
        for request in requests
    ]


@given(TERMS, CALLS)
def test_one_front_counts_as_the_table_does(
    terms: Terms, calls: list[tuple[float, list[tuple[Unit, bytes, int, int]]]]
) -> None:
    pair, table = Pair(terms), CounterTable()
    for wait_s, operations in calls:
        pair.rest(wait_s)
        batch = columns(pair.wall_s(), operations)
        expected = table.hit([Hits(*hits[:3]) for hits in batch], int(pair.wall_s()))
        assert pair.hit(batch) == expected


@given(TERMS, st.lists(st.tuples(st.sampled_from([0.0, 0.3, 61.0]), OPERATIONS, REQUESTS)))
def test_one_front_spares_as_the_table_does(
    terms: Terms,
    calls: list[
        tuple[
            float,
            list[tuple[Unit, bytes, int, int]],
            list[list[tuple[Unit, bytes, int, int | None]]],
        ]
    ],
) -> None:
    pair, table = Pair(terms), CounterTable()
    for wait_s, operations, requests in calls:
        pair.rest(wait_s)
        now_s = int(pair.wall_s())
        batch = columns(pair.wall_s(), operations)
        assert pair.hit(batch) == table.hit([Hits(*hits[:3]) for hits in batch], now_s)
        asked = conditionals(pair.wall_s(), requests)
        assert pair.hit_conditionally(asked) == table.hit_conditionally(asked, now_s)


def test_a_front_of_its_own_asks_once_per_slot() -> None:
    pair = Pair(Terms())
    end_s = window_at(Unit.DAY, START_S).end_s
    for _ in range(100):
        assert pair.hit([LimitedHits(end_s, [b"a", b"b"], [1, 1], [1_000, 1_000])])
    assert pair.messages < 10
