"""The counter table against a dictionary that never forgets anything but ended windows."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.counting.counters import (
    EXPIRY_GRACE_S,
    Conditional,
    CounterTable,
    Hits,
)
from tollgate.actors.ratelimit.counting.windows import Unit, window_at

START_S = 1_000_000
END_S = START_S + 100
HOT = -1
KEYS = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
UNITS = st.sampled_from([Unit.SECOND, Unit.MINUTE, Unit.HOUR])
ADDENDS = st.sampled_from([1, 1, 1, 2, 0, -1, -3, 2**64])
OPERATIONS = st.lists(st.tuples(UNITS, KEYS, ADDENDS), max_size=6)
# The seconds that pass before a call, how far the caller's clock lags behind, what it asks.
CALLS = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2, 60]), st.integers(0, EXPIRY_GRACE_S), OPERATIONS),
    max_size=12,
)
Calls = list[tuple[int, int, list[tuple[Unit, bytes, int]]]]


@dataclass
class Model:
    """What a table does, without its bound."""

    counts: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def pass_time(self, now_s: int) -> None:
        self.counts = {
            (end_s, key): count
            for (end_s, key), count in self.counts.items()
            if end_s + EXPIRY_GRACE_S > now_s
        }

    def hit(self, end_s: int, key: bytes, addend: int) -> int:
        if addend > 0 or (end_s, key) in self.counts:
            self.counts[end_s, key] = max(0, self.counts.get((end_s, key), 0) + addend)
        return self.counts.get((end_s, key), 0)


def operations_at(
    now_s: int, operations: list[tuple[Unit, bytes, int]]
) -> list[tuple[int, bytes, int]]:
    """Keys of different units are different keys, as the engine makes them."""
    return [
        (window_at(unit, now_s).end_s, bytes((unit,)) + key, addend)
        for unit, key, addend in operations
    ]


@given(CALLS)
def test_hits_are_counted_as_in_the_model(calls: Calls) -> None:
    table, model, time_s = CounterTable(), Model(), START_S
    for wait_s, lag_s, operations in calls:
        time_s += wait_s
        now_s = time_s - lag_s
        asked = operations_at(now_s, operations)
        model.pass_time(now_s)
        expected = [[model.hit(*operation)] for operation in asked]
        assert table.hit([Hits(end, [key], [by]) for end, key, by in asked], now_s) == expected
        assert len(table) == len(model.counts)
    assert table.evicted == 0


@given(CALLS)
def test_one_call_counts_like_several(calls: Calls) -> None:
    together, apart, time_s = CounterTable(), CounterTable(), START_S
    for wait_s, _, operations in calls:
        time_s += wait_s
        by_end: dict[int, Hits] = {}
        for end_s, key, addend in operations_at(time_s, operations):
            hits = by_end.setdefault(end_s, Hits(end_s, [], []))
            hits.keys.append(key)
            hits.addends.append(addend)
        batch = list(by_end.values())
        assert together.hit(batch, time_s) == [apart.hit([each], time_s)[0] for each in batch]


@given(CALLS, st.integers(1, 6))
def test_a_bounded_table_forgets_and_never_invents(calls: Calls, counters_max: int) -> None:
    table, model, time_s = CounterTable(counters_max), Model(), START_S
    for wait_s, lag_s, operations in calls:
        time_s += wait_s
        now_s = time_s - lag_s
        asked = operations_at(now_s, operations)
        model.pass_time(now_s)
        answers = table.hit([Hits(end, [key], [by]) for end, key, by in asked], now_s)
        for operation, (count,) in zip(asked, answers, strict=True):
            unbounded = model.hit(*operation)
            assert max(0, operation[2]) <= count <= unbounded
            assert table.evicted or count == unbounded
        assert len(table) <= counters_max
        assert table.evicted or len(table) == len(model.counts)


@given(
    st.integers(4, 24),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 60)), min_size=1, max_size=80),
)
def test_what_was_used_lately_is_never_given_up(
    counters_max: int, runs: list[tuple[int, int]]
) -> None:
    """By whatever order of counters, those used last, a quarter of the places, keep their counts;
    so a counter that is always hit counts on."""
    table, counts = CounterTable(counters_max), dict[int, int]()
    used: list[int] = []  # the last one last
    for first, length in runs:
        for number in (HOT, *range(first, first + length)):
            lately = number in used[-(counters_max // 4) :]
            (count,) = table.hit([Hits(END_S, [b"%d" % number], [1])], START_S)[0]
            assert count == 1 + counts.get(number, 0) or not lately
            counts[number] = count
            used = [each for each in used if each != number] + [number]
    assert len(table) <= counters_max


def excesses(
    model: Model, asked: list[tuple[int, bytes, int]], limits: list[int | None]
) -> list[bool]:
    """Which hits would take their counters over their limits. What has no limit is counted in any
    case, so what follows comes on top of it."""
    trial = Model(dict(model.counts))
    found = []
    for (end_s, key, addend), limit in zip(asked, limits, strict=True):
        if limit is None:
            trial.hit(end_s, key, addend)
        found.append(limit is not None and trial.counts.get((end_s, key), 0) + addend > limit)
    return found


@given(CALLS, st.lists(st.none() | st.integers(0, 4), min_size=6, max_size=6))
def test_hits_are_held_back_as_in_the_model(calls: Calls, limits: list[int | None]) -> None:
    """B9: would any hit take its counter over its limit, only those that would are counted."""
    table, model, time_s = CounterTable(), Model(), START_S
    for wait_s, lag_s, operations in calls:
        time_s += wait_s
        now_s = time_s - lag_s
        asked = operations_at(now_s, operations)
        request = Conditional(
            [end_s for end_s, _, _ in asked],
            [key for _, key, _ in asked],
            [addend for _, _, addend in asked],
            limits[: len(asked)],
        )
        model.pass_time(now_s)
        exceeds = excesses(model, asked, request.limits)
        expected = [
            model.hit(end_s, key, addend if exceed or limit is None or not any(exceeds) else 0)
            for (end_s, key, addend), limit, exceed in zip(
                asked, request.limits, exceeds, strict=True
            )
        ]
        assert table.hit_conditionally([request], now_s) == [expected]
        assert len(table) == len(model.counts)
