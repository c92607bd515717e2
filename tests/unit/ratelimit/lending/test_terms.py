"""Who may count what, until when, and who is waited for."""

from tests.support.ratelimit.lending_pair import START_S, Pair
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import LimitedHits, QuotaLoan
from tollgate.actors.ratelimit.lending.notes import Notes
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of

DAY_S = 86_400.0


def test_a_slot_that_nobody_else_uses_is_counted_at_home() -> None:
    pair = Pair(Terms())
    assert pair.hit_one(b"k", 10) == 1
    pair.silent = {0}
    assert [pair.hit_one(b"k", 10) for _ in range(3)] == [2, 3, 4]


def test_after_its_term_a_front_that_hears_nothing_counts_nothing() -> None:
    pair = Pair(Terms())
    pair.hit_one(b"k", 10)
    pair.silent = {0}
    pair.now_s += pair.terms.term_s
    assert isinstance(pair.hit_one(b"k", 10), Unreachable)


def test_what_a_silent_front_holds_is_free_again_after_term_and_margin() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    pair.hit_one(b"k", 10)
    pair.rest(0.2)  # (it reports)
    pair.silent = {0}
    assert isinstance(pair.hit_one(b"k", 10, 1), Unreachable)
    for _ in range(5):
        pair.rest((pair.terms.term_s + pair.terms.margin_s) / 5)
    assert pair.hit_one(b"k", 10, 1) == 3


def test_a_front_that_was_taken_for_lost_asks_again() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    pair.rest(0.2)
    pair.silent = {0}
    for _ in range(10):
        pair.rest(0.5)
    pair.hit_one(b"k", 10, 1)
    pair.silent = set()
    assert pair.hit_one(b"k", 10) == 3


def test_a_second_front_gets_what_the_first_has_counted() -> None:
    pair = Pair(Terms(), fronts=2)
    assert [pair.hit_one(b"k", 10) for _ in range(3)] == [1, 2, 3]
    assert pair.hit_one(b"k", 10, 1) == 4
    assert pair.hit_one(b"k", 10) == 5


def test_quota_comes_back_before_anybody_is_refused() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 20, front)
    counts = [pair.hit_one(b"k", 20, 1) for _ in range(16)]
    assert max(count for count in counts if isinstance(count, int)) == 20
    assert all(_count(pair, b"k", 20, front) > 20 for front in (0, 1))


def test_who_knows_that_nothing_is_left_need_not_ask() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 2, front)
    pair.silent = {1}
    assert _count(pair, b"k", 2, 1) > 2
    # Under a higher limit it is another question.
    assert isinstance(pair.hit_one(b"k", 50, 1), Unreachable)


def test_they_know_it_even_if_they_gave_up_waiting_for_the_answer() -> None:
    notes = Notes(Terms())
    notes.lend(QuotaLoan((START_S + 60, b"k"), quota=0, limit=10, base=9, epoch=1))
    note = notes.find(START_S + 60, b"k")
    assert note is not None
    assert [note.count(1, 10), note.count(1, 10)] == [11, 11]
    assert note.count(1, 11) is None


def test_who_knows_that_nothing_is_left_hears_of_what_is_given_back() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"k", 2, front)
    pair.hit_one(b"k", 2, 0, by=-3)
    assert pair.hit_one(b"k", 2, 1) == 2


def test_while_a_rule_changes_the_lower_limit_holds_for_what_is_lent_under_it() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0):
        pair.hit_one(b"k", 20, front)
    loans = pair.partition.counters.slots[slot_of(b"k")].loans
    assert loans[START_S + 60, b"k"]["front 0"].quota > 1
    for _ in range(30):
        pair.hit_one(b"k", 50, 1)
    count = pair.hit_one(b"k", 20)
    assert isinstance(count, int)
    assert count > 20


def test_a_slot_goes_back_whole_to_its_only_user() -> None:
    pair = Pair(Terms(alone_s=1.0), fronts=2)
    for front in (0, 1):
        pair.hit_one(b"k", 100, front)
    pair.rest(1.0)
    for _ in range(30):
        pair.hit_one(b"k", 100)
    pair.silent = {0}
    assert isinstance(pair.hit_one(b"k", 10_000), int)


def test_a_clock_that_is_a_day_ahead_is_told_so_and_touches_nothing() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    pair.clock_errors_s[1] = DAY_S
    answer = pair.hit_one(b"k", 10, 1, end_s=START_S + 86_460)
    assert isinstance(answer, Unreachable)
    assert str(answer).startswith(
        "this front's clock is 86400.0 s ahead of the counter partition's"
    )
    assert pair.partition.offsets_s["front 1"] == DAY_S
    assert pair.hit_one(b"k", 10) == 2


def test_a_clock_that_jumps_stops_counting_at_home() -> None:
    pair = Pair(Terms())
    pair.hit_one(b"k", 10)
    pair.clock_errors_s[0] = -DAY_S
    assert isinstance(pair.hit_one(b"k", 10, end_s=START_S - 86_340), Unreachable)
    pair.clock_errors_s[0] = 0.0
    assert pair.hit_one(b"k", 10) == 2


def test_a_window_that_has_ended_is_not_counted_in() -> None:
    pair = Pair(Terms())
    assert isinstance(pair.hit_one(b"k", 10, end_s=START_S - 5), Unreachable)
    assert pair.hit_one(b"k", 10, end_s=START_S - 4) == 1


def test_a_partition_that_starts_again_is_told_what_is_out() -> None:
    pair = Pair(Terms(), fronts=2)
    for _ in range(3):
        pair.hit_one(b"whole", 10)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"shared", 100, front)
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False)
    assert pair.hit_one(b"whole", 10) == 4
    assert pair.hit_one(b"new", 10) == 1  # (its slot is the front's, too)
    beside = next(key for key in map(b"%d".__mod__, range(10_000)) if _is_beside(key, b"shared"))
    assert isinstance(pair.hit_one(beside, 10), Unreachable)
    assert pair.partition.told is not None
    for _ in range(5):
        pair.rest((pair.terms.term_s + pair.terms.margin_s) / 5)
    assert pair.partition.told is None
    assert pair.hit_one(b"whole", 10, 1) == 5
    assert pair.hit_one(b"new", 10) == 2
    assert pair.hit_one(beside, 10) == 1
    assert sum(_spend(pair, b"shared", 100, front) for front in (1, 0)) == 96


def test_it_waits_no_longer_than_for_those_it_knows() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    everybody = ["front 0", "front 1"]
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False, expected=everybody)
    pair.rest(1.0)
    assert pair.partition.told is None
    assert pair.hit_one(b"k", 10, 1) == 2


def test_a_front_that_ends_gives_everything_back() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 10)
    pair.fronts[0].give_back()
    pair.exchange()
    pair.silent = {0}
    assert pair.hit_one(b"k", 10, 1) == 2


def _is_beside(key: bytes, other: bytes) -> bool:
    return slot_of(key) == slot_of(other)


def _count(pair: Pair, key: bytes, limit: int, front: int) -> int:
    """The count after a hit, as the front knows it: what others have spent may be missing."""
    count = pair.hit_one(key, limit, front)
    assert isinstance(count, int)
    return count


def _spend(pair: Pair, key: bytes, limit: int, front: int) -> int:
    """The hits that a front is admitted until it is refused, at most a hundred."""
    admitted = 0
    for _ in range(100):
        hits = [LimitedHits(START_S + 60, [key], [1], [limit])]
        ((count,),) = pair.hit(hits, front)
        admitted += isinstance(count, int) and count <= limit
    return admitted
