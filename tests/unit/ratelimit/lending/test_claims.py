"""A front that is alone has every slot before the first call that touches it."""

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.partition.lent_counters import LentCounters
from tollgate.actors.ratelimit.lending.terms import SLOTS, Terms, slot_of


def holders(pair: Pair) -> set[str | None]:
    return {slot.holder for slot in pair.partition.counters.slots}


def test_a_lone_front_has_all_slots_before_its_first_request() -> None:
    pair = Pair(Terms())
    pair.exchange()
    pair.silent = {0}
    assert [pair.hit_one(b"key %d" % number, 10) for number in range(1_000)] == [1] * 1_000


def test_it_asks_for_them_with_its_second_message() -> None:
    pair = Pair(Terms())
    pair.exchange()
    assert pair.messages == 2  # who it is, and what it claims
    for _ in range(20):
        pair.rest(0.5)
    assert holders(pair) == {"front 0"}
    assert pair.messages < 50  # (it is heard of within its term, and has nothing to say)


def test_a_second_front_takes_none_and_gets_what_it_needs() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.exchange()
    assert holders(pair) == {"front 0"}
    assert pair.hit_one(b"k", 100) == 1
    assert pair.hit_one(b"k", 100, 1) == 2
    for _ in range(8):
        pair.rest(0.5)
        assert pair.hit_one(b"k", 100, 1) is not None
        assert pair.hit_one(b"k", 100, 0) is not None
    slots = pair.partition.counters.slots
    assert slots[slot_of(b"k")].holder is None
    assert sum(slot.holder == "front 0" for slot in slots) == SLOTS - 1


def test_what_a_front_that_has_gone_had_is_claimed() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.exchange()
    pair.hit_one(b"k", 100, 1)
    pair.fronts[0].give_back()
    pair.exchange()
    pair.silent = {0}
    for _ in range(20):
        pair.rest(0.5)
    assert holders(pair) == {"front 1"}
    pair.silent = {0, 1}
    assert pair.hit_one(b"k", 100, 1) == 2


def test_a_front_that_ends_claims_and_keeps_nothing() -> None:
    pair = Pair(Terms())
    pair.exchange()
    pair.fronts[0].give_back()
    for _ in range(12):
        pair.rest(0.5)
    assert pair.hit_one(b"k", 10) == 1
    assert pair.hit_one(b"k", 10) == 2
    pair.exchange()
    assert holders(pair) == {None}


def test_a_claim_hands_over_so_many_counters_at_once() -> None:
    counters, sent = LentCounters(Terms(claimed_max=10), lambda _, item: sent.append(item)), []
    counters.table.open_window(START_S + 60, START_S, 0.0)
    for number in range(500):
        key = b"key %d" % number
        counters.table.add(slot_of(key), START_S + 60, key, 1)
    rounds = 0
    while rounds == 0 or sent[-1].has_more:
        counters.claim("front", set())
        assert sum(len(keys) for loan in sent[-1].loans for _, keys, _ in loan.counters) <= 10
        rounds += 1
    assert {slot.holder for slot in counters.slots} == {"front"}
    assert rounds >= 50


def test_a_front_claims_until_it_has_all() -> None:
    pair = Pair(Terms(claimed_max=10), fronts=2)
    for number in range(500):
        pair.hit_one(b"key %d" % number, 10)
    pair.fronts[0].give_back()
    pair.exchange()
    pair.silent = {0}
    for _ in range(10):
        pair.rest(0.5)
    assert holders(pair) == {"front 1"}
    pair.silent = {0, 1}
    assert pair.hit_one(b"key 7", 10, 1) == 2


def test_after_a_restart_the_rest_is_claimed_as_soon_as_all_is_known() -> None:
    pair = Pair(Terms())
    pair.exchange()
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False)
    pair.rest(0.5)
    pair.fronts[0]._reports.give_slot(7)
    for _ in range(6):
        pair.rest(0.5)
    assert holders(pair) == {"front 0"}


def test_slots_that_several_fronts_tell_of_are_nobodys_after_a_restart() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"shared", 100, front)
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False)
    for _ in range(6):
        pair.rest(0.5)
    slots = pair.partition.counters.slots
    assert slots[slot_of(b"shared")].holder is None
    assert sum(slot.holder == "front 0" for slot in slots) == SLOTS - 1


def test_a_slot_with_a_loan_in_it_is_not_claimed() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"shared", 100, front)
    slot = pair.partition.counters.slots[slot_of(b"shared")]
    assert slot.loans
    slot.users.clear()
    pair.partition.counters.claim("front 1", set())
    assert slot.holder is None


def test_a_clock_that_is_off_claims_nothing() -> None:
    pair = Pair(Terms())
    pair.clock_errors_s[0] = 86_400.0
    pair.exchange()
    assert holders(pair) == {None}


def test_a_slot_that_others_used_in_windows_that_have_ended_is_claimed() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1):
        pair.hit_one(b"k", 100, front)
    slot = pair.partition.counters.slots[slot_of(b"k")]
    pair.now_s = 60.0 + pair.terms.skew_max_s
    pair.rest(0.2)
    assert slot.holder is None
    while pair.now_s < 75.0:
        pair.rest(0.5)
    assert slot.holder in ("front 0", "front 1")
