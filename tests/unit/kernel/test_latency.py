"""Histograms of response times."""

import pytest

from tollgate.actors.kernel.latencies import LATENCY_BOUNDS_S, Latency, LatencyTally


def observed(*observations: tuple[int, float]) -> Latency:
    tally = LatencyTally()
    for calls, seconds in observations:
        tally.observe(calls, seconds)
    return tally.value()


def test_bounds_ascend_and_tell_a_hundred_microseconds_apart() -> None:
    assert list(LATENCY_BOUNDS_S) == sorted(set(LATENCY_BOUNDS_S))
    assert sum(bound_s <= 0.0005 for bound_s in LATENCY_BOUNDS_S) >= 5
    assert LATENCY_BOUNDS_S[0] == pytest.approx(0.00005)
    assert LATENCY_BOUNDS_S[-1] == 10.0


def test_cumulative_counts_end_with_all_calls() -> None:
    latency = observed((1, 0.00001), (2, 0.00006), (4, 99.0))
    assert latency.cumulative()[:3] == (1, 3, 3)
    assert latency.cumulative()[-2:] == (3, 7)
    assert latency.count == 7


def test_sums_add_up_by_position() -> None:
    tally = LatencyTally()
    tally.add(observed((1, 0.001), (1, 0.5)))
    tally.add(observed((2, 0.001)))
    assert tally.value().counts == observed((3, 0.001), (1, 0.5)).counts
    assert tally.value().sum_s == pytest.approx(0.503)


@pytest.mark.parametrize(
    ("share", "expected_s"),
    [(0.0, 0.0), (0.25, 0.000025), (0.5, 0.00005), (0.75, 0.0000625), (1.0, 0.000075)],
)
def test_a_quantile_lies_straight_between_the_bounds(share: float, expected_s: float) -> None:
    assert observed((10, 0.00001), (10, 0.00006)).quantile_s(share) == pytest.approx(expected_s)


def test_a_quantile_skips_empty_buckets() -> None:
    latency = observed((99, 0.00001), (1, 0.4))
    assert latency.quantile_s(0.99) <= 0.00005
    assert 0.25 < latency.quantile_s(0.999) <= 0.5


def test_a_quantile_beyond_the_last_bound_is_that_bound() -> None:
    assert observed((1, 60.0)).quantile_s(0.5) == LATENCY_BOUNDS_S[-1]


def test_without_calls_a_quantile_is_zero() -> None:
    assert LatencyTally().value().quantile_s(0.99) == 0.0
