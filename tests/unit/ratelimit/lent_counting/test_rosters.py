"""The fronts of a partition are written down before they are lent anything, and heard by the next
incarnation."""

from collections.abc import Collection

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition

NOW_S = 1_000_000
END_S = 1_003_600
FRONTS = frozenset({"front 0", "front 1"})


class ListedFronts:
    """A roster in memory. `written`: what it was, each time."""

    def __init__(self, left: Collection[str] | None = None, *, can_be_written: bool = True) -> None:
        self._left = left
        self._can_be_written = can_be_written
        self.written: list[frozenset[str]] = []

    def left(self) -> Collection[str] | None:
        return self._left

    def write(self, fronts: Collection[str]) -> bool:
        self.written.append(frozenset(fronts))
        return self._can_be_written


def branch_with(roster: ListedFronts, *, incarnation: int = 1) -> Branch:
    """Two fronts and a partition that keeps this roster."""
    branch = Branch(ManualClock(NOW_S), fronts=2)
    replace(branch, roster, incarnation)
    return branch


def replace(branch: Branch, roster: ListedFronts, incarnation: int) -> None:
    is_new = incarnation == 1
    partition = LendingPartition(
        branch.terms, incarnation, branch.clock, is_new=is_new, roster=roster
    )
    branch.partitions[0] = partition
    for channels in branch.channels:
        channels[0].partition = partition


def count(branch: Branch, front: int) -> object:
    hits = [LimitedHits(END_S, [b"k"], [1], [100])]
    return branch.fronts[front].hit({0: hits}, NOW_S)[0]


def test_who_comes_is_written_down_once() -> None:
    roster = ListedFronts()
    branch = branch_with(roster)
    for _ in range(5):
        branch.exchange()
    assert roster.written[-1] == FRONTS
    assert len(roster.written) == len(FRONTS)


def test_who_goes_is_written_down() -> None:
    roster = ListedFronts()
    branch = branch_with(roster)
    branch.exchange()
    branch.channels[1][0].is_cut = True
    for _ in range(3):
        branch.rest(2 * (branch.terms.term_s + branch.terms.margin_s))
    assert roster.written[-1] == {"front 0"}


def test_one_that_cannot_be_written_is_not_tried_again() -> None:
    roster = ListedFronts(can_be_written=False)
    branch = branch_with(roster)
    branch.rest(1)
    assert len(roster.written) == 1
    assert count(branch, 0) == [[1]]


def test_it_has_asked_around_when_all_have_told() -> None:
    branch = branch_with(ListedFronts())
    branch.exchange()
    assert [count(branch, 0), count(branch, 0)] == [[[1]], [[2]]]
    roster = ListedFronts(FRONTS)
    replace(branch, roster, 2)
    branch.rest(1)
    assert branch.partitions[0].describe()["slots_lent"], "what they have was told"
    # (nothing is listed while it asks around)
    found = branch.partitions[0].find_counters([b"k"])
    assert [row.hits for row in found] == [2]
    assert roster.written[-1] == FRONTS


def test_until_all_have_told_those_who_have_not_stay_on_it() -> None:
    branch = branch_with(ListedFronts())
    branch.exchange()
    branch.channels[1][0].is_cut = True
    roster = ListedFronts(FRONTS)
    replace(branch, roster, 2)
    branch.rest(1)
    assert roster.written == [FRONTS]
    branch.rest(branch.terms.term_s + branch.terms.margin_s)
    assert roster.written[-1] == {"front 0"}


def test_who_knows_nobody_writes_nothing_down_while_it_asks_around() -> None:
    branch = branch_with(ListedFronts())
    branch.exchange()
    roster = ListedFronts(None)
    replace(branch, roster, 2)
    branch.rest(1)
    assert roster.written == []
    branch.rest(branch.terms.term_s + branch.terms.margin_s)
    assert roster.written[-1] == FRONTS
