"""The order of use is that of a list in which whatever is used moves to the end."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.lending import recency
from tollgate.actors.ratelimit.lending.recency import CounterRecency, Recency

COUNTERS = st.tuples(st.sampled_from([60, 3600]), st.sampled_from([b"a", b"b", b"c"]))
NAMES = st.integers(0, 6)
STEPS = st.lists(st.tuples(st.sampled_from(["use", "forget", "least recent"]), NAMES), max_size=40)


@given(STEPS, st.integers(1, 4))
def test_names_are_found_in_the_order_of_their_use(
    steps: list[tuple[str, int]], taken_at_once: int
) -> None:
    order: Recency[int, int] = Recency()
    expected: list[tuple[int, int]] = []
    with patch.object(recency, "TAKEN_AT_ONCE", taken_at_once):
        for value, (step, name) in enumerate(steps):
            if step == "least recent":
                if expected:
                    assert order.least_recent() == expected[0]
                continue
            expected = [each for each in expected if each[0] != name]
            if step == "use":
                order.use(name, value)
                expected.append((name, value))
            else:
                order.forget(name)
            assert len(order) == len(expected)
            assert all(order.get(each) == dict(expected).get(each) for each in range(7))


@given(
    st.lists(st.tuples(st.sampled_from(["use", "use", "forget"]), COUNTERS), max_size=40),
    st.integers(1, 3),
)
def test_counters_are_found_in_the_order_of_their_use_over_all_windows(
    steps: list[tuple[str, tuple[int, bytes]]], uses_per_stamp: int
) -> None:
    order = CounterRecency(uses_per_stamp)
    used: dict[tuple[int, bytes], int] = {}
    for number, (step, counter) in enumerate(steps):
        used.pop(counter, None)
        if step == "use":
            order.use(counter)
            used[counter] = number
        else:
            order.forget(counter)
        assert len(order) == len(used)
        if used:
            found = order.least_recent()
            uses = [at for at, (each, _) in enumerate(steps[: number + 1]) if each == "use"]
            between = [at for at in uses if min(used.values()) <= at < used[found]]
            assert len(between) < uses_per_stamp
