"""What operators see of a partition's counters, and how they set one to 0."""

import pytest

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.counting.counter_row import CounterRow
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.lending.lender import NOT_IN_TIME, TOO_MANY_WAIT, Lender
from tollgate.actors.ratelimit.lending.partition import listing
from tollgate.actors.ratelimit.lending.partition.tasks import PendingReset
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of

END_S = START_S + 60
DAY_S = 86_400.0


def rows_of(pair: Pair) -> list[CounterRow]:
    """Of all pages."""
    listing = pair.partition.listing
    rows: list[CounterRow] = []
    page = listing.page(None, START_S + pair.now_s)
    while True:
        rows += listing.rows(page.names)
        if page.after is None:
            return rows
        page = listing.page(page.after, START_S + pair.now_s)


def reset(pair: Pair, key: bytes, patience_s: float = 5.0) -> PendingReset:
    pending = pair.partition.reset((END_S, key), patience_s, pair.now_s)
    pair.rest(0.01)
    pair.rest(pair.terms.acknowledge_s)
    return pending


def test_pages_hold_every_counter_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "LOOKED_AT_MAX", 5)
    pair = Pair(Terms())
    keys = [b"key %d" % number for number in range(25)]
    for key in keys:
        pair.hit_one(key, 10)
    pair.rest(0.2)
    rows = rows_of(pair)
    assert sorted(row.key for row in rows) == sorted(keys)
    assert rows == sorted(rows, key=lambda row: slot_of(row.key))
    assert {row._replace(key=b"") for row in rows} == {(END_S, b"", 1, None, "front 0", 0)}


def test_a_row_says_who_has_loans_and_leaves_out_what_has_ended() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    pair.rest(0.2)
    assert rows_of(pair) == [CounterRow(END_S, b"k", 4, 100, None, 2)]
    pair.now_s = 60.0
    assert rows_of(pair) == []


def test_counters_are_listed_while_a_partition_recovers() -> None:
    pair = Pair(Terms())
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False)
    pair.partition.restore([(END_S, [b"k"], [3])], START_S, pair.now_s)
    assert rows_of(pair) == [CounterRow(END_S, b"k", 3)]
    found = pair.partition.listing.find([b"k", b"other"], START_S + pair.now_s)
    assert found == [CounterRow(END_S, b"k", 3)]


def test_what_is_gone_when_its_row_is_made_has_none() -> None:
    pair = Pair(Terms())
    pair.hit_one(b"k", 10)
    pair.rest(0.2)
    assert pair.partition.listing.rows([(END_S, b"k"), (END_S, b"other")]) == [
        CounterRow(END_S, b"k", 1, None, "front 0")
    ]


def test_a_counter_at_home_is_called_back_and_begins_anew() -> None:
    pair = Pair(Terms())
    for _ in range(3):
        pair.hit_one(b"k", 10)
    pending = reset(pair, b"k")
    assert (pending.is_done, pending.failure) == (True, None)
    assert [pair.hit_one(b"k", 10) for _ in range(2)] == [1, 2]


def test_a_shared_counter_that_is_used_up_begins_anew_for_all() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 2, front)
    assert reset(pair, b"k").is_done
    assert [pair.hit_one(b"k", 2, front) for front in (1, 0)] == [1, 2]


@pytest.mark.parametrize("is_front_wrong", [False, True], ids=["partition", "front"])
def test_a_reset_heard_while_clocks_disagree_ends_no_window_early(*, is_front_wrong: bool) -> None:
    pair = Pair(Terms(), fronts=2)
    pair.rest(0.2)
    if is_front_wrong:
        pair.clock_errors_s[0] = DAY_S
    else:
        pair.partition_error_s = DAY_S
    assert reset(pair, b"k").is_done
    pair.clock_errors_s.clear()
    pair.partition_error_s = 0.0
    pair.rest(0.2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    assert pair.partition.counters.slots[slot_of(b"k")].loans
    while pair.now_s < pair.terms.skew_max_s + pair.terms.margin_s + 1.0:
        pair.rest(0.5)
    # (A front that had forgotten its loan would never give it back.)
    counts = [pair.hit_one(b"k", 100, front) for front in [0] * 50 + [1] * 46]
    assert all(isinstance(count, int) and count <= 100 for count in counts)
    more = [pair.hit_one(b"k", 100, front) for front in (0, 1)]
    assert all(isinstance(count, int) and count > 100 for count in more)


def test_what_is_not_there_is_reset_at_once() -> None:
    pair = Pair(Terms())
    assert reset(pair, b"unknown").is_done
    assert pair.hit_one(b"unknown", 10) == 1


def test_hits_that_come_meanwhile_count_after_it() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    pair.silent = {0}
    pending = reset(pair, b"k")
    assert not pending.is_done
    assert isinstance(pair.hit_one(b"k", 10, 1), Unreachable)  # (it waits behind the reset)
    pair.silent = set()
    pair.rest(1.0)
    assert pending.is_done
    assert pair.hit_one(b"k", 10, 1) == 1


def test_whoever_has_it_may_be_lost() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    pair.silent = {0}
    impatient, patient = reset(pair, b"k", 1.0), reset(pair, b"k", 5.0)
    for _ in range(6):
        pair.rest(0.5)
    assert impatient.failure == NOT_IN_TIME
    assert patient.is_done
    assert patient.failure is None
    assert pair.hit_one(b"k", 10, 1) == 1


def test_a_front_that_is_forgotten_meanwhile_hears_of_no_reset() -> None:
    pair = Pair(Terms())
    pair.silent = {0}
    message = pair.fronts[0].outgoing(pair.wall_s(), pair.now_s)
    assert message is not None
    pair.partition.receive(message, pair.wall_s(), pair.now_s)
    while pair.now_s + 0.25 < pair.terms.term_s + pair.terms.margin_s:
        pair.now_s += 0.25
        pair.exchange()
    assert pair.partition.leases
    pending = pair.partition.reset((END_S, b"k"), 5.0, pair.now_s)
    pair.now_s += 0.25
    assert pair.partition.tick(pair.wall_s(), pair.now_s) == {}
    assert pending.is_done


def test_resets_that_wait_are_bounded() -> None:
    pair = Pair(Terms(deferred_max=1))
    pair.hit_one(b"k", 10)
    pair.silent = {0}
    assert not reset(pair, b"k").is_done
    assert reset(pair, b"k").failure == TOO_MANY_WAIT


def test_a_reset_waits_until_all_is_known_and_what_fronts_tell_afterwards_is_new() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False)
    pending = reset(pair, b"k")
    assert not pending.is_done
    for _ in range(6):
        pair.rest(0.5)
    assert pending.is_done
    pair.partition = Lender(pair.terms, 3, pair.now_s, is_new=False)
    for _ in range(6):
        pair.rest(0.5)
    assert pair.hit_one(b"k", 100) == 1


