"""Events on their way to a webhook: a batch of them under a lease, and what became of each."""

from dataclasses import dataclass
from enum import Enum

from tollgate.actors.ledger.law.values import BookId, EntityId

# Answers given in place of a receiver that is away, or that cannot keep up. Any other answer is its
# own.
AWAY_STATUSES = frozenset({429, 502, 503, 504})


class Turn(Enum):
    """The reason why an event goes out now."""

    FIRST = "first"  # it was never tried
    RECOVERY = "recovery"  # it failed, and goes before whatever is new
    RETRY = "retry"  # it failed, and its pause is over
    REPLAY = "replay"  # a dead letter, which its merchant sends again


@dataclass(frozen=True, slots=True)
class OutgoingEvent:
    """An event on its way: `body` is its document. `failing_since_ms`: its first failure, if it has
    failed, and `attempts`: how often."""

    event: EntityId
    type: str
    body: str
    turn: Turn = Turn.FIRST
    failing_since_ms: int | None = None
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryProgress:
    """The progress of a webhook. `cursor`: the youngest event that was tried. `failures`: how many
    different events failed in a row, each at its first attempt, with no delivery in between; the
    first of these failures was at `failing_since_ms`. `next_attempt_ms`: before, no event goes out
    for the first time."""

    cursor: EntityId
    failures: int = 0
    failing_since_ms: int | None = None
    next_attempt_ms: int = 0


@dataclass(frozen=True, slots=True)
class DeliveryBatch:
    """Events for one webhook, in the order in which they must go out, under a lease. `secret` is
    sealed as it was when the webhook was added. `waiting`: how many events wait for another try,
    in this batch or not. `scanned`: the cursor once the batch's events have been tried."""

    webhook: EntityId
    book: BookId
    url: str
    secret: str
    is_test: bool
    lease: str
    progress: DeliveryProgress
    events: tuple[OutgoingEvent, ...]
    waiting: int
    scanned: EntityId


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call. `status`: of its answer, None without one. `error`: in one line, why
    the receiver does not have the event; None: it has."""

    status: int | None
    error: str | None = None

    @property
    def is_refusal(self) -> bool:
        """True if the receiver is there, and does not take this event."""
        return self.error is not None and self.status not in {None, *AWAY_STATUSES}


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """An event that was sent, when, for how long, and with what result."""

    event: OutgoingEvent
    at_ms: int
    duration_ms: int
    result: CallResult

    @property
    def is_delivery(self) -> bool:
        return self.result.error is None


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A webhook that is due. `failures`: in a row."""

    webhook: EntityId
    book: BookId
    url: str
    is_test: bool
    failures: int
