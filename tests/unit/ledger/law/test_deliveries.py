"""The law of deliveries: pauses, progress, and when an event is given up."""

from dataclasses import replace

import pytest

from tollgate.actors.ledger.delivery.schedule import (
    FIRST_PAUSE_MS,
    GIVE_UP_AFTER_MS,
    PAUSE_MAX_MS,
    DeliveryBatch,
    DeliveryOutcome,
    DeliveryProgress,
    OutgoingEvent,
    dead_up_to,
    pause_ms,
    progress_after,
)
from tollgate.actors.ledger.law.values import BookId, EntityId

HOOK = EntityId("65000000000000000a000001")
NOW_MS = 1_800_000_000_000


def event(number: int) -> EntityId:
    return EntityId(f"65000000000000000a1{number:05x}")


def batch(progress: DeliveryProgress, letters: int = 3, again: int = 0) -> DeliveryBatch:
    young = [OutgoingEvent(event(number), "{}") for number in range(letters)]
    old = [OutgoingEvent(event(900 + number), "{}", is_again=True) for number in range(again)]
    return DeliveryBatch(HOOK, BookId("b"), "https://x", "s", "lease", progress, (*young, *old))


FRESH = DeliveryProgress(HOOK)
FAILING = DeliveryProgress(
    HOOK, failures=4, failing_since_ms=NOW_MS - 60_000, next_attempt_ms=NOW_MS
)


def test_pauses_double_up_to_an_hour_less_a_jitter() -> None:
    for failures in range(1, 100):
        longest = min(FIRST_PAUSE_MS * 2 ** (failures - 1), PAUSE_MAX_MS)
        assert longest / 2 < pause_ms(HOOK, failures) <= longest


def test_webhooks_do_not_come_back_together() -> None:
    pauses = {pause_ms(event(number), 12) for number in range(50)}
    assert len(pauses) > 40
    assert pause_ms(HOOK, 5) == pause_ms(HOOK, 5), "the same, wherever it is computed"


def test_in_three_days_it_is_tried_often_enough() -> None:
    tries, passed_ms = 0, 0
    while passed_ms < GIVE_UP_AFTER_MS:
        tries += 1
        passed_ms += pause_ms(HOOK, tries)
    assert 75 < tries < 175


def served(cursor: EntityId) -> DeliveryProgress:
    """Delivered just now: others are next."""
    return DeliveryProgress(cursor, next_attempt_ms=NOW_MS)


@pytest.mark.parametrize("before", [FRESH, FAILING])
def test_what_is_delivered_moves_the_cursor_and_forgets_failures(before: DeliveryProgress) -> None:
    assert progress_after(batch(before), DeliveryOutcome(3), NOW_MS) == served(event(2))
    assert progress_after(batch(before), DeliveryOutcome(2), NOW_MS) == served(event(1))


def test_a_batch_without_letters_changes_nothing_but_the_failures() -> None:
    assert progress_after(batch(FAILING, letters=0), DeliveryOutcome(0), NOW_MS) == served(HOOK)


def test_a_failure_waits() -> None:
    found = progress_after(batch(FRESH), DeliveryOutcome(0, "HTTP status 500"), NOW_MS)
    assert found == DeliveryProgress(HOOK, 1, NOW_MS, NOW_MS + pause_ms(HOOK, 1))


def test_failures_in_a_row_count_from_the_first() -> None:
    found = progress_after(batch(FAILING), DeliveryOutcome(0, "refused"), NOW_MS)
    assert found == replace(FAILING, failures=5, next_attempt_ms=NOW_MS + pause_ms(HOOK, 5))


def test_a_delivery_in_between_begins_a_new_row() -> None:
    found = progress_after(batch(FAILING), DeliveryOutcome(1, "refused"), NOW_MS)
    assert found == DeliveryProgress(event(0), 1, NOW_MS, NOW_MS + pause_ms(HOOK, 1))


def test_what_is_sent_again_does_not_move_the_cursor() -> None:
    assert progress_after(batch(FRESH, letters=0, again=2), DeliveryOutcome(2), NOW_MS) == served(
        HOOK
    )
    assert progress_after(batch(FRESH, letters=1, again=2), DeliveryOutcome(3), NOW_MS) == served(
        event(0)
    )
    found = progress_after(batch(FRESH, letters=0, again=2), DeliveryOutcome(0, "no"), NOW_MS)
    assert found.cursor == HOOK


def id_at(at_ms: int) -> EntityId:
    return EntityId(f"{at_ms // 1000:08x}0000000001000000")


def test_nothing_is_given_up_before_three_days_of_failures() -> None:
    assert dead_up_to(FRESH, NOW_MS) is None
    just = replace(FAILING, failing_since_ms=NOW_MS - GIVE_UP_AFTER_MS + 1)
    assert dead_up_to(just, NOW_MS) is None


def test_after_three_days_of_failures_events_as_old_are_given_up() -> None:
    limit = dead_up_to(replace(FAILING, failing_since_ms=NOW_MS - GIVE_UP_AFTER_MS), NOW_MS)
    assert limit is not None
    assert id_at(NOW_MS - GIVE_UP_AFTER_MS - 1_000) < limit
    assert id_at(NOW_MS - GIVE_UP_AFTER_MS) > limit
