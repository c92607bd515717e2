"""A partition's post: who gets which mail, and that it does not pile up."""

import pickle

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tollgate.actors.ratelimit.counting.counters import LimitedHits
from tollgate.actors.ratelimit.lending.messages import SlotRecall, ToFront
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.line import Line
from tollgate.actors.ratelimit.lent_counting.partition import MAIL_MAX, LendingPartition

NOW_S = 1_000_000
HIT = [LimitedHits(1_003_600, [b"k"], [1], [10])]


def mail_of(partition: LendingPartition, front: str) -> list[ToFront]:
    mail: list[ToFront] = pickle.loads(partition.wait_for_mail(front, 0.0))
    return mail


def line_of(branch: Branch, front: int) -> Line:
    (line,) = branch.fronts[front]._lines
    return line


def test_what_calls_a_loan_back_is_found_by_the_standing_call() -> None:
    branch = Branch(ManualClock(NOW_S), fronts=2, deadline_s=60.0)
    branch.exchange()
    first, second = line_of(branch, 0), line_of(branch, 1)
    assert first.hit(HIT).counts == [[1]]
    waiting = second.hit(HIT)
    assert not waiting.is_done
    (recall,) = mail_of(branch.partitions[0], "front 0")
    assert any(isinstance(item, SlotRecall) for _, item in recall.items)
    # That one is lost; so it comes again.
    branch.clock.advance(branch.terms.resend_s)
    branch.exchange()
    branch.exchange()
    assert waiting.is_done
    assert waiting.counts == [[2]]


def test_mail_also_comes_with_the_answer_to_a_message() -> None:
    branch = Branch(ManualClock(NOW_S), fronts=2, deadline_s=60.0)
    branch.exchange()
    first, second = line_of(branch, 0), line_of(branch, 1)
    assert first.hit(HIT).counts == [[1]]
    waiting = second.hit(HIT)
    branch.clock.advance(branch.terms.term_s / 4)
    for _ in range(3):
        first.flush()
        second.flush()
    branch.clock.advance(branch.terms.term_s / 4)
    second.flush()
    second.flush()
    assert waiting.counts == [[2]]


def test_mail_that_nobody_fetches_does_not_pile_up() -> None:
    clock = ManualClock(NOW_S)
    branch = Branch(clock, fronts=2, terms=Terms(term_s=1e6))
    branch.exchange()
    assert line_of(branch, 0).hit(HIT).counts == [[1]]
    line_of(branch, 1).hit(HIT)
    (partition,) = branch.partitions
    for _ in range(3 * MAIL_MAX):
        clock.advance(branch.terms.resend_s)
        partition.tick()
    assert len(mail_of(partition, "front 0")) == MAIL_MAX
    assert mail_of(partition, "front 0") == []


def test_a_front_that_is_gone_leaves_no_box_behind() -> None:
    clock = ManualClock(NOW_S)
    branch = Branch(clock)
    branch.exchange()
    (partition,) = branch.partitions
    assert partition.describe()["fronts"] == 1
    assert partition._boxes.keys() == {"front 0"}
    for _ in range(10):
        clock.advance(branch.terms.term_s)
        partition.tick()
    assert partition.describe()["fronts"] == 0
    assert partition._boxes == {}


def test_a_partition_that_nobody_has_found_yet_is_empty() -> None:
    clock = ManualClock(NOW_S)
    partition = LendingPartition(Terms(), 1, clock, is_new=True)
    partition.tick()
    assert partition.describe() == {"counters": 0, "evicted": 0, "calls": 0, "fronts": 0}
    assert mail_of(partition, "front 0") == []
