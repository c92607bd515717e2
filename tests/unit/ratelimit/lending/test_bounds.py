"""What is bounded in lending, and what gives way: what was not used for longest, and visibly."""

import pytest

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.lending import home_counters
from tollgate.actors.ratelimit.lending.item_stream import ItemStream
from tollgate.actors.ratelimit.lending.messages import LimitedHits, QuotaLoan
from tollgate.actors.ratelimit.lending.notes import Notes
from tollgate.actors.ratelimit.lending.partition import slot_table
from tollgate.actors.ratelimit.lending.partition.slot_table import SlotTable
from tollgate.actors.ratelimit.lending.rates import SpendRates
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of

SOON_S, LATE_S = START_S + 60, START_S + 3_600


def test_slots_are_all_there_and_used_alike() -> None:
    slots = [slot_of(b"key %d" % number) for number in range(10_000)]
    assert min(slots) == 0
    assert max(slots) == SLOTS - 1
    assert max(map(slots.count, set(slots))) < 3 * len(slots) / SLOTS


def test_a_full_front_gives_up_what_it_has_not_used_for_longest() -> None:
    pair = Pair(Terms(counters_max=3))
    pair.hit_one(b"old", 10, end_s=LATE_S)
    pair.hit_one(b"used", 10, end_s=LATE_S)
    pair.hit_one(b"soon", 10, end_s=SOON_S)
    pair.rest(0.2)  # (a report: all that follows is more recent)
    pair.hit_one(b"used", 10, end_s=LATE_S)
    pair.hit_one(b"new", 10, end_s=SOON_S)
    assert pair.fronts[0].evicted == 1
    assert pair.hit_one(b"used", 10, end_s=LATE_S) == 3
    assert pair.hit_one(b"soon", 10, end_s=SOON_S) == 2
    assert pair.fronts[0].evicted == 1


def test_or_it_refuses_what_is_new_and_says_why() -> None:
    pair = Pair(Terms(counters_max=2, refuses_when_full=True))
    pair.hit_one(b"a", 10)
    pair.hit_one(b"b", 10)
    answer = pair.hit_one(b"c", 10)
    assert isinstance(answer, Unreachable)
    assert "the counter table is full" in str(answer)
    assert pair.hit_one(b"a", 10) == 2
    assert pair.fronts[0].evicted == pair.partition.counters.table.evicted == 0


def test_a_partition_gives_up_what_was_not_used_for_longest() -> None:
    table = SlotTable(Terms(counters_max=2))
    table.open_window(SOON_S, START_S, 0.0)
    table.open_window(LATE_S, START_S, 0.0)
    for end_s, key in ((LATE_S, b"a"), (SOON_S, b"b"), (LATE_S, b"a"), (LATE_S, b"c")):
        table.add(slot_of(key), end_s, key, 1)
    assert [table.count(slot_of(key), LATE_S, key) for key in (b"a", b"b", b"c")] == [2, 0, 1]
    assert table.count(slot_of(b"b"), SOON_S, b"b") == 0
    assert table.evicted == 1


def test_windows_that_have_ended_are_freed_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_table, "FREED_PER_CALL_MAX", 10)
    table = SlotTable(Terms())
    table.open_window(SOON_S, START_S, 0.0)
    for number in range(25):
        key = b"key %d" % number
        table.add(slot_of(key), SOON_S, key, 1)
    assert table.end_windows(64.0) == []
    sizes = [len(table) for _ in range(4) if table.end_windows(66.0) is not None]
    assert sizes == [15, 5, 0, 0]


def test_so_they_are_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_counters, "FREED_PER_CALL_MAX", 10)
    pair = Pair(Terms())
    keys = [b"key %d" % number for number in range(25)]
    pair.hit([LimitedHits(SOON_S, keys, [1] * 25, [10] * 25)])
    sizes = []
    for now_s in (64.0, 66.0, 66.0, 66.0):
        pair.now_s = now_s
        pair.fronts[0].outgoing(pair.wall_s(), pair.now_s)
        sizes.append(pair.fronts[0].sizes()["counters_max"][0])
    assert sizes == [25, 15, 5, 0]


