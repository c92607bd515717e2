"""The law of webhooks: the events that go to each, its progress, and the next try (part D, Events).

A webhook gets the events of its book that are younger than itself, one after another: ids of a book
rise in the order of commits, so one id, the cursor, says what is done with. The law:

    delivered           the cursor moves on; failures are forgotten
    failed              it is tried again after 5 s, 10 s, 20 s … 1 h, less a jitter of up to half
    failed for 3 days   counted from the event or from the first of the failures in a row,
                        whichever is later: it goes to the dead letters, and the cursor moves on

Nothing is lost when a process ends: a batch is claimed under a lease that runs out, and then it is
claimed again, so that a receiver may see an event twice, with the same id. A dead letter that is
sent again is tried once, beside the others, and is dead again if that fails.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ledger.law.values import BookId, EntityId

FIRST_PAUSE_MS = 5_000
PAUSE_MAX_MS = 3_600_000
GIVE_UP_AFTER_MS = 3 * 24 * 3_600_000
DEAD_LETTERS_MAX = 10_000  # of one webhook; beyond that the oldest go
REASON_LENGTH_MAX = 300


class DeliveriesDown(Exception):  # noqa: N818 - a state of the world
    """The storage does not answer. Nothing is known to have changed; try again later."""


@dataclass(frozen=True, slots=True)
class DeliveryProgress:
    """The progress of a webhook. `failures`: in a row, the first at `failing_since_ms`.
    `next_attempt_ms`: not before."""

    cursor: EntityId
    failures: int = 0
    failing_since_ms: int | None = None
    next_attempt_ms: int = 0


@dataclass(frozen=True, slots=True)
class OutgoingEvent:
    """An event on its way: `body` is its document. `is_again`: a dead letter sent again."""

    event: EntityId
    body: str
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryBatch:
    """Letters for one webhook, in the order in which they must go out, under a lease. `secret` is
    sealed as it was when the webhook was added."""

    webhook: EntityId
    book: BookId
    url: str
    secret: str
    lease: str
    progress: DeliveryProgress
    letters: tuple[OutgoingEvent, ...]


@dataclass(frozen=True, slots=True)
class DeliveryOutcome:
    """The outcome of a batch: so many letters from its beginning were delivered, and the next one
    failed for this reason, if there is one."""

    delivered: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that was given up, and why at last. `is_queued`: it is to be sent again."""

    event: EntityId
    at_ms: int
    reason: str
    is_queued: bool


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A webhook that is due. `failures`: in a row."""

    webhook: EntityId
    book: BookId
    url: str
    is_test: bool
    failures: int


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
        letters_max: int,
        choose: ChooseDue = first_due,
    ) -> list[DeliveryBatch]:
        """Batches of chosen webhooks that nobody else has claimed, and that are due. The least
        recently served are offered first."""

    async def settle(self, batch: DeliveryBatch, outcome: DeliveryOutcome, now_ms: int) -> bool:
        """Write down what became of a batch. False: its lease had run out, nothing was written."""

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


def progress_after(batch: DeliveryBatch, outcome: DeliveryOutcome, now_ms: int) -> DeliveryProgress:
    """The progress once a batch has come to its end."""
    before = batch.progress
    done = [letter for letter in batch.letters[: outcome.delivered] if not letter.is_again]
    cursor = done[-1].event if done else before.cursor
    if outcome.reason is None:
        # (whoever was served longest ago is next: the time of an attempt is also a place in line)
        return DeliveryProgress(cursor, next_attempt_ms=now_ms)
    failures = 1 if outcome.delivered else before.failures + 1
    since = before.failing_since_ms
    if since is None or outcome.delivered:
        since = now_ms
    return DeliveryProgress(cursor, failures, since, now_ms + pause_ms(batch.webhook, failures))


def dead_up_to(progress: DeliveryProgress, now_ms: int) -> EntityId | None:
    """Events of a failing webhook below this id are dead; None: none are."""
    limit_ms = now_ms - GIVE_UP_AFTER_MS
    if progress.failing_since_ms is None or progress.failing_since_ms > limit_ms:
        return None
    return EntityId(f"{limit_ms // 1000:08x}{'0' * 16}")


def pause_ms(webhook: EntityId, failures: int) -> int:
    """How long to wait after so many failures in a row. The jitter is drawn by webhook and count:
    many webhooks of one receiver do not come back at the same moment."""
    assert failures > 0, "without a failure there is no pause"
    longest = min(FIRST_PAUSE_MS << min(failures - 1, 32), PAUSE_MAX_MS)
    return longest - stable_hash(f"{webhook}:{failures}".encode()) % (longest // 2)
