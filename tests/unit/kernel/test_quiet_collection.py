"""When everything is collected in a process that answers calls."""

from tests.support.manual_clock import ManualClock
from tollgate.actors.kernel.garbage_collection import (
    LATEST_S,
    PAUSES_SHARE,
    QUIET_BATCHES_MAX,
    QUIET_EVERY_S,
    QuietCollection,
)


class Heap:
    """Takes its time to be collected."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.pause_s = 0.001

    def collect(self) -> None:
        self.clock.advance(self.pause_s)


def test_a_quiet_moment_is_waited_for() -> None:
    clock = ManualClock(0)
    collection = QuietCollection(clock, Heap(clock).collect)
    assert collection.look(0) is None
    clock.advance(QUIET_EVERY_S)
    assert collection.look(QUIET_BATCHES_MAX + 1) is None
    pause_s = collection.look(2 * QUIET_BATCHES_MAX + 1)
    assert pause_s is not None
    assert abs(pause_s - 0.001) < 1e-6
    assert collection.look(2 * QUIET_BATCHES_MAX + 1) is None


def test_after_a_long_pause_the_next_is_far_away() -> None:
    clock = ManualClock(0)
    heap = Heap(clock)
    heap.pause_s = 0.1
    collection = QuietCollection(clock, heap.collect)
    clock.advance(QUIET_EVERY_S)
    assert collection.look(0) is not None
    clock.advance(0.1 / PAUSES_SHARE - 5)
    assert collection.look(0) is None
    clock.advance(10)
    assert collection.look(0) is not None


def test_where_it_is_never_quiet_it_is_done_all_the_same() -> None:
    clock = ManualClock(0)
    collection = QuietCollection(clock, Heap(clock).collect)
    batches = 0
    for _ in range(10):
        batches += 100
        clock.advance(LATEST_S / 10 - 1)
        assert collection.look(batches) is None
    clock.advance(10)
    assert collection.look(batches + 100) is not None
