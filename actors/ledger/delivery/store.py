"""`DeliveryStore`: the port to durable progress of all webhooks, and what it tells of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, DeliveryBatch, DueDelivery
from tollgate.actors.ledger.law.values import EntityId


class DeliveriesDown(Exception):  # noqa: N818 - a state of the world
    """The storage does not answer. Nothing is known to have changed; try again later."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was given up, and why at last. `is_queued`: it is to be sent again."""

    event: EntityId
    at_ms: int
    reason: str
    is_queued: bool


@dataclass(frozen=True, slots=True)
class LoggedAttempt:
    """An attempt in the log of a webhook. `id` rises with time. `status`: of the answer, None
    without one; `error` empty: it was a delivery; `next_attempt_ms`: None when there is none."""

    id: EntityId
    event: EntityId
    type: str
    at_ms: int
    duration_ms: int
    status: int | None
    error: str
    next_attempt_ms: int | None


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """How a webhook fares. `waiting`: how many events wait for another try, one of them since
    `failing_since_ms`, the next at `next_attempt_ms`; None: none waits. `dead`: how many were given
    up."""

    waiting: int
    dead: int
    failing_since_ms: int | None
    next_attempt_ms: int | None


@dataclass(frozen=True, slots=True)
class DeliveryOverview:
    """How all webhooks together fare. `dead`: events that were given up and are not to be sent
    again; `waiting`: that wait for another try. `oldest_new`: the oldest event that was not tried
    yet, of a webhook that takes new ones; None when there is none."""

    dead: int
    waiting: int
    oldest_new: EntityId | None


# Of webhooks that are due, in the order in which they should be served, at most so many.
ChooseDue = Callable[[Sequence[DueDelivery], int], Sequence[DueDelivery]]


def first_due(due: Sequence[DueDelivery], batches_max: int) -> Sequence[DueDelivery]:
    """The first ones, whoever they are."""
    return due[:batches_max]


class DeliveryStore(Protocol):
    """Durable progress of all webhooks. Every method may raise DeliveriesDown."""

    async def claim(
        self,
        now_ms: int,
        lease_ms: int,
        batches_max: int,
        events_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        """Batches of chosen webhooks that nobody else has claimed, and that are due. The least
        recently served are offered first."""

    async def settle(
        self, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
    ) -> bool:
        """Write down what became of a batch. False: its lease had run out, nothing was written."""

    async def log(self, webhook: EntityId, attempt: DeliveryAttempt) -> EntityId:
        """Write an attempt down that is no part of a batch; its id."""

    async def attempts(
        self, webhook: EntityId, limit: int, before: EntityId | None = None
    ) -> Sequence[LoggedAttempt]:
        """The log, the newest first."""

    async def status(self, webhook: EntityId) -> DeliveryStatus:
        """How it fares now."""

    async def retry_now(
        self, webhook: EntityId, events: Sequence[EntityId] | None, now_ms: int
    ) -> int:
        """End the pauses of these events, or of all that wait, and of the webhook; how many."""

    async def dead_letters(
        self, webhook: EntityId, limit: int, before: EntityId | None = None
    ) -> Sequence[DeadLetter]:
        """The newest first."""

    async def send_again(
        self, webhook: EntityId, events: Sequence[EntityId] | None, now_ms: int
    ) -> int:
        """Queue these dead letters, or all of them; how many."""

    async def forget_removed(self) -> int:
        """Drop what is kept of webhooks that are no more; how many."""
