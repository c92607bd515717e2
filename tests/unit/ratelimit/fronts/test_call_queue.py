"""Which calls a queue gives up, and which of them it keeps."""

from math import inf

from tollgate.serve.ratelimit.fronts.call_queue import CallQueue, QueuedCall


def calls(*ids: int, deadline_s: float = inf) -> list[QueuedCall]:
    return [QueuedCall(each, b"%d" % each, deadline_s) for each in ids]


def ids(taken: list[QueuedCall]) -> list[int]:
    return [call.id for call in taken]


def test_the_oldest_go_first() -> None:
    queue = CallQueue()
    assert queue.add(calls(1, 2)) == queue.add(calls(3)) == []
    assert queue.take(0.0, 2) == (calls(1, 2), 0)
    assert queue.take(0.0, 2) == (calls(3), 0)
    assert queue.take(0.0, 2) == ([], 0)


def test_a_call_whose_deadline_has_passed_makes_room_in_the_batch() -> None:
    queue = CallQueue()
    queue.add(calls(1, deadline_s=5.0) + calls(2, deadline_s=5.5) + calls(3))
    taken, expired = queue.take(5.0, 2)
    assert (ids(taken), expired) == ([2, 3], 1)


def test_of_too_many_the_oldest_are_shed() -> None:
    queue = CallQueue(calls_max=2)
    assert ids(queue.add(calls(1, 2, 3))) == [1]
    assert ids(queue.add(calls(4, 5, 6))) == [2, 3, 4]
    assert ids(queue.take(0.0, 9)[0]) == [5, 6]


def test_callers_that_have_gone_are_forgotten() -> None:
    queue = CallQueue()
    queue.add(calls(1, 2, 3))
    assert queue.forget({2, 3, 9}) == 2
    assert (len(queue), ids(queue.take(0.0, 9)[0])) == (1, [1])
