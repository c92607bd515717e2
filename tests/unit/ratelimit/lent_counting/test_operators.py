"""What operators see of counters that are lent, and how they set one to 0."""

from concurrent.futures import ThreadPoolExecutor

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tollgate.actors.ratelimit.counting.counter_row import CounterReset
from tollgate.actors.ratelimit.counting.counters import LimitedHits

NOW_S = 1_000_000
END_S = 1_003_600
PATIENCE_S = 5.0


def hit(branch: Branch, key: bytes, by: int = 1, front: int = 0) -> object:
    hits = [LimitedHits(END_S, [key], [by], [100])]
    return branch.fronts[front].hit({0: hits}, NOW_S)[0]


def reset(branch: Branch, key: bytes) -> list[CounterReset]:
    """Reset, while everybody's background work goes on."""
    partition = branch.partitions[0]
    with ThreadPoolExecutor(1) as operator:
        asked = operator.submit(partition.reset_counters, [key], PATIENCE_S)
        while not asked.done():
            branch.exchange()
        return asked.result()


def test_counters_that_are_lent_are_listed_with_who_has_them() -> None:
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    hit(branch, b"a", 3)
    hit(branch, b"b", 1)
    branch.rest(1)
    partition = branch.partitions[0]
    page = partition.list_counters(lambda key: key == b"a", None)
    assert page.after is None
    (row,) = page.rows
    assert (row.end_s, row.key, row.hits, row.holder) == (END_S, b"a", 3, "front 0")
    assert partition.find_counters([b"b", b"none"])[0].hits == 1
    described = partition.describe()
    assert (described["slots_lent"], described["fronts"], described["resets"]) == (256, 1, 0)


def test_a_counter_that_a_front_has_begins_again_at_0() -> None:
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    hit(branch, b"a", 7)
    hit(branch, b"b", 2)
    branch.rest(1)
    (done,) = reset(branch, b"a")
    assert (done.row.hits, done.failure) == (7, None)
    branch.exchange()
    assert hit(branch, b"a") == [[1]]
    assert hit(branch, b"b") == [[3]]
    assert branch.partitions[0].describe()["resets"] == 1
    assert branch.fronts[0].resets == 1


def test_a_counter_that_is_nowhere_is_no_reset() -> None:
    branch = Branch(ManualClock(NOW_S))
    assert branch.partitions[0].reset_counters([b"a"], PATIENCE_S) == []
    assert branch.partitions[0].list_counters(bool, None).rows == []
    branch.exchange()
    assert reset(branch, b"a") == []


def test_hits_wait_for_no_more_than_a_thousand_counters() -> None:
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    keys = {b"key %d" % number for number in range(3_000)}
    for key in keys:
        hit(branch, key)
    branch.rest(1)
    partition = branch.partitions[0]
    pages = [partition.list_counters(lambda key: True, None)]
    while pages[-1].after is not None:
        pages.append(partition.list_counters(lambda key: True, pages[-1].after))
    assert all(len(page.rows) <= 1_100 for page in pages)
    assert sorted(row.key for page in pages for row in page.rows) == sorted(keys)
