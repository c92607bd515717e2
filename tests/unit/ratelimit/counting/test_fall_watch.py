"""How a front hears that counts have fallen somewhere."""

from concurrent.futures import Future

from tests.support.manual_clock import ManualClock
from tollgate.actors.ratelimit.counting.fall_watch import ASK_EVERY_S, FallWatch


class Partition:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.pid, self.falls = 7, 3
        self.is_reachable = True
        self.asked: list[Future[dict[str, int]]] = []

    def ask(self) -> "Future[dict[str, int]] | None":
        if not self.is_reachable:
            return None
        self.asked.append(Future())
        return self.asked[-1]

    def answer(self) -> None:
        self.asked[-1].set_result({"pid": self.pid, "falls": self.falls})


def test_falls_are_heard_of_once_and_from_any_partition() -> None:
    clock, partitions = ManualClock(0), [Partition(), Partition()]
    watch = FallWatch([each.ask for each in partitions], clock)

    def look() -> int:
        clock.advance(ASK_EVERY_S)
        watch.look()
        for each in partitions:
            each.answer()
        watch.look()
        return watch.falls

    assert look() == 0  # what was before this front is no news
    partitions[1].falls += 2
    assert [look(), look()] == [1, 1]
    partitions[0].pid = 8  # started again: all counts have fallen
    assert look() == 2


def test_a_partition_that_does_not_answer_is_asked_once() -> None:
    clock, partition = ManualClock(0), Partition()
    watch = FallWatch([partition.ask], clock)
    for _ in range(5):
        clock.advance(ASK_EVERY_S)
        watch.look()
    assert len(partition.asked) == 1
    partition.asked[0].set_exception(OSError("it has died"))
    partition.is_reachable = False
    clock.advance(ASK_EVERY_S)
    watch.look()
    partition.is_reachable = True
    clock.advance(ASK_EVERY_S)
    watch.look()
    assert len(partition.asked) == 2
    assert watch.falls == 0
