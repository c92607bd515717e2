"""Increments that wait for Memcached: what becomes one, what is refused, what a reader adds."""

from tollgate.serve.ratelimit.backends.memcached.increments import (
    ADDENDS_MAX,
    IncrementQueue,
    Increments,
)


def test_hits_on_one_item_become_one_increment() -> None:
    queue = IncrementQueue()
    assert queue.add([(b"a", 1, 60), (b"b", 2, 60), (b"a", 3, 60)]) == 0
    assert len(queue) == 2
    assert queue.take(10) == {b"a": Increments([4], 60), b"b": Increments([2], 60)}
    assert len(queue) == 0


def test_a_refund_stands_apart_from_the_hits_around_it() -> None:
    queue = IncrementQueue()
    queue.add([(b"a", 1, 60), (b"a", -5, 60), (b"a", -1, 60), (b"a", 2, 60)])
    assert queue.take(10) == {b"a": Increments([1, -6, 2], 60)}


def test_a_long_row_of_hits_and_refunds_ends_in_its_sum() -> None:
    queue = IncrementQueue()
    queue.add([(b"a", addend, 60) for _ in range(ADDENDS_MAX) for addend in (2, -1)])
    row = [2, -1] * (ADDENDS_MAX // 2)
    row[-1] += ADDENDS_MAX // 2
    assert queue.take(10) == {b"a": Increments(row, 60)}
    assert len(queue) == 0


def test_what_waits_is_part_of_a_count_that_was_read() -> None:
    queue = IncrementQueue()
    queue.add([(b"a", 1, 60), (b"a", -5, 60), (b"a", 2, 60)])
    assert queue.applied_to(b"a", 2) == 2  # 2 + 1 = 3, less 5 is 0, plus 2
    assert queue.applied_to(b"b", 2) == 2
    queue.take(10)
    assert queue.applied_to(b"a", 2) == 2


def test_a_full_queue_refuses_what_is_new_and_takes_more_of_what_it_has() -> None:
    queue = IncrementQueue(increments_max=2)
    assert queue.add([(b"a", 1, 60), (b"b", 1, 60), (b"c", 1, 60), (b"a", 4, 60)]) == 1
    assert queue.add([(b"a", -1, 60)]) == 1
    assert queue.take(10) == {b"a": Increments([5], 60), b"b": Increments([1], 60)}
    assert queue.add([(b"c", 1, 60)]) == 0


def test_a_share_is_what_has_waited_longest() -> None:
    queue = IncrementQueue()
    queue.add([(name, 1, 60) for name in (b"a", b"b", b"c")])
    assert list(queue.take(2)) == [b"a", b"b"]
    assert list(queue.take(2)) == [b"c"]
    assert queue.take(2) == {}


def test_all_is_sent_once_nothing_was_left_to_take() -> None:
    queue = IncrementQueue()
    assert queue.wait_until_sent(0)
    queue.add([(b"a", 1, 60)])
    assert not queue.wait_until_sent(0)
    queue.take(10)
    assert not queue.wait_until_sent(0), "it was taken, and is being sent"
    queue.take(10)
    assert queue.wait_until_sent(0)


def test_what_is_given_up_is_counted() -> None:
    queue = IncrementQueue()
    queue.add([(b"a", 1, 60), (b"a", -1, 60), (b"b", 1, 60)])
    assert queue.clear() == 3
    assert queue.wait_until_sent(0)
    assert queue.take(10) == {}
