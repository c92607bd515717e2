"""A partition that hands out what is kept of it, and begins with what an earlier one has left."""

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tests.support.ratelimit.journals import Counts, counts_of
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition

NOW_S = 1_000_000
END_S = 1_003_600
LEFT: list[CounterColumns] = [(END_S, [b"k", b"other"], [5, 1]), (END_S, [b"k"], [4])]
COUNTED: Counts = {(END_S, b"k"): 4, (END_S, b"other"): 1}


def started(branch: Branch, *, is_new: bool, is_open: bool = True) -> LendingPartition:
    """A partition in the place of the one there, with what was left behind."""
    partition = LendingPartition(
        branch.terms, 2, branch.clock, is_new=is_new, keeps_changes=True, is_open=is_open
    )
    partition.restore(iter(LEFT))
    branch.partitions[0] = partition
    for channels in branch.channels:
        channels[0].partition = partition
    return partition


def everything(partition: LendingPartition) -> Counts:
    return counts_of(each for some in partition.everything() for each in some)


def count(branch: Branch, key: bytes) -> object:
    hits = [LimitedHits(END_S, [key], [1], [100])]
    return branch.fronts[0].hit({0: hits}, NOW_S)[0]


def test_the_first_of_all_goes_on_at_once() -> None:
    branch = Branch(ManualClock(NOW_S))
    partition = started(branch, is_new=True)
    assert everything(partition) == COUNTED
    assert partition.describe()["counters"] == 2
    branch.exchange()
    assert count(branch, b"k") == [[5]]
    branch.rest(1)
    assert everything(partition)[END_S, b"k"] == 5


def test_one_that_starts_again_has_it_before_and_while_it_asks_around() -> None:
    branch = Branch(ManualClock(NOW_S))
    partition = started(branch, is_new=False)
    assert everything(partition) == COUNTED
    assert partition.changed(10) == []
    branch.exchange()  # (the first message)
    assert everything(partition) == COUNTED
    branch.rest(branch.terms.term_s + branch.terms.margin_s + 1)
    assert everything(partition) == COUNTED
    assert count(branch, b"k") == [[5]]
    branch.rest(1)
    assert counts_of(partition.changed(10))[END_S, b"k"] == 5


def test_what_a_front_has_counted_meanwhile_is_more() -> None:
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    assert [count(branch, b"k") for _ in range(6)][-1] == [[6]]
    partition = started(branch, is_new=False)
    branch.exchange()
    branch.rest(branch.terms.term_s + branch.terms.margin_s + 1)
    assert everything(partition)[END_S, b"k"] == 6


def test_what_has_changed_is_handed_out_once() -> None:
    branch = Branch(ManualClock(NOW_S))
    partition = started(branch, is_new=True)
    assert partition.changed(10) == [], "all of it is written first, changed or not"
    branch.exchange()
    assert count(branch, b"k") == [[5]]
    branch.rest(1)
    assert counts_of(partition.changed(10)) == {(END_S, b"k"): 5}
    assert partition.changed(10) == []


def test_one_that_is_not_open_takes_no_message() -> None:
    branch = Branch(ManualClock(NOW_S))
    partition = started(branch, is_new=False, is_open=False)
    branch.exchange()
    assert partition.describe()["fronts"] == 0
    # The time in which fronts tell what they have begins when they are heard.
    branch.rest(branch.terms.term_s + branch.terms.margin_s + 1)
    partition.open()
    branch.rest(1)
    assert partition.describe()["fronts"] == 1
    assert everything(partition) == COUNTED
    branch.rest(branch.terms.term_s + branch.terms.margin_s + 1)
    assert count(branch, b"k") == [[5]]


def test_copies_and_the_journal_are_told_of_changes_by_themselves() -> None:
    branch = Branch(ManualClock(NOW_S))
    partition = LendingPartition(branch.terms, 2, branch.clock, is_new=True)
    assert partition.begin_copy() is None, "nothing was counted yet"
    partition = started(branch, is_new=True)
    everything = partition.begin_copy()
    assert everything is not None
    assert counts_of(each for some in everything for each in some) == COUNTED
    assert partition.changed_since_copied(10) == []
    branch.exchange()
    assert count(branch, b"k") == [[5]]
    branch.rest(1)
    assert counts_of(partition.changed_since_copied(10)) == {(END_S, b"k"): 5}
    assert partition.changed_since_copied(10) == []
    assert counts_of(partition.changed(10)) == {(END_S, b"k"): 5}
    partition.end_copy()
    assert count(branch, b"k") == [[6]]
    branch.rest(1)
    assert partition.changed_since_copied(10) == []


def test_nothing_counts_as_handed_out_before_it_has_asked_around() -> None:
    """Neither what it was told meanwhile, nor what was handed to a holder of its copy before."""
    branch = Branch(ManualClock(NOW_S))
    branch.exchange()
    count(branch, b"k")
    partition = started(branch, is_new=False)
    branch.exchange()
    assert partition.changed(10) == []
    assert partition.progress(0).handed_out is None
    branch.rest(branch.terms.term_s + branch.terms.margin_s + 1)
    while partition.changed(1):
        pass
    told = partition.progress(0)
    assert told.handed_out == told.change > 0
    count(branch, b"k")
    branch.rest(1)
    changed = partition.progress(0)
    assert changed.handed_out == told.handed_out
    assert changed.change > told.change
    partition.begin_copy()
    assert partition.copy_progress(0).handed_out is None
    assert partition.changed_since_copied(10) == []
    assert partition.copy_progress(0).handed_out == changed.change
    partition.begin_copy()
    assert partition.copy_progress(0) == Progress(changed.change)
