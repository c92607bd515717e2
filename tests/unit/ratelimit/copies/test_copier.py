"""A copier finds a partition on another node, tells it what changes, and finds the next one."""

import logging

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.copied_counters import CopiedSource, Street
from tests.support.ratelimit.journals import Counts, counts_of
from tollgate.actors.ratelimit.copies.copier import (
    LOOK_EVERY_S,
    PARTS_PER_TURN_MAX,
    SILENCES_MAX,
    Copier,
)
from tollgate.actors.ratelimit.copies.feed import COUNTERS_PER_PART_MAX, CopyFeed
from tollgate.actors.ratelimit.copies.messages import CopyOrigin, CopyPart
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.messages import CounterColumns
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms

NOW_S = 1_000_000
END_S = 1_003_600
ORIGIN = CopyOrigin(0, 1, NOW_S)


class House:
    """Partition 0 of three with its copier, by default next to one on the same node."""

    def __init__(self, nodes: list[str | None] | None = None) -> None:
        self.clock = ManualClock(NOW_S)
        self.source = CopiedSource()
        shelves = [CopyShelf(Terms(), self.clock) for _ in range(3)]
        self.street = Street(0, nodes or ["here", "here", "there"], shelves)
        feed = CopyFeed(self.source, ORIGIN, self.clock)
        self.copier = Copier(feed, shelves[0], self.street, self.clock)

    def held(self, holder: int) -> Counts:
        page = self.street.shelves[holder].page(0, 0)
        assert page.after is None
        return counts_of(page.counters)

    def holders(self) -> set[int]:
        """Who was given parts since this was asked."""
        given, self.street.given = self.street.given, []
        return {number for number, _ in given}

    def look_again(self) -> None:
        self.clock.advance(LOOK_EVERY_S)
        self.copier.turn()


def test_the_next_one_elsewhere_holds_the_copy() -> None:
    house = House()
    house.source.set(END_S, b"k", 3)
    house.copier.turn()
    assert house.held(2) == {(END_S, b"k"): 3}
    house.source.set(END_S, b"k", 4)
    house.copier.turn()
    assert house.held(2) == {(END_S, b"k"): 4}
    assert house.holders() == {2}
    assert house.copier.describe() == {"copied_counters": 0, "copy_age_s": 0}


def test_on_one_node_nothing_is_copied_or_remembered() -> None:
    house = House(["here", "here", "here"])
    for _ in range(3):
        house.look_again()
    assert house.holders() == set()
    assert not house.source.is_copied
    assert house.copier.describe() == {"copied_counters": 0}


def test_a_node_that_comes_later_is_found() -> None:
    house = House(["here", "here", "here"])
    house.copier.turn()
    house.street.nodes[1] = "there"
    house.copier.turn()
    assert house.holders() == set()
    house.look_again()
    assert house.holders() == {1}


def test_a_silent_holder_is_left_for_the_next_one() -> None:
    house = House(["here", "there", "yonder"])
    house.source.set(END_S, b"k", 3)
    house.copier.turn()
    house.street.nodes[1] = None
    house.source.set(END_S, b"k", 4)
    for _ in range(SILENCES_MAX):
        house.copier.turn()
    house.look_again()
    assert house.held(2) == {(END_S, b"k"): 4}


def test_a_holder_that_is_away_for_a_moment_misses_nothing() -> None:
    house = House()
    house.copier.turn()
    house.street.nodes[2] = None
    house.source.set(END_S, b"k", 4)
    house.copier.turn()
    house.street.nodes[2] = "there"
    house.copier.turn()
    assert house.held(2) == {(END_S, b"k"): 4}


def test_the_age_grows_while_the_only_other_node_is_away() -> None:
    house = House(["here", "there", "there"])
    house.copier.turn()
    house.street.nodes[1:] = [None, None]
    for _ in range(3):
        house.look_again()
    assert house.copier.describe()["copy_age_s"] == 3 * LOOK_EVERY_S
    house.street.nodes[1:] = ["here", "here"]
    house.look_again()
    house.look_again()
    assert "copy_age_s" not in house.copier.describe()


def test_a_holder_that_has_moved_here_is_left() -> None:
    house = House(["here", "there", "yonder"])
    house.copier.turn()
    house.street.nodes[1] = "here"
    house.source.set(END_S, b"k", 4)
    house.copier.turn()
    house.look_again()
    assert house.held(2) == {(END_S, b"k"): 4}


def test_a_holder_that_has_started_again_is_told_everything() -> None:
    house = House()
    house.source.set(END_S, b"k", 3)
    house.copier.turn()
    house.street.shelves[2] = CopyShelf(Terms(), house.clock)
    house.source.set(END_S, b"other", 1)
    house.copier.turn()
    assert house.held(2) == {(END_S, b"k"): 3, (END_S, b"other"): 1}


def test_a_process_that_has_a_successor_ends_copying(caplog: pytest.LogCaptureFixture) -> None:
    house = House()
    later = CopyPart(CopyOrigin(0, 2, NOW_S), 0, NOW_S, True, [])
    house.street.shelves[2].take(later)
    house.source.set(END_S, b"k", 3)
    with caplog.at_level(logging.ERROR, "tollgate.counters"):
        house.copier.turn()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    house.holders()
    house.look_again()
    assert house.holders() == set()
    assert house.held(2) == {}


def test_a_turn_says_no_more_than_it_may() -> None:
    house = House()
    house.copier.turn()
    house.holders()
    extra = 10
    for number in range(PARTS_PER_TURN_MAX * COUNTERS_PER_PART_MAX + extra):
        house.source.set(END_S, b"%d" % number, 1)
    house.copier.turn()
    assert len(house.street.given) == PARTS_PER_TURN_MAX
    assert house.street.shelves[2].counters == PARTS_PER_TURN_MAX * COUNTERS_PER_PART_MAX
    house.copier.turn()
    assert house.street.shelves[2].counters == len(house.source.counts)


def test_it_lets_windows_of_copies_end() -> None:
    house = House()
    part = CopyPart(CopyOrigin(1, 1, NOW_S), 0, NOW_S, True, [(NOW_S + 10, [b"k"], [1])])
    house.street.shelves[0].take(part)
    assert house.copier.describe()["copied_counters"] == 1
    house.clock.advance(SLOTS)
    house.copier.turn()
    assert house.copier.describe()["copied_counters"] == 0


def test_what_changes_all_the_time_is_told_once_a_turn() -> None:
    house = House()
    house.copier.turn()
    house.holders()
    changed = house.source.changed_since_copied

    def changing(counters_max: int) -> list[CounterColumns]:
        house.source.set(END_S, b"k", len(house.street.given) + 1)
        return changed(counters_max)

    house.source.changed_since_copied = changing  # type: ignore[method-assign]
    house.copier.turn()
    assert len(house.street.given) == 1
    assert house.copier.describe()["copy_age_s"] == 0
