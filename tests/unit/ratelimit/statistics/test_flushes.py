"""What a flush hands on: additions, once each, whatever becomes of their series."""

from tollgate.actors.operations.process_totals import CALLS, ProcessTotals
from tollgate.actors.ratelimit.statistics.tallies import RULE_STATS, RULES_PREFIX, StatisticsDelta
from tollgate.actors.ratelimit.statistics.totals import DYNAMIC_SERIES_IDLE_S, LOST, Totals

HITS = f"{RULES_PREFIX}d.k_v.total_hits"


def hit(hits: int, *, is_dynamic: bool = True) -> StatisticsDelta:
    counts = {"d.k_v": (hits, *[0] * (len(RULE_STATS) - 1))}
    if is_dynamic:
        return StatisticsDelta("front-1", dynamic_rules=counts)
    return StatisticsDelta("front-1", rules=counts)


def test_a_flush_holds_what_was_added_since_the_last_one() -> None:
    totals = Totals()
    totals.absorb(hit(3), 0.0)
    totals.absorb(StatisticsDelta("front-1", counts={"a": 2}, unknown_domains={"n": 1}), 0.0)
    added = {HITS: 3, "a": 2, f"{RULES_PREFIX}n.domain_not_found": 1}
    assert totals.flush().counters == added
    assert totals.flush().counters == {}
    totals.absorb(hit(4), 0.0)
    assert totals.flush().counters == {HITS: 4}


def test_gauges_are_in_every_flush() -> None:
    totals = Totals()
    totals.absorb(StatisticsDelta("front-1", gauges={"g": 7}), 0.0)
    assert [totals.flush().gauges for _ in range(2)] == [{"g": 7}] * 2


def test_a_series_that_began_again_with_more_than_it_had() -> None:
    """A difference of totals would miss what it had before."""
    totals = Totals()
    totals.absorb(hit(1), 0.0)
    assert totals.flush().counters == {HITS: 1}
    totals.absorb(hit(5), DYNAMIC_SERIES_IDLE_S)
    assert totals.flush().counters == {HITS: 5}


def test_a_series_of_requests_that_becomes_a_rules_is_handed_on_once() -> None:
    totals = Totals()
    totals.absorb(hit(2), 0.0)
    assert totals.flush().counters == {HITS: 2}
    totals.absorb(hit(3, is_dynamic=False), 0.0)
    assert totals.flush().counters == {HITS: 3}


def test_what_nobody_took_before_it_was_forgotten_is_counted() -> None:
    totals = Totals()
    totals.flush()
    totals.absorb(hit(2), 0.0)
    totals.absorb(StatisticsDelta("front-1"), DYNAMIC_SERIES_IDLE_S)
    assert totals.flush().counters == {LOST: 1}


def test_where_nobody_takes_anything_nothing_is_lost() -> None:
    totals = Totals()
    totals.absorb(hit(2), 0.0)
    totals.absorb(StatisticsDelta("front-1"), DYNAMIC_SERIES_IDLE_S)
    assert LOST not in totals.counters()


def test_a_successor_does_not_add_what_a_partition_counted_before() -> None:
    totals = ProcessTotals(10, is_successor=True)
    for calls in (1_000, 1_007):
        totals.absorb_partition("partition-0", {"pid": 1, "calls": calls}, 0.0)
    assert totals.flush().counters[CALLS] == 7


def test_the_first_one_adds_all_that_a_partition_counted() -> None:
    totals = ProcessTotals(10)
    totals.absorb_partition("partition-0", {"pid": 1, "calls": 5}, 0.0)
    assert totals.flush().counters[CALLS] == 5
