"""What operators see of counters that are lent, and how they set one to 0."""

from concurrent.futures import ThreadPoolExecutor

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tollgate.actors.ratelimit.counting.counter_row import CounterReset
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.lent_counting.partition import RESETS_MAX, TOO_MANY_RESETS

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
            branch.rest(0.02)
        return asked.result()


def branch_with_two_counters() -> Branch:
    """A front has counted 7 hits of `a` and 2 of `b`."""
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    hit(branch, b"a", 7)
    hit(branch, b"b", 2)
    branch.rest(1)
    return branch


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
    branch = branch_with_two_counters()
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


def test_pages_hold_all_that_is_wanted() -> None:
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    keys = {b"key %d" % number for number in range(3_000)}
    for key in keys:
        hit(branch, key)
    branch.rest(1)
    partition = branch.partitions[0]
    pages = [partition.list_counters(lambda key: key.endswith(b"7"), None)]
    while pages[-1].after is not None:
        pages.append(partition.list_counters(lambda key: key.endswith(b"7"), pages[-1].after))
    assert len(pages) > 2
    listed = sorted(row.key for page in pages for row in page.rows)
    assert listed == sorted(key for key in keys if key.endswith(b"7"))


def test_so_many_resets_wait_and_the_next_one_is_told_at_once() -> None:
    branch = branch_with_two_counters()
    partition = branch.partitions[0]
    with ThreadPoolExecutor(RESETS_MAX) as operators:
        asked = [
            operators.submit(partition.reset_counters, [b"a"], PATIENCE_S)
            for _ in range(RESETS_MAX)
        ]
        try:
            while partition.describe()["resetting"] < RESETS_MAX:
                pass  # (they are on their way, in threads)
            (refused,) = partition.reset_counters([b"b"], PATIENCE_S)
            listed = partition.list_counters(lambda key: True, None).rows
        finally:
            while not all(each.done() for each in asked):
                branch.rest(0.02)
    assert (refused.row.hits, refused.failure) == (2, TOO_MANY_RESETS)
    assert sorted(row.hits for row in listed) == [2, 7]
    assert [each.result()[0].failure for each in asked] == [None] * RESETS_MAX
    assert sorted(row.hits for row in partition.find_counters([b"a", b"b"])) == [0, 2]
    (done,) = reset(branch, b"b")
    assert done.failure is None
