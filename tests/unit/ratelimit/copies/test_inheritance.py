"""A new process finds the best copy, and knows no less than that and its journal together."""

from math import inf

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.copied_counters import Street
from tests.support.ratelimit.journals import Counts, columns, counts_of
from tollgate.actors.ratelimit.copies.inheritance import FoundCopy, Inheritance, found_copy
from tollgate.actors.ratelimit.copies.messages import (
    CopyDescription,
    CopyOrigin,
    CopyPage,
    CopyPart,
)
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.messages import CounterColumns, Progress
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.snapshots.restoration import JournalLeft

NOW_S = 1_000_000
END_S = 1_003_600
SKEW_S = 5.0


@pytest.fixture
def street() -> Street:
    clock = ManualClock(NOW_S)
    return Street(0, ["here", "there", "there"], [CopyShelf(Terms(), clock) for _ in range(3)])


def hold(
    street: Street,
    holder: int,
    incarnation: int,
    count: int,
    *,
    is_whole: bool = True,
    sent_s: float = NOW_S,
) -> None:
    """Have a partition hold a copy of number 0."""
    origin = CopyOrigin(0, incarnation, NOW_S + incarnation)
    part = CopyPart(origin, 0, sent_s, is_whole, columns({(END_S, b"k"): count}))
    street.shelves[holder].take(part)


def test_nobody_has_one(street: Street) -> None:
    found = found_copy(street, 0, 2, SKEW_S)
    assert (found.counters, found.journals_after_s) == ([], -inf)


@pytest.mark.parametrize("holder", [1, 2])
def test_the_one_of_the_last_process_is_taken(street: Street, holder: int) -> None:
    hold(street, holder, 4, count=7)
    hold(street, 3 - holder, 2, count=9)
    found = found_copy(street, 0, 5, SKEW_S)
    assert counts_of(found.counters) == {(END_S, b"k"): 7}
    assert found.journals_after_s == NOW_S + 4 - SKEW_S


def test_of_two_of_one_process_the_later_one_is_taken(street: Street) -> None:
    hold(street, 1, 2, count=7, sent_s=NOW_S + 1)
    hold(street, 2, 2, count=9, sent_s=NOW_S + 2)
    assert counts_of(found_copy(street, 0, 5, SKEW_S).counters) == {(END_S, b"k"): 9}


def test_one_that_is_not_whole_says_nothing_of_journals(street: Street) -> None:
    hold(street, 1, 1, count=7, is_whole=False)
    found = found_copy(street, 0, 2, SKEW_S)
    assert counts_of(found.counters) == {(END_S, b"k"): 7}
    assert found.journals_after_s == -inf


def test_what_is_lost_on_the_way_is_not_taken_for_whole(street: Street) -> None:
    hold(street, 1, 1, count=7)
    page = CopyPage(columns({(END_S, b"k"): 7}), 1)
    answers = [page, None]
    street.page = lambda *_: answers.pop(0)  # type: ignore[method-assign]
    found = found_copy(street, 0, 2, SKEW_S)
    assert counts_of(found.counters) == {(END_S, b"k"): 7}
    assert found.journals_after_s == -inf


def merged(
    journal: list[CounterColumns], copy: FoundCopy, left: JournalLeft | None = None
) -> tuple[Counts, Counts]:
    """What is known of both: counts, and the epochs of resets."""
    inheritance = Inheritance(copy)
    said = JournalLeft() if left is None else left
    counts = counts_of(inheritance.counters(iter(journal), lambda: said))
    return counts, counts_of(inheritance.resets)


def copy_of(
    counts: Counts, *, mark: int | None = None, last_change: int = 0, resets: Counts | None = None
) -> FoundCopy:
    origin = CopyOrigin(0, 1, NOW_S, b"journal")
    description = CopyDescription(origin, NOW_S, NOW_S, mark, last_change)
    return FoundCopy(columns(counts), -inf, description, columns(resets or {}))


