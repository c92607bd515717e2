"""How a partition that starts again puts its counters together from what fronts tell."""

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import CounterName, ToldAll, ToldNote, ToldNotes
from tollgate.actors.ratelimit.lending.notes import EARLIER_MAX, Notes
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.recovery import Recovery
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of

COUNTER: CounterName = (60, b"k")
TERMS = Terms(term_s=8.0, margin_s=2.0, recovery_max_s=30.0)
SLOT = slot_of(b"k")


def told(part: int, epoch: int, *, is_whole: bool = False) -> ToldNote:
    return ToldNote(COUNTER, part, epoch, is_whole, None, 0, 0)


def count(*notes: ToldNote) -> int:
    recovery = Recovery(TERMS, 0.0, None)
    recovery.tell_notes(list(notes))
    return sum(part for _, part in recovery.parts())


def test_the_parts_of_all_fronts_add_up() -> None:
    assert count(told(3, 0), told(4, 0), told(-1, 0)) == 6


def test_who_had_the_slot_whole_tells_for_everybody_until_then() -> None:
    assert count(told(3, 1), told(9, 2, is_whole=True), told(2, 2)) == 11


def test_who_had_it_whole_last_may_be_lost() -> None:
    assert count(told(9, 2, is_whole=True), told(2, 3), told(1, 2)) == 12


def test_a_front_remembers_its_part_until_then_in_case_they_are() -> None:
    notes = Notes(Terms())
    notes.add_part(COUNTER, 3, 1)
    notes.add_part(COUNTER, 4, 2)
    assert count(*notes.told()) == 7
    assert count(*notes.told(), told(9, 2, is_whole=True)) == 13


def test_it_remembers_as_much_however_often_the_partition_starts_again() -> None:
    notes = Notes(Terms())
    for epoch in range(1, 11):
        notes.add_part(COUNTER, 1, epoch)
    assert count(*notes.told()) == 10
    assert len(list(notes.told())) == 1 + EARLIER_MAX
    notes.keep_whole((60, b"other"), 7, 1)
    for epoch in range(2, 11):
        notes.add_part((60, b"other"), 1, epoch)
    assert count(*notes.told()) == 10 + 16


def test_nothing_is_added_to_a_slot_that_somebody_has() -> None:
    recovery = Recovery(TERMS, 0.0, None)
    recovery.tell_notes([told(3, 1)])
    assert recovery.tell_slot("front", SLOT, 2)
    assert list(recovery.parts()) == []
    assert dict(recovery.epochs()) == {SLOT: 2}


def test_of_two_who_say_that_they_have_a_slot_the_later_one_does() -> None:
    recovery = Recovery(TERMS, 0.0, None)
    assert recovery.tell_slot("a", SLOT, 3)
    assert recovery.tell_slot("a", SLOT, 3)
    assert not recovery.tell_slot("b", SLOT, 2)
    assert recovery.tell_slot("b", SLOT, 4)


def test_it_ends_when_all_have_told_or_all_loans_have_run_out() -> None:
    recovery = Recovery(TERMS, 0.0, ["a", "b"])
    recovery.tell_all("a")
    assert not recovery.is_over(9.9)
    assert recovery.is_over(10.0)
    recovery.tell_all("b")
    assert recovery.is_over(0.0)
    assert not Recovery(TERMS, 0.0, None).is_over(9.9)


def test_it_waits_for_who_is_still_telling_but_not_for_ever() -> None:
    recovery, counters = Recovery(TERMS, 0.0, None), LentCounters(TERMS, lambda *_: None)
    for at_s in (9.5, 10.4):
        recovery.be_told("a", ToldNotes([told(1, 1)]), counters, 0.0, at_s)
    assert not recovery.is_over(11.0)
    assert recovery.is_over(10.4 + 2 * TERMS.resend_s + 0.1)
    recovery.be_told("a", ToldNotes([told(1, 1)]), counters, 0.0, 29.9)
    assert not recovery.is_over(29.9)
    assert recovery.is_over(30.0)
    recovery.be_told("a", ToldAll(), counters, 0.0, 29.9)
    assert recovery.is_over(29.9)


def test_what_it_keeps_is_bounded() -> None:
    recovery, counters = Recovery(TERMS, 0.0, None), LentCounters(TERMS, lambda *_: None)
    recovery._terms = Terms(counters_max=2)
    for number in range(9):
        for _ in range(2):
            recovery.tell_notes([ToldNote((60, b"key %d" % number), 1, 1, False, None, 0, 0)])
    assert len(recovery) == 8
    assert [part for _, part in recovery.parts()] == [2] * 8
    recovery.end(counters)
    assert counters.table.evicted == 2


def test_the_roster_names_all_who_may_hold_something() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.silent = {1}
    pair.exchange()
    assert pair.partition.roster == {"front 0"}
    pair.silent = set()
    pair.rest(1.0)
    assert pair.partition.roster == {"front 0", "front 1"}
    again = Lender(pair.terms, 2, pair.now_s, is_new=False, expected=["front 0", "front 1"])
    assert again.roster == {"front 0", "front 1"}
    assert Lender(pair.terms, 2, pair.now_s, is_new=False).roster is None


def test_a_partition_that_knows_them_recovers_as_soon_as_all_have_told() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    roster = pair.partition.roster
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False, expected=roster)
    pair.rest(0.6)
    assert pair.partition.told is None
    assert pair.partition.counters.known(START_S + 60, b"k") == 4
