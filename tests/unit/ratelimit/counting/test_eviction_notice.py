"""When the log tells of counters that were given up."""

from tollgate.actors.ratelimit.counting.eviction_notice import EVERY_S, EvictionNotice


def test_nothing_is_said_of_a_table_that_gives_up_nothing() -> None:
    assert EvictionNotice().look(0, 100.0) is None


def test_a_line_a_minute_says_how_many_there_were_since_the_last() -> None:
    notice = EvictionNotice()
    assert "full: 5 counters" in str(notice.look(5, 100.0))
    assert notice.look(5, 100.0) is None
    assert notice.look(9, 99.0 + EVERY_S) is None
    assert "full: 7 counters" in str(notice.look(12, 100.0 + EVERY_S))
    assert notice.look(12, 500.0) is None


def test_a_clock_that_is_set_back_silences_nothing() -> None:
    notice = EvictionNotice()
    assert notice.look(1, 1_000_000.0)
    assert notice.look(2, 100.0)
