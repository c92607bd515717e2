"""A process of a partition begins with what copies know, and is copied itself from then on.

The partition is real, and so are the threads; the others are in this process.
"""

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.copied_counters import Street
from tests.support.ratelimit.journals import Counts, columns, counts_of
from tollgate.actors.ratelimit.copies.messages import CopyOrigin, CopyPart
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.messages import Progress
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.partition import LendingPartition
from tollgate.actors.ratelimit.lent_counting.survival import Survival

NOW_S = 1_000_000
END_S = 1_003_600
TERMS = Terms()
HELD: Counts = {(END_S, b"k"): 7, (END_S, b"other"): 1}


class Successor:
    """A process of partition 0 of two that live on different nodes; the other one holds a copy."""

    def __init__(self, incarnation: int) -> None:
        clock = ManualClock(NOW_S)
        self.shelves = [CopyShelf(TERMS, clock) for _ in range(2)]
        self.street = Street(0, ["here", "there"], self.shelves)
        part = CopyPart(CopyOrigin(0, 1, NOW_S), 0, NOW_S, True, columns(HELD))
        self.shelves[1].take(part)
        self.partition = LendingPartition(
            TERMS, incarnation, clock, is_new=incarnation == 1, is_open=False
        )
        origin = CopyOrigin(0, incarnation, NOW_S)
        self.survival = Survival(
            self.partition, origin, TERMS, clock, None, self.street, self.shelves[0]
        )

    def known(self) -> Counts:
        return counts_of(each for some in self.partition.everything() for each in some)


def test_it_knows_what_the_copy_knows() -> None:
    successor = Successor(2)
    successor.survival.begin()
    assert successor.known() == HELD
    assert successor.survival.finish()


def test_it_knows_the_resets_that_the_copy_knows() -> None:
    successor = Successor(2)
    resets = columns({(END_S, b"k"): 4, (END_S - 7_200, b"k"): 4})
    part = CopyPart(CopyOrigin(0, 1, NOW_S), 1, NOW_S, True, [], Progress(1, 1, 2, resets))
    successor.shelves[1].take(part)
    successor.survival.begin()
    lender = successor.partition._restored
    assert lender is not None
    known = lender.counters.resets
    assert (len(known), known.epoch((END_S, b"k"))) == (1, 4), "of windows that are open"
    assert successor.survival.finish()


def test_the_first_of_all_asks_nobody() -> None:
    successor = Successor(1)
    successor.survival.begin()
    assert successor.known() == {}
    assert successor.survival.finish()


def test_what_ends_in_order_has_told_its_neighbour() -> None:
    successor = Successor(1)
    # (of an earlier life of the whole: there is nobody with an incarnation below the first)
    successor.shelves[1] = CopyShelf(TERMS, ManualClock(NOW_S))
    successor.survival.begin()
    successor.partition.restore(columns(HELD))
    assert successor.survival.finish()
    assert counts_of(successor.shelves[1].page(0, 0).counters) == HELD
    assert successor.survival.describe()["copy_age_s"] == 0


def test_a_partition_alone_is_not_copied() -> None:
    clock = ManualClock(NOW_S)
    partition = LendingPartition(TERMS, 2, clock, is_new=False)
    shelf = CopyShelf(TERMS, clock)
    survival = Survival(partition, CopyOrigin(0, 2, NOW_S), TERMS, clock, None, None, shelf)
    survival.begin()
    assert survival.describe() == {}
    assert survival.finish()
