"""Ids rise strictly and cannot be guessed, whatever the clock does and however many are made."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tollgate.actors.ledger.law.ids import GAP_MAX, START_MAX, is_id, next_ids

SECOND_MAX = 2**31
# Clocks that stand still, jump ahead and jump back.
CLOCKS = st.lists(st.integers(0, SECOND_MAX) | st.sampled_from([1_000, 1_001, 1_002]), min_size=1)
LASTS = st.integers(0, SECOND_MAX * 2**64).map(lambda number: f"{number:024x}")


@given(LASTS, CLOCKS, st.integers(1, 5))
def test_ids_rise_strictly(last: str, clock: list[int], count: int) -> None:
    for number, at_s in enumerate(clock):
        made = next_ids(last, at_s * 1_000, f"operation {number}", count)
        assert len(made) == count
        for entity in made:
            assert is_id(entity)
            assert entity > last
            assert int(entity[:8], 16) >= at_s
            last = entity


@given(st.integers(1, SECOND_MAX), st.integers(1, 200))
def test_no_second_runs_out(at_s: int, orders: int) -> None:
    """All gaps together stay within what the lower half of a second's numbers leaves."""
    last = next_ids("0" * 24, at_s * 1_000, "first", 1)[0]
    for number in range(orders):
        last = next_ids(last, at_s * 1_000, f"{number}", 3)[-1]
    assert int(last[:8], 16) == at_s
    assert int(last[8:], 16) <= START_MAX + 3 * orders * GAP_MAX


@given(st.binary(min_size=16, max_size=16), st.integers(1, SECOND_MAX))
def test_gaps_are_of_every_size_and_in_no_order(operation: bytes, at_s: int) -> None:
    """Of 64 gaps, quarters of the range hold some each, and no rule of one leads to the next."""
    last, gaps = f"{at_s:08x}{0:016x}", []
    for entity in next_ids(last, at_s * 1_000, operation.hex(), 64):
        gaps.append(int(entity, 16) - int(last, 16))
        last = entity
    assert len(set(gaps)) == len(gaps)
    quarters = {(gap - 1) * 4 // GAP_MAX for gap in gaps}
    assert quarters == {0, 1, 2, 3}
    rises = [later > earlier for earlier, later in itertools.pairwise(gaps)]
    assert 10 < sum(rises) < 53
    assert len({later - earlier for earlier, later in itertools.pairwise(gaps)}) == 63


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=2, unique=True))
def test_another_operation_draws_other_ids(operations: list[bytes]) -> None:
    last = f"{1_000:08x}{0:016x}"
    first = [next_ids(last, 1_000_000, each.hex(), 1)[0] for each in operations]
    assert len(set(first)) == len(first)
