"""Fronts and partitions that do not hear each other for a while, and what is counted then."""

from tests.support.ratelimit.lending_pair import PATIENCE_S, START_S, Pair
from tollgate.actors.ratelimit.counting.counters import Unreachable
from tollgate.actors.ratelimit.lending.lender import Lender
from tollgate.actors.ratelimit.lending.messages import Ask, LimitedHits, ToPartition
from tollgate.actors.ratelimit.lending.partition.late_hits import LateHits
from tollgate.actors.ratelimit.lending.terms import Terms, slot_of

END_S = START_S + 60
SILENCE_S = 3.4


def silence(pair: Pair, *, until_s: float) -> None:
    pair.silent = {0}
    while pair.now_s < until_s:
        pair.rest(0.2)


def known(pair: Pair, key: bytes) -> int:
    return pair.partition.counters.known(END_S, key)


def hits(key: bytes, by: int = 1) -> list[LimitedHits]:
    return [LimitedHits(END_S, [key], [by], [100])]


def test_what_a_front_counted_unheard_is_counted_as_soon_as_it_is_heard() -> None:
    pair = Pair(Terms(), fronts=2)
    for _ in range(16):
        pair.hit_one(b"k", 100)
    pair.rest(0.2)  # (a report)
    pair.silent = {0}
    assert [pair.hit_one(b"k", 100) for _ in range(84)] == list(range(17, 101))
    silence(pair, until_s=SILENCE_S)
    assert known(pair, b"k") == 16
    pair.silent = set()
    assert pair.hit_one(b"k", 100) == 101
    assert pair.hit_one(b"k", 100, 1) == 102


def test_so_is_what_it_spent_of_a_loan_and_what_it_gave_back() -> None:
    pair = Pair(Terms(), fronts=2)
    for front in (0, 1, 0, 1):
        pair.hit_one(b"shared", 1_000, front)
    pair.hit_one(b"whole", 100, by=9)
    pair.rest(0.2)
    assert pair.partition.counters.slots[slot_of(b"shared")].loans
    assert (known(pair, b"shared"), known(pair, b"whole")) == (4, 9)
    pair.silent = {0}
    spent = sum(isinstance(pair.hit_one(b"shared", 1_000), int) for _ in range(3))
    pair.hit_one(b"whole", 100, by=-4)
    silence(pair, until_s=SILENCE_S)
    assert (known(pair, b"shared"), known(pair, b"whole")) == (4, 9)
    pair.silent = set()
    pair.rest(1.0)
    assert spent == 3
    assert (known(pair, b"shared"), known(pair, b"whole")) == (7, 5)


def test_nothing_is_counted_twice_that_was_on_its_way() -> None:
    pair = Pair(Terms())
    pair.hit_one(b"k", 100, by=5)
    front = pair.fronts[0]
    pair.rest(0.2)
    front.hit(hits(b"k", 3), pair.wall_s(), pair.now_s, PATIENCE_S)
    reports = [message for message in iter(lambda: outgoing(pair), None) if message]
    assert len(reports) == 1
    for report in reports:  # (it arrives; its receipt does not)
        pair.partition.receive(report, pair.wall_s(), pair.now_s)
    front.hit(hits(b"k", 2), pair.wall_s(), pair.now_s, PATIENCE_S)
    assert known(pair, b"k") == 8
    silence(pair, until_s=SILENCE_S)
    pair.silent = set()
    pair.rest(1.0)
    assert pair.hit_one(b"k", 100) == 11


def outgoing(pair: Pair) -> ToPartition | None:
    return pair.fronts[0].outgoing(pair.wall_s(), pair.now_s)


def test_a_silence_of_several_terms_forgets_nothing() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, by=5)
    pair.rest(0.2)
    pair.silent = {0}
    pair.hit_one(b"k", 100, by=7)
    silence(pair, until_s=20.0)
    assert "front 0" not in pair.partition.leases
    pair.silent = set()
    pair.rest(1.0)
    assert pair.hit_one(b"k", 100, 1) == 13


def test_nor_does_a_lease_in_which_only_the_front_heard_anything() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, by=5)
    pair.rest(0.2)
    pair.silent = {0}
    pair.hit_one(b"k", 100, by=90)
    silence(pair, until_s=SILENCE_S)
    pair.now_s += pair.terms.term_s / 4
    message = outgoing(pair)
    assert message is not None
    answer = pair.partition.receive(message, pair.wall_s(), pair.now_s)["front 0"]
    pair.fronts[0].receive(answer, pair.wall_s(), pair.now_s)
    silence(pair, until_s=8.0)  # (what it says under its new lease is lost, and so is the lease)
    assert "front 0" not in pair.partition.leases
    pair.silent = set()
    pair.rest(1.0)
    assert known(pair, b"k") == 95


