"""The store of a front that borrows: what it says, when it waits, and what it leaves behind."""

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch
from tollgate.actors.ratelimit.counting.counters import Conditional, LimitedHits, Unreachable
from tollgate.actors.ratelimit.lending.asks import NO_ANSWER
from tollgate.actors.ratelimit.lending.terms import Terms
from tollgate.actors.ratelimit.lent_counting.channel import OnReply
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters

NOW_S = 1_000_000
END_S = 1_003_600
DEADLINE_S = 0.001
A_LOOK_S = DEADLINE_S / 30
# Slots stay with the partition: the first hit on a counter has to be asked for.
SHARED = Terms(handed_over_max=-1)


class HastyClock(ManualClock):
    """A clock that goes on whenever somebody looks at it."""

    step_s = 0.0

    def monotonic_s(self) -> float:
        self.advance(self.step_s)
        return super().monotonic_s()


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock(NOW_S)


def branch_of(clock: ManualClock, terms: Terms) -> Branch:
    """A front and two partitions that know each other."""
    branch = Branch(clock, partitions=2, terms=terms, deadline_s=DEADLINE_S)
    branch.exchange()
    return branch


@pytest.fixture
def branch(clock: HastyClock) -> Branch:
    return branch_of(clock, Terms())


@pytest.fixture
def shared(clock: HastyClock) -> Branch:
    return branch_of(clock, SHARED)


def hit(
    front: BorrowedCounters,
    key: bytes = b"k",
    *,
    partition: int = 0,
    by: int = 1,
    limit: int = 10,
) -> object:
    """The count after a hit, or why there is none."""
    batch = [LimitedHits(END_S, [key], [by], [limit])]
    ((count,),) = front.hit({partition: batch}, NOW_S)[partition]  # type: ignore[misc]
    return str(count) if isinstance(count, Unreachable) else count


def test_what_is_lent_is_counted_without_a_message(branch: Branch) -> None:
    (front,), (channels,) = branch.fronts, branch.channels
    assert hit(front) == 1
    sent = [channel.sent for channel in channels]
    assert [hit(front) for _ in range(100)] == list(range(2, 102))
    assert [channel.sent for channel in channels] == sent


def test_a_batch_asks_all_partitions_and_keeps_its_shape(branch: Branch) -> None:
    front = branch.fronts[0]
    batch = {
        number: [
            LimitedHits(END_S, [b"a", b"b"], [1, 2], [10, 10]),
            LimitedHits(END_S + 1, [b"a"], [3], [10]),
        ]
        for number in range(2)
    }
    assert front.hit(batch, NOW_S) == {0: [[1, 2], [3]], 1: [[1, 2], [3]]}
    assert front.hit(batch, NOW_S) == {0: [[2, 4], [6]], 1: [[2, 4], [6]]}
    requests = [Conditional([END_S, END_S], [b"a", b"b"], [1, 20], [10, 10])]
    assert front.hit_conditionally({1: requests}, NOW_S) == {1: [[2, 24]]}
    assert front.partitions == 2


def test_what_is_not_lent_is_waited_for_until_the_deadline_and_no_longer(
    shared: Branch, clock: HastyClock
) -> None:
    (front,) = shared.fronts
    channel, _ = shared.channels[0]
    assert hit(front) == 1
    channel.is_cut = True
    clock.step_s = A_LOOK_S
    before_s = clock.monotonic_s()
    assert hit(front, b"other") == NO_ANSWER
    assert DEADLINE_S <= clock.monotonic_s() - before_s < 2 * DEADLINE_S
    # Neither what is lent nor the other partition is the worse for it.
    assert hit(front) == 2
    assert hit(front, b"other", partition=1) == 1


def test_one_missed_deadline_fails_no_other_call(shared: Branch, clock: HastyClock) -> None:
    (front,) = shared.fronts
    channel, _ = shared.channels[0]
    clock.step_s = A_LOOK_S
    channel.is_slow = True
    assert hit(front, b"other") == NO_ANSWER
    assert front.down == frozenset()
    channel.is_slow = False
    channel.deliver()
    assert hit(front, b"another") == 1


def test_nobody_waits_for_a_partition_that_is_silent_for_long(
    shared: Branch, clock: HastyClock
) -> None:
    (front,) = shared.fronts
    channel, _ = shared.channels[0]
    channel.is_cut = True
    clock.advance(0.6)
    shared.exchange()
    assert front.down == frozenset(), "one message is not enough to judge by"
    clock.advance(0.6)
    shared.exchange()
    assert front.down == {0}
    sent = channel.sent
    assert hit(front, b"other") == NO_ANSWER
    assert channel.sent == sent
    channel.is_cut = False
    clock.advance(0.6)
    shared.exchange()
    assert front.down == frozenset()
    assert hit(front, b"other") == 1


def test_a_message_that_is_known_to_be_lost_is_sent_again_at_once(
    shared: Branch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (front,) = shared.fronts
    channel, _ = shared.channels[0]
    assert hit(front) == 1
    send, lost = channel.send, []

    def send_but_once(message: bytes, on_reply: OnReply) -> None:
        if lost:
            send(message, on_reply)
        else:
            lost.append(message)
            on_reply(None)

    monkeypatch.setattr(channel, "send", send_but_once)
    assert hit(front, b"other") == 1
    assert len(lost) == 1


def test_a_hit_whose_answer_is_lost_is_counted_once(shared: Branch, clock: HastyClock) -> None:
    (front,) = shared.fronts
    channel, _ = shared.channels[0]
    clock.step_s = A_LOOK_S
    channel.is_deaf = True
    assert hit(front, limit=2) == NO_ANSWER
    channel.is_deaf = False
    clock.step_s = 0.0
    shared.rest(1.0)
    assert hit(front, limit=2) == 2


def test_counts_go_on_when_a_partition_starts_again(branch: Branch) -> None:
    (front,) = branch.fronts
    assert [hit(front) for _ in range(3)] == [1, 2, 3]
    branch.restart(0, incarnation=2)
    assert hit(front) == 4
    branch.rest(5.0)
    assert hit(front) == 5
    front.close()
    assert hit(front, by=0) == 5, "the partition knows it as well"


def test_a_front_that_closes_leaves_everything_behind(clock: ManualClock) -> None:
    branch = Branch(clock, fronts=2, deadline_s=DEADLINE_S)
    first, second = branch.fronts
    ((channel,), _) = branch.channels
    first.keep_up()
    assert [hit(first) for _ in range(3)] == [1, 2, 3]
    first.close()
    sent = channel.sent
    first.close()
    assert channel.sent == sent, "once"
    assert hit(second) == 4, "nobody has to be called upon"


def test_a_front_that_has_closed_borrows_nothing_any_more(branch: Branch) -> None:
    (front,) = branch.fronts
    channel, _ = branch.channels[0]
    front.close()
    sent = channel.sent
    assert [hit(front) for _ in range(10)] == list(range(1, 11))
    assert channel.sent >= sent + 10


def test_closing_waits_for_no_partition_that_is_down(shared: Branch, clock: HastyClock) -> None:
    (front,) = shared.fronts
    for channel in shared.channels[0]:
        channel.is_cut = True
    for _ in range(3):
        clock.advance(0.6)
        shared.exchange()
    assert front.down == {0, 1}
    front.close()


def test_a_messenger_that_has_ended_is_noticed(branch: Branch) -> None:
    front = branch.fronts[0]
    with pytest.raises(AssertionError, match="nothing is reported any more"):
        front.probe()
    front.close()
    front.probe()