def test_a_slot_with_too_many_counters_is_not_handed_over() -> None:
    pair = Pair(Terms(handed_over_max=1), fronts=2)
    pair.hit_one(b"a", 10, end_s=SOON_S)
    pair.hit_one(b"a", 10, end_s=LATE_S)
    pair.hit_one(b"a", 10, 1, end_s=LATE_S)
    for _ in range(10):
        pair.rest(0.5)
    pair.hit_one(b"a", 100, end_s=LATE_S)
    assert pair.partition.counters.slots[slot_of(b"a")].holder is None


def test_notes_without_loans_give_way() -> None:
    notes = Notes(Terms(notes_max=2))
    for number in range(5):
        notes.add_part((SOON_S, b"key %d" % number), 1, 0)
    assert len(notes) == 2
    assert notes.find(SOON_S, b"key 4") is not None


def test_a_few_of_them_at_once_the_oldest_first() -> None:
    notes = Notes(Terms(notes_max=1_024))
    counters = [(SOON_S, b"key %d" % number) for number in range(1_025)]
    notes.lend(QuotaLoan(counters[1], 5, 10, 0, 0))
    for counter in counters:
        notes.add_part(counter, 1, 0)
    assert len(notes) == 1_021
    gone = [number for number, (_, key) in enumerate(counters) if notes.find(SOON_S, key) is None]
    assert gone == [0, 2, 3, 4]


def test_the_oldest_rates_are_forgotten() -> None:
    rates = SpendRates(Terms(rates_max=2))
    assert rates.wanted(b"a", 1, 0.0) == 8
    for number in range(100):
        wanted = rates.wanted(b"a", 100, 0.1 * number)
    assert wanted == pytest.approx(250, abs=2)  # a quarter of a second at a thousand a second
    rates.wanted(b"b", 1, 10.0)
    rates.wanted(b"c", 1, 10.0)
    assert len(rates) == 2
    assert rates.wanted(b"a", 1, 10.0) == 8


def test_a_stream_takes_each_item_once_and_in_order() -> None:
    terms = Terms(items_per_message_max=2)
    sender: ItemStream[str, str] = ItemStream(terms)
    receiver: ItemStream[str, str] = ItemStream(terms)
    for item in "abcd":
        sender.put(item)
    first, second = sender.due(0.0), sender.due(0.0)
    assert not sender.is_due(terms.resend_s / 2)
    assert receiver.take(0, second) == []
    assert receiver.take(0, [*first, *first]) == ["a", "b", "c", "d"]
    assert receiver.take(0, first) == []
    assert sender.due(terms.resend_s) == first
    sender.take(receiver.taken, [])
    assert len(sender) == len(receiver) == 0


def test_what_is_known_to_be_lost_is_sent_again_at_once_and_then_ever_more_rarely() -> None:
    terms = Terms()
    stream: ItemStream[str, str] = ItemStream(terms)
    assert stream.lose(0.0) == 0.0
    stream = ItemStream(terms)
    stream.put("a")
    sent_s = []
    for step in range(1_001):
        now_s = step / 100
        while stream.is_due(now_s):
            assert stream.due(now_s) == [(1, "a")]
            sent_s.append(now_s)
            stream.lose(now_s)
    assert sent_s[:4] == [0.0, 0.0, 0.02, 0.06]
    assert len(sent_s) < 10 + 10.0 / terms.resend_s
    stream.take(0, [])  # (something has come back)
    stream.lose(20.0)
    assert stream.is_due(20.0)


def test_too_many_calls_fail_at_once() -> None:
    pair = Pair(Terms(calls_max=1))
    pair.silent = {0}
    hits = [LimitedHits(SOON_S, [b"k"], [1], [10])]
    waits, fails = (pair.fronts[0].hit(hits, START_S, 0.0, 1.0) for _ in range(2))
    assert not waits.is_done
    assert isinstance(fails.counts[0][0], Unreachable)
