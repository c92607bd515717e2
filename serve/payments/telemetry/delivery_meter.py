"""Counts what becomes of webhooks' events: each attempt, how long it took, and how long an event
had waited for its first one."""

from collections.abc import Sequence

from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, Turn
from tollgate.actors.ledger.law.ids import second_of
from tollgate.actors.ratelimit.statistics.tallies import Tallies

STORAGE_ERRORS = "payments.webhooks.storage_errors"
ATTEMPTS, TIMES = "payments.webhooks.attempts", "payments.webhooks.attempt.duration"
LAG = "payments.webhooks.lag.duration"


class DeliveryMeter:
    """Of one process."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies

    def storage_failed(self) -> None:
        """See DeliveryListener."""
        self._tallies.count(STORAGE_ERRORS)

    def attempted(self, attempts: Sequence[DeliveryAttempt]) -> None:
        """See DeliveryListener."""
        for attempt in attempts:
            self._tallies.count(f"{ATTEMPTS}.__outcome={_outcome(attempt)}")
            self._tallies.observe(TIMES, 1, attempt.duration_ms / 1_000)
            if attempt.event.turn is Turn.FIRST:
                self._tallies.observe(LAG, 1, waited_s(attempt))


def waited_s(attempt: DeliveryAttempt) -> float:
    """The time from an event to this attempt, to a second, as ids tell it."""
    return max(0.0, attempt.at_ms / 1_000 - second_of(attempt.event.event))


def _outcome(attempt: DeliveryAttempt) -> str:
    if attempt.is_delivery:
        return "delivered"
    return "refused" if attempt.result.is_refusal else "unanswered"
