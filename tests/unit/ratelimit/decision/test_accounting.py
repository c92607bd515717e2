"""The meaning of a count: all rows of docs/ratelimit.md, B7, that need no request."""

import pytest

from tollgate.actors.ratelimit.decision.accounting import (
    Account,
    judge_count,
    near_threshold,
    shadowed_hits,
)

RATIO = 0.8


@pytest.mark.parametrize(
    ("before", "addend", "limit", "expected"),
    [
        # is_over, remaining, over, near, within
        pytest.param(4, 1, 10, (False, 5, 0, 0, 1), id="D01"),
        pytest.param(10, 1, 10, (True, 0, 1, 0, 0), id="D02"),
        pytest.param(10, 0, 10, (False, 0, 0, 0, 0), id="D04"),
        pytest.param(11, 0, 10, (True, 0, 0, 0, 0), id="D04, over already"),
        pytest.param(10, 1, 15, (False, 4, 0, 0, 1), id="D05"),
        pytest.param(11, 1, 15, (False, 3, 0, 0, 1), id="at the threshold"),
        pytest.param(12, 1, 15, (False, 2, 0, 1, 1), id="D06"),
        pytest.param(15, 1, 15, (True, 0, 1, 0, 0), id="D07"),
        pytest.param(5, 2, 8, (False, 1, 0, 1, 2), id="D09"),
        pytest.param(16, 3, 20, (False, 1, 0, 3, 3), id="D10"),
        pytest.param(19, 3, 20, (True, 0, 2, 1, 0), id="D11"),
        pytest.param(15, 7, 20, (True, 0, 2, 4, 0), id="D12"),
        pytest.param(0, 1, 0, (True, 0, 1, 0, 0), id="D14"),
        pytest.param(0, 0, 0, (False, 0, 0, 0, 0), id="looking at a limit of 0"),
        pytest.param(0, 15, 15, (False, 0, 0, 3, 15), id="the whole limit at once"),
        pytest.param(0, 2**64 - 1, 15, (True, 0, 2**64 - 16, 3, 0), id="a huge addend"),
        pytest.param(2**70, 1, 2**32 - 1, (True, 0, 1, 0, 0), id="a huge count"),
    ],
)
def test_a_count_is_split_at_the_limit_and_the_threshold(
    before: int, addend: int, limit: int, expected: Account
) -> None:
    near = near_threshold(limit, RATIO)
    assert judge_count(before + addend, addend, limit, near) == expected


@pytest.mark.parametrize(
    ("after", "addend", "expected"),
    [
        # Not counted: the count is what it was, and where it cannot hold the hits (B < 0) they are
        # taken to be beyond every threshold.
        pytest.param(10, 1, (False, 5, 0, 0, 1), id="below the threshold"),
        pytest.param(13, 2, (False, 2, 0, 1, 2), id="D30"),
        pytest.param(13, 14, (False, 2, 0, 14, 14), id="below zero, near"),
        pytest.param(1, 2, (False, 14, 0, 0, 2), id="below zero, not near"),
        pytest.param(16, 17, (True, 0, 17, 0, 0), id="below zero, over"),
    ],
)
def test_judge_hits_that_were_held_back(after: int, addend: int, expected: Account) -> None:
    assert judge_count(after, addend, 15, 12) == expected


@pytest.mark.parametrize(
    ("after", "addend", "expected"),
    [(7, 5, 2), (8, 1, 1), (6, 6, 1), (6, 7, 7), (6, 0, 0)],
    ids=["E05", "over before", "from nothing", "held back", "looking"],
)
def test_hits_beyond_the_limit_are_shadowed(after: int, addend: int, expected: int) -> None:
    assert shadowed_hits(after, addend, 5) == expected


@pytest.mark.parametrize(
    ("limit", "ratio", "expected"),
    [
        pytest.param(90, 0.7, 63, id="D37"),
        pytest.param(170, 0.7, 119, id="a double gives 118"),
        pytest.param(330, 0.7, 231, id="a double gives 230"),
        pytest.param(15, 0.8, 12, id="exact"),
        pytest.param(8, 0.8, 6, id="rounded down"),
        pytest.param(0, 0.8, 0, id="nothing"),
        pytest.param(10, 0.0, 0, id="no ratio"),
        pytest.param(10, 1.0, 10, id="all of it"),
        pytest.param(2**24 + 1, 0.5, 2**23, id="beyond float32's integers"),
        pytest.param(2**32 - 1, 1.0, 2**32 - 1, id="never beyond the limit"),
    ],
)
def test_the_near_threshold_is_counted_in_float32(limit: int, ratio: float, expected: int) -> None:
    assert near_threshold(limit, ratio) == expected


def test_no_statistic_goes_down_where_the_threshold_would_round_up() -> None:
    limit = 2**32 - 1
    assert judge_count(limit + 1, 2, limit, near_threshold(limit, 1.0)) == (True, 0, 1, 0, 0)
