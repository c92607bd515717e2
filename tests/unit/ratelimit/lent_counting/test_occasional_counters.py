"""A process that counts now and then borrows only meanwhile."""

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.ratelimit.borrowed_counters import Branch, LoopbackChannel
from tollgate.actors.ratelimit.counting.counters import Conditional, LimitedHits
from tollgate.actors.ratelimit.lent_counting.occasional_counters import IDLE_S, OccasionalCounters
from tollgate.actors.ratelimit.lent_counting.store import BorrowedCounters

NOW_S = 1_000_000
END_S = 1_003_600


class World:
    """A partition, and a process with the stores that it has opened so far."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW_S)
        self.branch = Branch(self.clock)
        (self.partition,) = self.branch.partitions
        self.channels: list[LoopbackChannel] = []
        self.counters = OccasionalCounters(self._open, 1, self.clock)

    def _open(self) -> BorrowedCounters:
        channel = LoopbackChannel(self.partition)
        self.channels.append(channel)
        front = f"payments {len(self.channels)}"
        return BorrowedCounters([channel], self.branch.terms, front, 0.5, self.clock)

    def hit(self) -> object:
        batch = [LimitedHits(END_S, [b"k"], [1], [100])]
        return self.counters.hit({0: batch}, NOW_S)[0]

    def lent(self) -> int:
        return self.partition.describe().get("slots_lent", 0)


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_said_before_there_is_something_to_count(world: World) -> None:
    world.counters.look()
    world.counters.close()
    assert world.channels == []
    assert world.counters.partitions == 1


def test_it_borrows_while_it_counts_and_gives_back_when_it_does_not(world: World) -> None:
    assert [world.hit() for _ in range(3)] == [[[1]], [[2]], [[3]]]
    assert world.lent()
    world.clock.advance(IDLE_S / 2)
    world.counters.look()
    assert world.lent(), "it may be hit again at any moment"
    world.clock.advance(IDLE_S / 2)
    world.counters.look()
    assert not world.lent()
    (channel,) = world.channels
    sent = channel.sent
    for _ in range(100):
        world.clock.advance(1.0)
        world.counters.look()
    assert channel.sent == sent, "and then it says nothing"
    requests = [Conditional([END_S], [b"k"], [1], [100])]
    assert world.counters.hit_conditionally({0: requests}, NOW_S) == {0: [[4]]}
    assert len(world.channels) == 2


def test_a_process_that_ends_gives_back_at_once(world: World) -> None:
    assert world.hit() == [[1]]
    world.counters.close()
    assert not world.lent()
    assert world.branch.fronts[0].hit({0: [LimitedHits(END_S, [b"k"], [1], [100])]}, NOW_S) == {
        0: [[2]]
    }
