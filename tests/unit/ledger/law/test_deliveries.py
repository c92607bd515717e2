"""The law of deliveries: the order window, pauses, recovery, and when an event is given up."""

from dataclasses import replace

import pytest

from tollgate.actors.ledger.delivery.batches import (
    CallResult,
    DeliveryAttempt,
    DeliveryBatch,
    DeliveryProgress,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.delivery.schedule import (
    FAILURES_IN_A_ROW_MAX,
    GIVE_UP_AFTER_MS,
    NEW_PAUSE_MAX_MS,
    ORDER_WINDOW_MS,
    PAUSE_DIVISOR,
    PAUSE_MAX_MS,
    PAUSE_MIN_MS,
    REFUSED_MAX,
    WAITING_MAX,
    Settlement,
    dead_up_to,
    in_turn,
    is_over,
    pause_ms,
    settlement,
)
from tollgate.actors.ledger.law.values import BookId, EntityId

HOOK = EntityId("65000000000000000a000001")
NOW_MS = 1_800_000_000_000
OK, NO = CallResult(200), CallResult(503, "HTTP status 503")
REFUSED = CallResult(410, "HTTP status 410")
FRESH = DeliveryProgress(HOOK)


def id_of(number: int) -> EntityId:
    return EntityId(f"65000000000000000a1{number:05x}")


def new(number: int) -> OutgoingEvent:
    return OutgoingEvent(id_of(number), "x", "{}")


def again(number: int, turn: Turn = Turn.RETRY, failing_ms: int = 80_000) -> OutgoingEvent:
    return OutgoingEvent(id_of(number), "x", "{}", turn, NOW_MS - failing_ms, 3)


def batch(
    *events: OutgoingEvent, progress: DeliveryProgress = FRESH, waiting: int = 0
) -> DeliveryBatch:
    firsts = [each.event for each in events if each.turn is Turn.FIRST]
    scanned = firsts[-1] if firsts else progress.cursor
    book = BookId("b")
    return DeliveryBatch(
        HOOK, book, "https://x", "s", True, "lease", progress, events, waiting, scanned
    )


def tried(found: DeliveryBatch, *results: CallResult) -> list[DeliveryAttempt]:
    return [
        DeliveryAttempt(event, NOW_MS, 5, result)
        for event, result in zip(found.events, results, strict=False)
    ]


def settled(found: DeliveryBatch, *results: CallResult) -> Settlement:
    return settlement(found, tried(found, *results), NOW_MS)


def failing(failures: int, for_ms: int = 90_000) -> DeliveryProgress:
    return DeliveryProgress(id_of(0), failures, NOW_MS - for_ms, NOW_MS)


def test_the_pause_is_an_eighth_of_the_failing_less_a_jitter() -> None:
    for failing_ms in (0, 1_000, 40_000, 75_000, 3_600_000, 10**9):
        longest = min(max(failing_ms // PAUSE_DIVISOR, PAUSE_MIN_MS), PAUSE_MAX_MS)
        assert 3 * longest // 4 < pause_ms(HOOK, failing_ms) <= longest


def test_what_failed_together_does_not_come_back_together() -> None:
    assert len({pause_ms(id_of(number), 3_600_000) for number in range(50)}) > 40
    assert pause_ms(HOOK, 5) == pause_ms(HOOK, 5), "the same, wherever it is computed"


def test_in_three_days_an_event_is_tried_often_enough_and_not_too_often() -> None:
    tries, failing_ms = 0, 0
    while failing_ms < GIVE_UP_AFTER_MS:
        tries += 1
        failing_ms += pause_ms(HOOK, failing_ms)
    assert 120 < tries < 180


def test_what_is_delivered_moves_the_cursor() -> None:
    found = batch(new(1), new(2), new(3))
    assert settled(found, OK, OK, OK) == Settlement(
        DeliveryProgress(id_of(3), next_attempt_ms=NOW_MS)
    )
    assert settled(found, OK).progress.cursor == id_of(1), "the slice was over"


def test_events_of_other_types_are_passed_over() -> None:
    found = replace(batch(), scanned=id_of(9))
    assert settled(found).progress == DeliveryProgress(id_of(9), next_attempt_ms=NOW_MS)
    away = replace(batch(progress=failing(4)), scanned=id_of(9))
    assert settled(away).progress == replace(failing(4), cursor=id_of(9)), "it is still away"


def test_the_first_failure_opens_the_window() -> None:
    found = batch(new(1), new(2), new(3))
    assert not is_over(found, tried(found, OK))
    assert is_over(found, tried(found, OK, NO))
    left = settled(found, OK, NO)
    assert left.progress == DeliveryProgress(id_of(2), 1, NOW_MS, NOW_MS + ORDER_WINDOW_MS)
    (waiting,) = left.waiting
    assert (waiting.event, waiting.attempts) == (id_of(2), 1)
    assert waiting.failing_since_ms == NOW_MS
    assert NOW_MS < waiting.next_attempt_ms <= NOW_MS + PAUSE_MIN_MS


def test_in_the_window_a_delivery_lets_those_behind_go() -> None:
    found = batch(again(0, failing_ms=6_000), progress=failing(1, 6_000), waiting=1)
    left = settled(found, OK)
    assert left.progress == DeliveryProgress(id_of(0), next_attempt_ms=NOW_MS)
    assert left.delivered == [id_of(0)]
    assert left.recovers_since_ms is None


def test_in_the_window_a_failure_changes_nothing_but_its_own_pause() -> None:
    held = replace(failing(1, 6_000), next_attempt_ms=NOW_MS + 54_000)
    found = batch(again(0, failing_ms=6_000), progress=held, waiting=1)
    left = settled(found, NO)
    assert left.progress == held
    assert [each.attempts for each in left.waiting] == [4]


def test_behind_the_window_one_that_is_refused_is_overtaken() -> None:
    found = batch(again(0), new(1), new(2), progress=failing(1), waiting=1)
    assert not is_over(found, tried(found, NO))
    assert not is_over(found, tried(found, NO, OK))
    left = settled(found, NO, OK, OK)
    assert left.progress == DeliveryProgress(id_of(2), next_attempt_ms=NOW_MS)
    assert [each.event for each in left.waiting] == [id_of(0)]
    assert left.recovers_since_ms is None, "it was that event, and not the receiver"


def test_while_one_waits_the_next_that_fails_holds_up_nobody() -> None:
    found = batch(new(1), new(2), waiting=1)
    assert not is_over(found, tried(found, NO))
    left = settled(found, NO, OK)
    assert left.progress == DeliveryProgress(id_of(2), next_attempt_ms=NOW_MS)
    assert [each.event for each in left.waiting] == [id_of(1)]
    alone = settled(batch(new(1), waiting=1), NO).progress
    assert alone == DeliveryProgress(id_of(1), 1, NOW_MS, NOW_MS)


def test_two_that_fail_in_a_row_make_new_ones_wait_longer_and_longer() -> None:
    found = batch(new(1), new(2), new(3), waiting=1)
    assert is_over(found, tried(found, NO, NO))
    for failures, pause_s in ((2, 5), (3, 10), (9, 640)):
        found = batch(new(1), progress=failing(failures - 1), waiting=failures - 1)
        left = settled(found, NO).progress
        assert left.failures == failures
        assert left.failing_since_ms == NOW_MS - 90_000
        assert left.next_attempt_ms == NOW_MS + pause_s * 1_000


def test_ten_in_a_row_that_get_no_answer_are_enough() -> None:
    """One that is refused is none of them: the receiver is there, and may take the next one."""
    before = failing(FAILURES_IN_A_ROW_MAX - 1)
    left = settled(batch(new(1), progress=before, waiting=9), NO).progress
    assert left.next_attempt_ms == NOW_MS - 90_000 + GIVE_UP_AFTER_MS
    for_ever = failing(FAILURES_IN_A_ROW_MAX, 2 * GIVE_UP_AFTER_MS)
    later = settled(batch(new(1), progress=for_ever, waiting=9), NO).progress
    assert later.next_attempt_ms == NOW_MS + PAUSE_MAX_MS


def test_one_that_is_refused_holds_up_nobody_while_others_wait() -> None:
    found = batch(again(0), new(1), new(2), new(3), progress=failing(1), waiting=1)
    assert not is_over(found, tried(found, REFUSED, REFUSED, REFUSED))
    left = settled(found, REFUSED, REFUSED, REFUSED)
    assert left.progress == DeliveryProgress(id_of(2), next_attempt_ms=NOW_MS)
    assert [each.event for each in left.waiting] == [id_of(0), id_of(1), id_of(2)]


@pytest.mark.parametrize("status", [None, 429, 502, 503, 504])
def test_what_stands_before_a_receiver_does_not_answer_for_it(status: int | None) -> None:
    assert not CallResult(status, "no").is_refusal
    assert not CallResult(200).is_refusal
    assert all(CallResult(other, "no").is_refusal for other in (301, 400, 404, 410, 500))


@pytest.mark.parametrize("first", [again(0), new(7)])
def test_a_refusal_after_an_absence_ends_it_as_a_delivery_does(first: OutgoingEvent) -> None:
    stopped = replace(failing(10), next_attempt_ms=NOW_MS + GIVE_UP_AFTER_MS)
    found = batch(first, new(8), progress=stopped, waiting=10)
    assert is_over(found, tried(found, REFUSED))
    left = settled(found, REFUSED)
    assert left.recovers_since_ms == NOW_MS - 90_000
    assert (left.progress.failures, left.progress.next_attempt_ms) == (0, NOW_MS)


def test_a_refusal_opens_the_order_window_and_does_not_end_it() -> None:
    first = batch(new(1), new(2))
    assert is_over(first, tried(first, REFUSED))
    held = settled(first, REFUSED).progress
    assert held == DeliveryProgress(id_of(1), 1, NOW_MS, NOW_MS + ORDER_WINDOW_MS)
    found = batch(again(1, failing_ms=6_000), progress=held, waiting=1)
    assert settled(found, REFUSED).progress == held
    after_three_days = settled(batch(new(1), progress=failing(12)), NO).progress
    found = batch(again(1, failing_ms=6_000), progress=after_three_days, waiting=1)
    assert settled(found, REFUSED).progress.next_attempt_ms == NOW_MS + ORDER_WINDOW_MS


def test_a_recovery_that_is_refused_lets_the_next_one_go() -> None:
    found = batch(again(0, Turn.RECOVERY), again(1, Turn.RECOVERY), new(2), waiting=2)
    assert not is_over(found, tried(found, REFUSED))
    assert settled(found, REFUSED).keeps_recovering


def test_what_is_refused_whatever_it_is_comes_at_pauses_once_many_wait() -> None:
    """In three days it must not crowd out what waits; nor does anything stop for as long."""
    for failures, pause_ms_ in ((1, 0), (2, 5_000), (9, 640_000), (10, 640_000), (99, 640_000)):
        found = batch(new(1), new(2), progress=failing(failures - 1), waiting=REFUSED_MAX)
        left = settled(found, REFUSED)
        assert left.progress.failures == failures
        assert left.progress.next_attempt_ms == NOW_MS + pause_ms_
        assert left.recovers_since_ms is None
        assert is_over(found, tried(found, REFUSED)) == (failures > 1)
    stopped = replace(failing(10), next_attempt_ms=NOW_MS + GIVE_UP_AFTER_MS)
    found = batch(again(0), progress=stopped, waiting=REFUSED_MAX)
    assert settled(found, REFUSED).progress.next_attempt_ms == NOW_MS + NEW_PAUSE_MAX_MS
    assert GIVE_UP_AFTER_MS // NEW_PAUSE_MAX_MS + REFUSED_MAX < WAITING_MAX


@pytest.mark.parametrize("first", [again(0), new(7)])
def test_the_first_delivery_after_an_absence_wakes_all_that_failed_since(
    first: OutgoingEvent,
) -> None:
    found = batch(first, new(8), progress=failing(5), waiting=5)
    assert is_over(found, tried(found, OK)), "those that wait go before new ones"
    left = settled(found, OK)
    assert left.recovers_since_ms == NOW_MS - 90_000
    assert (left.progress.failures, left.progress.next_attempt_ms) == (0, NOW_MS)


def test_a_recovery_that_fails_lets_new_events_go_first_again() -> None:
    found = batch(again(0, Turn.RECOVERY), again(1, Turn.RECOVERY), new(2), waiting=2)
    assert not is_over(found, tried(found, OK))
    assert is_over(found, tried(found, OK, NO))
    assert not settled(found, OK, NO).keeps_recovering
    assert settled(found, OK).keeps_recovering


def test_a_retry_that_fails_ends_no_batch() -> None:
    found = batch(again(0), new(1), again(2), waiting=2)
    assert not is_over(found, tried(found, NO))
    assert not is_over(found, tried(found, NO, OK, NO))
    assert settled(found, NO, OK, NO).progress.failures == 0


def test_after_three_days_of_failures_an_event_is_dead() -> None:
    left = settled(batch(again(0, failing_ms=GIVE_UP_AFTER_MS - 1), waiting=1), NO)
    assert left.dead == []
    left = settled(batch(again(0, failing_ms=GIVE_UP_AFTER_MS), waiting=1), NO)
    assert left.dead == [(id_of(0), "HTTP status 503")]
    assert left.waiting == []


def test_a_dead_letter_is_tried_once() -> None:
    replay = OutgoingEvent(id_of(0), "x", "{}", Turn.REPLAY)
    assert settled(batch(replay), OK).replayed == [id_of(0)]
    left = settled(batch(replay), NO)
    assert left.dead == [(id_of(0), "HTTP status 503")]
    assert left.progress == DeliveryProgress(HOOK, next_attempt_ms=NOW_MS)


def test_recoveries_go_before_new_events_and_retries_around_them() -> None:
    recovery, late, later = again(9, Turn.RECOVERY), again(1), again(2)
    replay = OutgoingEvent(id_of(0), "x", "{}", Turn.REPLAY)
    found = in_turn([recovery, late, later], [new(3), new(4)], [replay], 20)
    assert found == (recovery, late, new(3), new(4), later, replay)
    assert in_turn([recovery, late], [new(3)], [replay], 2) == (recovery, late)


def id_at(at_ms: int) -> EntityId:
    return EntityId(f"{at_ms // 1000:08x}0000000001000000")


def test_what_nobody_tried_is_given_up_after_three_days_of_absence() -> None:
    assert dead_up_to(FRESH, NOW_MS) is None
    assert dead_up_to(failing(3, GIVE_UP_AFTER_MS - 1), NOW_MS) is None
    limit = dead_up_to(failing(3, GIVE_UP_AFTER_MS), NOW_MS)
    assert limit is not None
    assert id_at(NOW_MS - GIVE_UP_AFTER_MS - 1_000) < limit
    assert id_at(NOW_MS - GIVE_UP_AFTER_MS) > limit
