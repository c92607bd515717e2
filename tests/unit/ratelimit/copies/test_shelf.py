"""Copies that a partition holds: parts in order, of the latest process, in bounded memory."""

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.journals import Counts, columns, counts_of
from tollgate.actors.ratelimit.copies.messages import SUPERSEDED, CopyOrigin, CopyPart
from tollgate.actors.ratelimit.copies.shelf import COPIES_MAX, PAGE_COUNTERS_MIN, CopyShelf
from tollgate.actors.ratelimit.lending.terms import Terms

NOW_S = 1_000_000
END_S = 1_003_600
FIRST = CopyOrigin(3, 1, NOW_S)
SECOND = CopyOrigin(3, 2, NOW_S + 60)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


@pytest.fixture
def shelf(clock: ManualClock) -> CopyShelf:
    return CopyShelf(Terms(), clock)


def part(
    number: int, counts: Counts, origin: CopyOrigin = FIRST, *, is_whole: bool = True
) -> CopyPart:
    return CopyPart(origin, number, NOW_S + number, is_whole, columns(counts))


def held(shelf: CopyShelf, partition: int = 3) -> Counts:
    """All counters of a copy, page by page."""
    found: Counts = {}
    slot: int | None = 0
    while slot is not None:
        page = shelf.page(partition, slot)
        found.update(counts_of(page.counters))
        slot = page.after
    return found


def counter(key: bytes, count: int) -> Counts:
    return {(END_S, key): count}


def test_parts_are_put_together(shelf: CopyShelf) -> None:
    assert shelf.take(part(0, counter(b"a", 1) | counter(b"b", 1), is_whole=False)) == 1
    assert shelf.take(part(1, counter(b"b", 5))) == 2
    assert held(shelf) == counter(b"a", 1) | counter(b"b", 5)
    assert shelf.counters == 2


def test_a_part_that_comes_twice_changes_nothing(shelf: CopyShelf) -> None:
    shelf.take(part(0, counter(b"a", 1)))
    assert shelf.take(part(1, counter(b"a", 2))) == 2
    assert shelf.take(part(1, counter(b"a", 2))) == 2
    assert held(shelf) == counter(b"a", 2)


@pytest.mark.parametrize("number", [2, 3])
def test_behind_a_gap_everything_is_wanted_anew(shelf: CopyShelf, number: int) -> None:
    shelf.take(part(0, counter(b"a", 1)))
    assert shelf.take(part(number, counter(b"a", 9))) == 0
    assert held(shelf) == counter(b"a", 1)
    assert shelf.take(part(0, counter(b"a", 9))) == 1
    assert held(shelf) == counter(b"a", 9)


def test_one_that_knows_nothing_wants_everything(shelf: CopyShelf) -> None:
    assert shelf.take(part(7, counter(b"a", 1))) == 0
    assert shelf.describe_copy(3) is None
    assert held(shelf) == {}


def test_a_later_process_goes_on_where_the_copy_ends(shelf: CopyShelf) -> None:
    shelf.take(part(0, counter(b"a", 1) | counter(b"b", 1)))
    assert shelf.take(part(1, counter(b"a", 2), SECOND)) == 0
    assert shelf.take(part(0, counter(b"a", 3), SECOND, is_whole=False)) == 1
    assert held(shelf) == counter(b"a", 3) | counter(b"b", 1)


def test_an_earlier_process_changes_nothing_any_more(shelf: CopyShelf) -> None:
    shelf.take(part(0, counter(b"a", 5), SECOND))
    assert shelf.take(part(0, counter(b"a", 1), FIRST)) == SUPERSEDED
    assert held(shelf) == counter(b"a", 5)


def test_it_says_whose_copy_is_whole(shelf: CopyShelf) -> None:
    shelf.take(part(0, counter(b"a", 1), is_whole=False))
    description = shelf.describe_copy(3)
    assert description is not None
    assert (description.origin, description.whole_since_s) == (FIRST, None)
    shelf.take(part(1, {}))
    description = shelf.describe_copy(3)
    assert description is not None
    assert (description.sent_s, description.whole_since_s) == (NOW_S + 1, NOW_S)
    shelf.take(part(0, {}, SECOND, is_whole=False))
    description = shelf.describe_copy(3)
    assert description is not None
    assert (description.origin, description.whole_since_s) == (SECOND, None)


def test_windows_end(shelf: CopyShelf, clock: ManualClock) -> None:
    shelf.take(part(0, {(NOW_S + 10, b"a"): 1, (NOW_S - 60, b"long ago"): 1} | counter(b"b", 1)))
    assert held(shelf) == {(NOW_S + 10, b"a"): 1} | counter(b"b", 1)
    clock.advance(60)
    shelf.tick()
    assert held(shelf) == counter(b"b", 1)
    assert shelf.counters == 1


def test_a_copy_has_no_more_counters_than_a_partition(clock: ManualClock) -> None:
    shelf = CopyShelf(Terms(counters_max=2), clock)
    for number, key in enumerate([b"a", b"b", b"a", b"c"]):
        shelf.take(part(number, counter(key, number)))
    assert held(shelf) == counter(b"a", 2) | counter(b"c", 3)


def test_of_too_many_copies_the_one_that_is_silent_for_longest_goes(
    shelf: CopyShelf, clock: ManualClock
) -> None:
    for partition in [*range(COPIES_MAX), 0, COPIES_MAX]:
        clock.advance(1)
        shelf.take(part(0, counter(b"a", 1), CopyOrigin(partition, 1, NOW_S)))
    found = [number for number in range(COPIES_MAX + 1) if shelf.describe_copy(number)]
    assert found == [0, *range(2, COPIES_MAX + 1)]


def test_a_large_copy_has_several_pages(shelf: CopyShelf) -> None:
    counts = {(END_S, b"%d" % number): number for number in range(3 * PAGE_COUNTERS_MIN)}
    shelf.take(part(0, counts))
    assert shelf.page(3, 0).after is not None
    assert held(shelf) == counts
