"""What a partition hands out to be written down, and takes back when it starts again."""

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import CounterColumns, ToldNote
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.partition.recovery import adopt_loan
from tollgate.actors.ratelimit.lending.partition.slot_table import ChangeReader, SlotTable
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

END_S = START_S + 60
TERMS = Terms()


def table_of(columns: list[CounterColumns]) -> dict[tuple[int, bytes], int]:
    return {
        (end_s, key): count
        for end_s, keys, counts in columns
        for key, count in zip(keys, counts, strict=True)
    }


def everything(lender: Lender) -> dict[tuple[int, bytes], int]:
    return table_of([each for slot in range(SLOTS) for each in lender.counters.columns(slot)])


def start_again(pair: Pair, restored: list[CounterColumns], *, is_new: bool = False) -> None:
    pair.partition = Lender(TERMS, 2, pair.now_s, is_new=is_new, keeps_changes=True)
    pair.partition.restore(restored, START_S + pair.now_s, pair.now_s)


def recover(pair: Pair) -> None:
    for _ in range(6):
        pair.rest(0.5)
    assert pair.partition.told is None


def test_what_has_changed_is_handed_out_once() -> None:
    pair = Pair(TERMS)
    pair.partition = Lender(TERMS, 1, 0.0, is_new=True, keeps_changes=True)
    for number in range(5):
        pair.hit_one(b"key %d" % number, 10)
    pair.hit_one(b"key 0", 10)
    pair.rest(0.2)  # (a report)
    parts = [pair.partition.changed(2) for _ in range(4)]
    assert [len(table_of(part)) for part in parts] == [2, 2, 1, 0]
    assert table_of([each for part in parts for each in part]) == everything(pair.partition)
    assert everything(pair.partition)[END_S, b"key 0"] == 2
    pair.hit_one(b"key 3", 10)
    pair.rest(0.2)
    assert table_of(pair.partition.changed(100)) == {(END_S, b"key 3"): 2}


