"""The price of lending when nothing goes wrong: few messages, and no wrong answer."""

from tests.simulation.ratelimit.scale import Load, measure


def test_a_front_of_its_own_reports_and_asks_for_nothing() -> None:
    price = measure(Load(fronts=1, rate=4_000, seconds=2.0))
    assert price.decisions == 8_000
    assert price.calls < 4 * (2 + 2 * 25)  # its claims, and its reports
    assert price.pushes == price.false_refused == price.false_admitted == price.failed == 0


def test_fronts_that_share_keys_ask_for_some() -> None:
    price = measure(Load(fronts=5, keys=50, rate=400, limit=200, seconds=3.0))
    assert price.per_thousand(price.calls + price.pushes) < 500
    assert price.refused > 500
    assert price.false_refused == price.false_admitted == price.failed == 0