def test_of_each_counter_the_larger_number_is_known() -> None:
    journal = [(END_S, [b"a", b"b"], [9, 1]), (END_S, [b"a"], [2])]
    copy = {(END_S, b"a"): 3, (END_S, b"b"): 0, (END_S, b"c"): 0, (END_S + 60, b"a"): 1}
    assert merged(journal, copy_of(copy))[0] == {
        (END_S, b"a"): 3,
        (END_S, b"b"): 1,
        (END_S, b"c"): 0,
        (END_S + 60, b"a"): 1,
    }


def test_a_journal_alone_is_as_it_was_written() -> None:
    journal = [(END_S, [b"a"], [9]), (END_S, [b"a"], [2])]
    inheritance = Inheritance(FoundCopy([]))
    assert list(inheritance.counters(iter(journal), JournalLeft)) == journal


@pytest.mark.parametrize(
    ("left", "mark", "last_change", "known"),
    [
        pytest.param(JournalLeft(b"journal", 7), 9, 9, 1, id="the copy has all of the journal"),
        pytest.param(JournalLeft(b"journal", 9), 9, 9, 5, id="they are level"),
        pytest.param(JournalLeft(b"journal", 9), 5, 8, 5, id="the journal has all of the copy"),
        pytest.param(JournalLeft(b"journal", 9, True), None, 8, 5, id="it was cut off since"),
        pytest.param(JournalLeft(b"journal", 7), 6, 8, 5, id="neither"),
        pytest.param(JournalLeft(b"journal", 7, True), 9, 9, 5, id="the journal went on"),
        pytest.param(JournalLeft(b"journal", None, True), 9, 9, 5, id="it has no mark"),
        pytest.param(JournalLeft(b"other", 7), 9, 9, 5, id="of another process"),
    ],
)
def test_of_one_process_the_one_that_knows_more_is_believed(
    left: JournalLeft, mark: int | None, last_change: int, known: int
) -> None:
    """Of a counter of which hits were given back between them: the journal has 5, the copy 1."""
    copy = copy_of({(END_S, b"k"): 1, (END_S, b"c"): 3}, mark=mark, last_change=last_change)
    journal = [(END_S, [b"k", b"j"], [5, 4])]
    assert merged(journal, copy, left)[0] == {
        (END_S, b"k"): known,
        (END_S, b"c"): 3,
        (END_S, b"j"): 4,
    }


def test_a_journal_that_knows_all_is_believed_even_when_the_copy_has_more() -> None:
    copy = copy_of({(END_S, b"k"): 9}, mark=5, last_change=8)
    left = JournalLeft(b"journal", 9)
    assert merged([(END_S, [b"k"], [2])], copy, left)[0] == {(END_S, b"k"): 2}


@pytest.mark.parametrize(
    ("in_journal", "in_copy", "known"), [(0, 4, 1), (4, 0, 5), (3, 4, 1), (4, 3, 5), (4, 4, 5)]
)
def test_of_a_counter_that_was_reset_the_one_that_has_heard_of_it_is_believed(
    in_journal: int, in_copy: int, known: int
) -> None:
    name = (END_S, b"k")
    copy = copy_of({name: 1}, resets={name: in_copy} if in_copy else {})
    left = JournalLeft(resets={name: in_journal} if in_journal else {})
    assert merged([(END_S, [b"k"], [5])], copy, left) == ({name: known}, {name: 4})


def test_what_a_copy_says_of_itself_and_of_resets_is_found(street: Street) -> None:
    progress = Progress(9, 7, 1, columns({(END_S, b"k"): 4}))
    origin = CopyOrigin(0, 1, NOW_S, b"journal")
    part = CopyPart(origin, 0, NOW_S, True, columns({(END_S, b"k"): 0}), progress)
    street.shelves[1].take(part)
    found = found_copy(street, 0, 2, SKEW_S)
    assert found.description == CopyDescription(origin, NOW_S, NOW_S, 7, 9)
    assert counts_of(found.resets) == {(END_S, b"k"): 4}
    assert merged([(END_S, [b"k"], [5])], found) == ({(END_S, b"k"): 0}, {(END_S, b"k"): 4})