def test_what_is_spent_of_loans_is_in_it() -> None:
    pair = Pair(TERMS, fronts=2)
    pair.partition = Lender(TERMS, 1, 0.0, is_new=True, keeps_changes=True)
    for front in (0, 1, 0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    pair.partition.changed(100)
    pair.hit_one(b"k", 100, 1)
    pair.hit_one(b"k", 100, 0)
    pair.rest(0.2)
    assert pair.partition.counters.slots[slot_of(b"k")].loans
    assert table_of(pair.partition.changed(100)) == {(END_S, b"k"): 8} == everything(pair.partition)


def test_nothing_is_kept_that_nobody_asks_for() -> None:
    pair = Pair(TERMS)
    pair.hit_one(b"k", 10)
    pair.rest(0.2)
    assert pair.partition.changed(10) == []


def test_changes_end_with_their_windows_and_with_what_is_evicted() -> None:
    table = SlotTable(Terms(counters_max=2), keeps_changes=True)
    for end_s in (END_S, END_S + 3_600):
        table.open_window(end_s, START_S, 0.0)
    table.add(slot_of(b"a"), END_S, b"a", 1)
    table.add(slot_of(b"b"), END_S + 3_600, b"b", 1)
    table.add(slot_of(b"c"), END_S + 3_600, b"c", 1)
    assert [(end_s, sorted(keys)) for end_s, keys in table.take_changes(10)] == [
        (END_S + 3_600, [b"b", b"c"])
    ]
    table.add(slot_of(b"c"), END_S + 3_600, b"c", 1)
    table.end_windows(10_000.0)
    assert table.take_changes(10) == []


def test_a_first_incarnation_goes_on_where_another_was() -> None:
    pair = Pair(TERMS)
    start_again(pair, [(END_S, [b"a", b"b"], [3, 4]), (START_S, [b"ended"], [1])], is_new=True)
    pair.partition.restore([(END_S, [b"b"], [2])], START_S, 0.0)  # (some was given back)
    assert [pair.hit_one(key, 10) for key in (b"a", b"b", b"ended")] == [4, 3, 1]


def test_when_nobody_has_told_of_a_counter_it_is_what_was_restored() -> None:
    pair = Pair(TERMS)
    start_again(pair, [(END_S, [b"k"], [3])])
    assert isinstance(pair.hit_one(b"k", 10), Unreachable)
    assert everything(pair.partition) == {(END_S, b"k"): 3}
    assert pair.partition.changed(10) == []
    recover(pair)
    assert pair.hit_one(b"k", 10) == 4


def test_who_has_a_slot_whole_knows_better() -> None:
    pair = Pair(TERMS)
    pair.hit_one(b"k", 10, by=5)
    pair.hit_one(b"k", 10, by=-3)
    pair.rest(0.2)
    start_again(pair, [(END_S, [b"k"], [5])])
    recover(pair)
    assert everything(pair.partition) == {(END_S, b"k"): 2}
    assert pair.hit_one(b"k", 10) == 3


def test_of_a_shared_counter_the_larger_number_is_true() -> None:
    for restored, expected in ((3, 8), (20, 20)):
        pair = Pair(TERMS, fronts=2)
        for front in (0, 1, 0, 1, 0, 1, 0, 1):
            pair.hit_one(b"k", 100, front)
        assert pair.partition.counters.slots[slot_of(b"k")].loans
        start_again(pair, [(END_S, [b"k"], [restored])])
        recover(pair)
        assert everything(pair.partition) == {(END_S, b"k"): expected}


def told_loan(spent: int) -> ToldNote:
    return ToldNote((END_S, b"k"), 0, 1, False, 10, spent, 100)


def test_what_a_front_has_spent_of_its_loan_is_restored_once() -> None:
    """While it is told, and when the front tells of its loan twice."""
    lender = Lender(TERMS, 2, 0.0, is_new=False)
    lender.restore([(END_S, [b"k"], [20])], START_S, 0.0)
    for spent in (3, 5):
        adopt_loan(lender.counters, "front", told_loan(spent), 10)
        assert everything(lender) == {(END_S, b"k"): 20}
    adopt_loan(lender.counters, "other", told_loan(4), 10)
    assert everything(lender) == {(END_S, b"k"): 20}
    lender.counters.report("front", [], [((END_S, b"k"), 6)])
    assert everything(lender) == {(END_S, b"k"): 21}


def test_what_is_restored_is_bounded_and_the_oldest_of_it_goes_first() -> None:
    lender = Lender(Terms(counters_max=3), 1, 0.0, is_new=True)
    lender.restore([(END_S, [b"a", b"b"], [1, 2]), (END_S, [b"c", b"d"], [3, 4])], START_S, 0.0)
    assert everything(lender) == {(END_S, key): n for key, n in ((b"b", 2), (b"c", 3), (b"d", 4))}
    lender.restore([(END_S, [b"b", b"d"], [7, 8])], START_S, 0.0)
    assert everything(lender) == {(END_S, key): n for key, n in ((b"b", 7), (b"c", 3), (b"d", 8))}


def test_it_need_not_recover_when_nobody_can_hold_anything() -> None:
    pair = Pair(TERMS)
    pair.partition = Lender(TERMS, 2, 0.0, is_new=False, expected=())
    pair.partition.restore([(END_S, [b"k"], [3])], START_S, 0.0)
    assert pair.hit_one(b"k", 10) == 4


def test_what_was_raised_is_written_down_again() -> None:
    counters = LentCounters(TERMS, lambda *_: None, keeps_changes=True)
    counters.table.open_window(END_S, START_S, 0.0)
    counters.raise_to((END_S, b"k"), 3)
    counters.raise_to((END_S, b"k"), 2)
    assert table_of(counters.as_known(counters.table.take_changes(10))) == {(END_S, b"k"): 3}


def test_the_last_count_that_was_written_holds() -> None:
    lender = Lender(TERMS, 1, 0.0, is_new=True, keeps_changes=True)
    lender.restore([(END_S, [b"k", b"other"], [7, 1]), (END_S, [b"k"], [6])], START_S, 0.0)
    assert everything(lender) == {(END_S, b"k"): 6, (END_S, b"other"): 1}


def test_what_a_silent_front_had_is_not_added_to_what_others_had_since() -> None:
    """It is silent through a whole incarnation, in which its slot is lent to somebody else."""
    terms = Terms(alone_s=0.5)
    pair = Pair(terms, fronts=2)
    pair.silent = {1}
    pair.hit_one(b"k", 1_000, by=100)
    pair.rest(0.2)
    pair.silent = {0}
    start_again(pair, [(END_S, [b"k"], [100])])
    recover(pair)
    assert pair.hit_one(b"k", 1_000, 1) == 101
    pair.rest(1.0)
    assert pair.hit_one(b"k", 1_000, 1) == 102
    assert pair.partition.counters.slots[slot_of(b"k")].holder == "front 1"
    pair.silent = set()
    pair.rest(0.5)
    assert pair.hit_one(b"k", 1_000, 0) == 103
    pair.partition = Lender(TERMS, 3, pair.now_s, is_new=False)
    pair.partition.restore([(END_S, [b"k"], [103])], pair.wall_s(), pair.now_s)
    recover(pair)
    assert everything(pair.partition) == {(END_S, b"k"): 103}


def test_each_reader_is_told_of_changes_by_itself() -> None:
    table = SlotTable(TERMS, keeps_changes=True)
    table.open_window(END_S, START_S, 0.0)
    table.add(slot_of(b"a"), END_S, b"a", 1)
    table.note_changes_for(ChangeReader.COPY)
    table.add(slot_of(b"b"), END_S, b"b", 1)
    assert table.take_changes(10, ChangeReader.COPY) == [(END_S, [b"b"])]
    assert table.take_changes(10, ChangeReader.COPY) == []
    assert [sorted(keys) for _, keys in table.take_changes(10)] == [[b"a", b"b"]]
    table.forget_changes_of(ChangeReader.COPY)
    table.add(slot_of(b"c"), END_S, b"c", 1)
    assert table.take_changes(10, ChangeReader.COPY) == []
    assert table.take_changes(10) == [(END_S, [b"c"])]


def test_a_loan_that_ends_while_it_recovers_is_counted_beside_what_is_told() -> None:
    pair = Pair(TERMS, fronts=2)
    for front in (0, 1, 0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    start_again(pair, [])
    pair.rest(0.5)
    assert pair.partition.counters.slots[slot_of(b"k")].loans
    pair.fronts[0].give_back()
    recover(pair)
    assert everything(pair.partition) == {(END_S, b"k"): 6}