def restart(pair: Pair, incarnation: int, restored: int | None = None) -> None:
    """Another process of the partition, which finds so many hits of `k` on its disk."""
    pair.partition = Lender(pair.terms, incarnation, pair.now_s, is_new=False)
    if restored is not None:
        pair.partition.restore([(END_S, [b"k"], [restored])], pair.wall_s(), pair.now_s)


def recover(pair: Pair) -> int:
    """The count when all have told."""
    pair.silent = set()
    while pair.partition.told is not None:
        pair.rest(0.5)
    return pair.partition.counters.known(END_S, b"k")


def test_a_front_that_was_away_does_not_undo_a_reset_by_what_it_tells_the_next_process() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, by=40)
    pair.hit_one(b"k", 100, 1)
    pair.rest(0.2)
    pair.silent = {0}
    for _ in range(8):
        pair.rest(0.5)
    assert reset(pair, b"k").is_done
    assert pair.hit_one(b"k", 100, 1) == 1
    restart(pair, 2)
    assert recover(pair) == 1
    restart(pair, 3)
    assert recover(pair) == 1


@pytest.mark.parametrize("restored", [None, 0, 41])
def test_nor_does_a_journal_that_was_written_before_it(restored: int | None) -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    assert reset(pair, b"k").is_done
    pair.hit_one(b"k", 100)
    restart(pair, 2, restored)
    assert recover(pair) == 1


def test_what_is_restored_with_the_reset_counts() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 100, front)
    assert reset(pair, b"k").is_done
    epoch = pair.partition.counters.resets.epoch((END_S, b"k"))
    restart(pair, 2, 7)  # (hits of a front that is not there any more)
    pair.partition.counters.resets.note((END_S, b"k"), epoch)
    assert recover(pair) == 7


def test_a_reset_is_done_when_all_who_are_there_have_heard_of_it() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, 1)
    pair.hit_one(b"other", 100)
    pair.rest(0.2)
    pair.silent = {0}
    pending = reset(pair, b"k")
    assert pair.partition.counters.known(END_S, b"k") == 0
    assert not pending.is_done
    pair.silent = set()
    pair.rest(1.0)
    assert (pending.is_done, pending.failure) == (True, None)


def filled(pair: Pair) -> PendingReset:
    """A reset that waits, for front 0 can be told nothing more."""
    pair.hit_one(b"used", 100, 1)
    pair.silent = {0}
    for number in range(pair.terms.unacknowledged_max):
        pair.partition.reset((END_S, b"other %d" % number), 60.0, pair.now_s)
        pair.rest(0.01)
    pending = pair.partition.reset((END_S, b"k"), 60.0, pair.now_s)
    pair.rest(0.01)
    assert not pending.is_set
    return pending


@pytest.mark.parametrize("is_heard_again", [True, False])
def test_a_reset_waits_for_a_front_that_can_be_told_nothing_more(is_heard_again: bool) -> None:
    """Until it reads, or is lost."""
    pair = Pair(Terms(unacknowledged_max=4), fronts=2)
    for front in (0, 1):
        pair.hit_one(b"k", 100, front)
    pending = filled(pair)
    assert pair.partition.counters.known(END_S, b"k") == 2
    if is_heard_again:
        pair.silent = set()
    else:
        pair.rest(pair.terms.term_s + pair.terms.margin_s)
    pair.rest(1.0)
    assert (pending.is_set, pending.is_done, pending.failure) == (True, True, None)
    assert pair.hit_one(b"k", 100, 1) == 1