def test_who_has_the_slot_by_then_hears_of_it() -> None:
    pair = Pair(Terms(alone_s=0.2), fronts=2)
    pair.hit_one(b"k", 100, by=5)
    pair.rest(0.2)
    pair.silent = {0}
    pair.hit_one(b"k", 100, by=40)
    silence(pair, until_s=SILENCE_S)
    assert pair.hit_one(b"k", 100, 1) == 6
    assert pair.partition.counters.slots[slot_of(b"k")].holder == "front 1"
    assert pair.hit_one(b"k", 100, 1) == 7
    pair.silent = set()
    pair.rest(1.0)
    assert pair.hit_one(b"k", 100, 1) == 48
    assert pair.partition.sizes()["unheard_max"][0] == 0


def test_what_was_before_a_reset_does_not_count_after_it() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, by=5)
    pair.hit_one(b"other", 100, by=5)
    pair.rest(0.2)
    pair.silent = {0}
    pair.hit_one(b"k", 100, by=40)
    pair.hit_one(b"other", 100, by=40)
    silence(pair, until_s=3.0)
    pending = pair.partition.reset((END_S, b"k"), 5.0, pair.now_s)
    pair.rest(0.5)
    assert pending.is_done
    pair.silent = set()
    pair.rest(1.0)
    assert (known(pair, b"k"), known(pair, b"other")) == (0, 45)


def test_late_hits_that_wait_are_bounded() -> None:
    late = LateHits(Terms(unheard_max=2))
    for key in (b"a", b"b", b"a", b"c"):
        late.put(1, (END_S, key), 3)
    assert len(late) == 2
    assert late.take(1) == {(END_S, b"a"): 6, (END_S, b"b"): 3}
    assert len(late) == 0


def expect_an_unheard_hit_to_be_none(pair: Pair) -> None:
    """The second hit of `k` reaches nobody in time; the next one is the second."""
    assert isinstance(pair.hit_one(b"k", 100), Unreachable)
    pair.silent = set()
    pair.rest(1.0)
    assert known(pair, b"k") == 1
    assert pair.hit_one(b"k", 100) == 2


def test_what_nobody_waits_for_is_not_counted() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, 1)
    pair.silent = {0}
    expect_an_unheard_hit_to_be_none(pair)


def test_nor_when_it_is_sent_for_the_first_time_after_a_silence() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, 1)
    pair.exchange()
    silence(pair, until_s=SILENCE_S)
    expect_an_unheard_hit_to_be_none(pair)


def test_what_is_sent_once_more_has_the_patience_that_is_left() -> None:
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, 1)
    pair.exchange()
    pair.fronts[0].hit(hits(b"k"), pair.wall_s(), pair.now_s, 0.8)
    patience_s = []
    for _ in range(3):
        message = outgoing(pair)
        assert message is not None
        patience_s += [item.patience_s for _, item in message.items if isinstance(item, Ask)]
        pair.now_s += pair.terms.resend_s
    assert [round(each, 3) for each in patience_s] == [0.8, 0.3, 0.0]


def test_an_answer_that_comes_after_the_term_is_no_leave_to_count_at_home() -> None:
    pair = Pair(Terms())
    front = pair.fronts[0]
    first, second = (front.hit(hits(b"k"), pair.wall_s(), pair.now_s, 10.0) for _ in range(2))
    for wait_s in (0.0, pair.terms.term_s):  # (the first message asks for a lease)
        message = outgoing(pair)
        assert message is not None
        answer = pair.partition.receive(message, pair.wall_s(), pair.now_s)["front 0"]
        pair.now_s += wait_s
        front.receive(answer, pair.wall_s(), pair.now_s)
    assert (first.counts, first.is_done, second.is_done) == ([[1]], True, False)
    while not second.is_done:
        pair.rest(0.5)
    assert second.counts == [[2]]


def test_what_is_counted_after_it_was_told_too_late_is_counted_all_the_same() -> None:
    """What was told is what was before a partition was lost: somebody may have more of it by now.
    But nobody else can have what came after."""
    pair = Pair(Terms(), fronts=2)
    pair.hit_one(b"k", 100, by=40)
    pair.rest(0.2)
    pair.partition = Lender(pair.terms, 2, pair.now_s, is_new=False)
    pair.partition.restore([(END_S, [b"k"], [38])], pair.wall_s(), pair.now_s)
    front = pair.fronts[0]
    front.hit(hits(b"k"), pair.wall_s(), pair.now_s, PATIENCE_S)
    pair.now_s += 0.6
    message = outgoing(pair)
    assert message is not None
    answer = pair.partition.receive(message, pair.wall_s(), pair.now_s)["front 0"]
    front.receive(answer, pair.wall_s(), pair.now_s)  # (a new lease: it tells what it has)
    front.hit(hits(b"k", 3), pair.wall_s(), pair.now_s, PATIENCE_S)
    silence(pair, until_s=SILENCE_S)
    assert pair.partition.told is None
    assert known(pair, b"k") == 38
    pair.silent = set()
    pair.rest(1.0)
    assert known(pair, b"k") == 38 + 3
