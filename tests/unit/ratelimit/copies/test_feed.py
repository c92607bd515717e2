"""The parts of a copy: all counters first, then what changes; nothing is lost with an answer."""

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.copied_counters import CopiedSource
from tests.support.ratelimit.journals import Counts, counts_of
from tollgate.actors.ratelimit.copies.feed import COUNTERS_PER_PART_MAX, SAID_EVERY_S, CopyFeed
from tollgate.actors.ratelimit.copies.messages import CopyOrigin, CopyPart
from tollgate.actors.ratelimit.lending.messages import Progress

NOW_S = 1_000_000
END_S = 1_003_600
ORIGIN = CopyOrigin(0, 1, NOW_S)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_S)


@pytest.fixture
def source() -> CopiedSource:
    return CopiedSource()


@pytest.fixture
def feed(source: CopiedSource, clock: ManualClock) -> CopyFeed:
    begun = CopyFeed(source, ORIGIN, clock)
    begun.begin_anew()
    return begun


def told(feed: CopyFeed) -> list[CopyPart]:
    """All that there is to say, each part answered as it should be."""
    parts = []
    while (part := feed.part()) is not None:
        parts.append(part)
        feed.be_answered(part.number + 1)
    return parts


def counts_in(parts: list[CopyPart]) -> Counts:
    return counts_of(columns for part in parts for columns in part.counters)


def test_everything_comes_first_in_parts_of_a_bounded_size(
    feed: CopyFeed, source: CopiedSource
) -> None:
    for number in range(3 * COUNTERS_PER_PART_MAX):
        source.counts[END_S, b"%d" % number] = number
    parts = told(feed)
    assert counts_in(parts) == source.counts
    sizes = [sum(len(keys) for _, keys, _ in part.counters) for part in parts]
    assert sizes == [COUNTERS_PER_PART_MAX] * 3
    assert [part.is_whole for part in parts] == [False, False, True]
    assert [part.number for part in parts] == [0, 1, 2]


def test_a_column_that_is_too_long_for_a_part_is_cut(feed: CopyFeed, source: CopiedSource) -> None:
    keys = [b"%d" % number for number in range(COUNTERS_PER_PART_MAX + 1)]
    column = (END_S, keys, list(range(len(keys))))
    source.begin_copy = lambda: iter([[column]])  # type: ignore[method-assign]
    first, second = told(feed)
    assert [keys for _, keys, _ in first.counters] == [keys[:-1]]
    assert second.counters == [(END_S, keys[-1:], [COUNTERS_PER_PART_MAX])]


def test_what_changes_follows_once(feed: CopyFeed, source: CopiedSource) -> None:
    (empty,) = told(feed)
    assert empty.is_whole
    assert not empty.counters
    source.set(END_S, b"k", 1)
    source.set(END_S, b"k", 2)
    assert counts_in(told(feed)) == {(END_S, b"k"): 2}
    assert told(feed) == []


def test_an_unanswered_part_is_said_again_as_it_was(feed: CopyFeed, source: CopiedSource) -> None:
    told(feed)
    source.set(END_S, b"k", 1)
    part = feed.part()
    source.set(END_S, b"k", 2)
    assert feed.part() is part
    feed.be_answered(2)
    assert counts_in(told(feed)) == {(END_S, b"k"): 2}


def test_a_holder_that_has_lost_the_copy_is_told_everything(
    feed: CopyFeed, source: CopiedSource
) -> None:
    source.counts[END_S, b"k"] = 7
    told(feed)
    source.set(END_S, b"other", 1)
    assert feed.part() is not None
    feed.be_answered(0)
    assert counts_in(told(feed)) == {(END_S, b"k"): 7, (END_S, b"other"): 1}


def test_a_word_now_and_then_says_that_it_is_there(feed: CopyFeed, clock: ManualClock) -> None:
    told(feed)
    assert told(feed) == []
    clock.advance(SAID_EVERY_S)
    (part,) = told(feed)
    assert (part.number, part.is_whole, part.counters) == (1, True, [])
    assert told(feed) == []


def test_nothing_is_said_before_there_is_something(feed: CopyFeed, source: CopiedSource) -> None:
    source.is_there = False
    assert feed.part() is None
    source.is_there = True
    assert len(told(feed)) == 1


def test_the_age_is_that_of_what_the_holder_lacks(
    feed: CopyFeed, source: CopiedSource, clock: ManualClock
) -> None:
    told(feed)
    assert feed.age_s == 0
    source.set(END_S, b"k", 1)
    assert feed.part() is not None
    clock.advance(5)
    assert feed.age_s == 5
    feed.be_answered(2)
    told(feed)
    assert feed.age_s == 0


def test_who_should_be_told_and_is_away_lets_the_age_grow(
    feed: CopyFeed, source: CopiedSource, clock: ManualClock
) -> None:
    told(feed)
    feed.pause()
    assert not source.is_copied
    clock.advance(9)
    assert feed.age_s == 9
    feed.begin_anew()
    assert feed.age_s == 9
    told(feed)
    assert source.is_copied
    assert feed.age_s == 0


def test_nobody_to_be_told_is_no_age(feed: CopyFeed, source: CopiedSource) -> None:
    told(feed)
    feed.stop()
    assert feed.age_s is None
    assert not source.is_copied


def test_a_part_says_how_far_it_has_got_once_all_has_been_told(
    feed: CopyFeed, source: CopiedSource
) -> None:
    source.set(END_S, b"a", 1)
    everything, changed = (part.progress for part in told(feed))
    assert (everything.change, everything.handed_out) == (1, None)
    assert (changed.change, changed.handed_out) == (1, 1)


def test_resets_are_said_until_they_are_heard_of(
    feed: CopyFeed, source: CopiedSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def progress(after_reset: int) -> Progress:
        asked.append(after_reset)
        return Progress(reset=7)

    monkeypatch.setattr(source, "copy_progress", progress)
    told(feed)
    source.set(END_S, b"a", 1)
    assert feed.part() is feed.part()
    feed.be_answered(2)
    source.set(END_S, b"a", 2)
    feed.part()
    assert asked == [0, 7, 7]
    feed.be_answered(0)  # (the holder has lost the copy)
    feed.part()
    assert asked == [0, 7, 7, 0]
