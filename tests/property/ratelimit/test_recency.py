"""The order of use is that of a list in which whatever is used moves to the end."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tollgate.actors.ratelimit.lending import recency
from tollgate.actors.ratelimit.lending.recency import Recency

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
