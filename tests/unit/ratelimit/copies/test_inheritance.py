"""A new process finds the best copy, and knows no less than that and its journal together."""

from math import inf

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.copied_counters import Street
from tests.support.ratelimit.journals import columns, counts_of
from tollgate.actors.ratelimit.copies.inheritance import found_copy, larger_of_both
from tollgate.actors.ratelimit.copies.messages import CopyOrigin, CopyPage, CopyPart
from tollgate.actors.ratelimit.copies.shelf import CopyShelf
from tollgate.actors.ratelimit.lending.terms import Terms

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


def test_of_each_counter_the_larger_number_is_known() -> None:
    journal = [(END_S, [b"a", b"b"], [9, 1]), (END_S, [b"a"], [2])]
    copy = columns({(END_S, b"a"): 3, (END_S, b"b"): 0, (END_S, b"c"): 0, (END_S + 60, b"a"): 1})
    assert counts_of(larger_of_both(journal, copy)) == {
        (END_S, b"a"): 3,
        (END_S, b"b"): 1,
        (END_S, b"c"): 0,
        (END_S + 60, b"a"): 1,
    }


def test_a_journal_alone_is_as_it_was_written() -> None:
    journal = [(END_S, [b"a"], [9]), (END_S, [b"a"], [2])]
    assert list(larger_of_both(iter(journal), [])) == journal
