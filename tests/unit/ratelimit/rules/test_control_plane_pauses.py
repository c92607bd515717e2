"""The pauses after streams that ended (B20), as XDS_CLIENT_BACKOFF_* say."""

from dataclasses import replace

from tollgate.serve.ratelimit.rule_sources.control_plane import Pauses
from tollgate.serve.settings.outside.control_plane import ControlPlaneSettings

SETTINGS = replace(ControlPlaneSettings(), pause_min_s=10.0, pause_max_s=60.0, has_jitter=False)


def pauses(growth: float, draw: float | None = None, longest_s: float = 60.0) -> Pauses:
    changes = {"pause_growth": growth, "pause_max_s": longest_s}
    settings = replace(SETTINGS, **changes, has_jitter=draw is not None)
    return Pauses(settings, lambda: draw or 0.0)


def first(count: int, of: Pauses) -> list[float]:
    return [of.next_s() for _ in range(count)]


def test_by_default_they_stay_as_they_are() -> None:
    """The reference's default factor is 0.5, and no pause is shorter than the first."""
    assert first(3, pauses(0.5)) == [10.0, 10.0, 10.0]
    assert first(3, pauses(0.5, draw=0.9)) == [10.0, 10.0, 10.0]


def test_they_grow_to_a_bound() -> None:
    assert first(5, pauses(2.0)) == [10.0, 20.0, 40.0, 60.0, 60.0]


def test_jitter_is_between_the_shortest_and_the_one_that_is_due() -> None:
    assert first(3, pauses(2.0, draw=0.5)) == [10.0, 15.0, 25.0]


def test_they_begin_anew_when_rules_were_taken() -> None:
    subject = pauses(3.0)
    assert first(2, subject) == [10.0, 30.0]
    subject.begin_anew()
    assert first(2, subject) == [10.0, 30.0]


def test_a_bound_below_the_first_pause_counts() -> None:
    assert first(2, pauses(2.0, longest_s=4.0)) == [4.0, 4.0]
