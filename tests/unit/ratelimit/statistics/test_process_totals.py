"""The totals of all processes: what counter partitions say of themselves."""

from tollgate.actors.operations.process_totals import (
    CALLS,
    CLOCK_OFFSET,
    COPIED,
    COPY_AGE,
    ENTRIES,
    EVICTED,
    LOANS,
    SNAPSHOT_AGE,
    SNAPSHOT_BYTES,
    SNAPSHOT_FAILURES,
    ProcessTotals,
)

SNAPSHOT = {"snapshot_age_s": 0, "snapshot_bytes": 0, "snapshot_failures": 0}


def described(**said: int) -> dict[str, int]:
    return {"pid": 7, "counters": 0, "evicted": 0, **said}


def test_sizes_add_up_and_of_ages_the_oldest_counts() -> None:
    totals = ProcessTotals(10)
    snapshot = {**SNAPSHOT, "snapshot_age_s": 90, "snapshot_bytes": 500}
    totals.absorb_partition("partition-0", described(counters=3, **snapshot), 0)
    totals.absorb_partition("partition-1", described(counters=4, **SNAPSHOT), 0)
    gauges = totals.statistics().gauges
    assert gauges[ENTRIES] == 7
    assert gauges[SNAPSHOT_AGE] == 90
    assert gauges[SNAPSHOT_BYTES] == 500


def test_counts_go_on_when_a_partition_has_started_again() -> None:
    totals = ProcessTotals(10)
    for evicted, failures in [(5, 1), (6, 3), (2, 1), (2, 1), (3, 2)]:
        snapshot = {**SNAPSHOT, "snapshot_failures": failures}
        said = described(evicted=evicted, calls=10 * evicted, **snapshot)
        totals.absorb_partition("partition-0", said, 0)
    counters = totals.statistics().counters
    assert counters[EVICTED] == 6 + 3
    assert counters[CALLS] == 60 + 30
    assert counters[SNAPSHOT_FAILURES] == 3 + 2


def test_a_partition_without_snapshots_shows_none() -> None:
    totals = ProcessTotals(10)
    totals.absorb_partition("partition-0", described(), 0)
    statistics = totals.statistics()
    assert SNAPSHOT_AGE not in statistics.gauges
    assert SNAPSHOT_FAILURES not in statistics.counters


def test_loans_add_up_and_of_clocks_the_worst_counts() -> None:
    totals = ProcessTotals(10)
    totals.absorb_partition("partition-0", described(loans=3, clock_offset_ms=4), 0)
    totals.absorb_partition("partition-1", described(loans=2, clock_offset_ms=90), 0)
    gauges = totals.statistics().gauges
    assert (gauges[LOANS], gauges[CLOCK_OFFSET]) == (5, 90)


def test_copies_add_up_and_of_their_ages_the_oldest_counts() -> None:
    totals = ProcessTotals(10)
    totals.absorb_partition("partition-0", described(copied_counters=3, copy_age_s=70), 0)
    totals.absorb_partition("partition-1", described(copied_counters=4), 0)
    gauges = totals.statistics().gauges
    assert (gauges[COPIED], gauges[COPY_AGE]) == (7, 70)


def test_fronts_come_first_of_the_processes_and_the_silent_ones_not_at_all() -> None:
    totals = ProcessTotals(10)
    for name in ("payments-4", "catalog-3", "front-9", "front-8"):
        totals.hear(name, 7, 100.0)
    totals.hear("front-1", 7, 0.0)
    assert list(totals.processes(101.0)) == ["front-8", "front-9", "catalog-3", "payments-4"]
