"""The law of deliveries: their order, what is tried again and when, what is given up (part D, Order
and Retries).

A webhook gets the events of its book that are younger than itself, one after another: ids of a book
rise in the order of commits, so one id, the cursor, says which events have had their first attempt.

    delivered             the next one
    the first failure     for a minute, the order window, those behind it wait while it is tried
                          again
    a minute of failures  it waits for its retries beside the others, which go on
    a failure while       it waits at once beside them: the window is closed, and the next one is
    others wait           tried in the same breath
    two in a row          the receiver is taken to be away: new events are tried at pauses that
                          double, each after the oldest of those that wait
    ten in a row          no further one is tried until the receiver answers one of them
    a refusal             an answer of the receiver's own: it is there, and does not take this one
                          event, which waits for its retries beside the others
    500 wait              a refusal is one more failure in a row, so that a receiver that takes
                          nothing crowds out nothing that waits; but pauses end at eleven minutes
    there again           all that failed since go out at once, the oldest first, before new ones
    failed for 3 days     a dead letter

The pause between attempts at an event is an eighth of the time that it has failed for. So whoever
was away for an hour waits for less than eight minutes more, and nobody is called for ever.

Nothing is lost when a process ends: a batch is claimed under a lease that runs out, and then it is
claimed again, so that a receiver may see an event twice, with the same id. A dead letter that is
sent again is tried once, beside the others, and is dead again if that fails.

No clock that was wrong holds up deliveries once it is right: a time further ahead than anything
waits for was written by such a clock, and is over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tollgate.actors.kernel.hashing import stable_hash
from tollgate.actors.ledger.delivery.batches import (
    DeliveryAttempt,
    DeliveryBatch,
    DeliveryProgress,
    OutgoingEvent,
    Turn,
)
from tollgate.actors.ledger.law.values import EntityId

ORDER_WINDOW_MS = 60_000
PAUSE_MIN_MS = 5_000
PAUSE_MAX_MS = 3_600_000
# The pause is this part of the time that an event has failed for.
PAUSE_DIVISOR = 8
GIVE_UP_AFTER_MS = 3 * 24 * 3_600_000
# Different events that fail in a row before no further one is tried.
FAILURES_IN_A_ROW_MAX = 10
# The longest pause of new events, other than the one after so many.
NEW_PAUSE_MAX_MS = PAUSE_MIN_MS << FAILURES_IN_A_ROW_MAX - 3
# Events of a webhook that wait for another try; beyond that the oldest are given up early.
WAITING_MAX = 1_000
# While fewer wait, a refusal holds up nobody. (In three days of pauses at their longest there are
# 405 new ones: so many find room.)
REFUSED_MAX = WAITING_MAX // 2
DEAD_LETTERS_MAX = 10_000  # of one webhook; beyond that the oldest go


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that failed and is tried again at `next_attempt_ms`."""

    event: EntityId
    failing_since_ms: int
    attempts: int
    next_attempt_ms: int
    reason: str


@dataclass(slots=True)
class Settlement:
    """What a batch leaves. `waiting`: events that wait, or go on waiting. `delivered`: those that
    waited and do not any more. `dead`: given up, and why. `replayed`: dead letters, delivered.
    `recovers_since_ms`: all events that first failed then or later go out at once; None: none.
    `keeps_recovering`: events that were to go before new ones still do."""

    progress: DeliveryProgress
    waiting: list[Waiting] = field(default_factory=list)
    delivered: list[EntityId] = field(default_factory=list)
    dead: list[tuple[EntityId, str]] = field(default_factory=list)
    replayed: list[EntityId] = field(default_factory=list)
    recovers_since_ms: int | None = None
    keeps_recovering: bool = True


def may_go_first(progress: DeliveryProgress, now_ms: int) -> bool:
    """Tells whether new events may go out. While nothing fails, `next_attempt_ms` is a place in
    line and no time to wait for; nor is one that lies further ahead than the longest wait."""
    ahead_ms = progress.next_attempt_ms - now_ms
    return not progress.failures or not 0 < ahead_ms <= GIVE_UP_AFTER_MS


def is_over(batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt]) -> bool:
    """Tells whether a batch ends here: what is behind the last attempt has to wait."""
    last, before = attempts[-1], attempts[:-1]
    if _is_there(batch, attempts):
        # (what failed while the receiver was away goes before whatever is new)
        return _failures(batch, before) > 1
    match last.event.turn:
        case Turn.RECOVERY:
            return True
        case Turn.FIRST:
            return not _waiting(batch, before) or _failures(batch, attempts) > 1
    return False


def settlement(
    batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
) -> Settlement:
    """What the attempts at a batch lead to. Without any, the cursor alone moves on."""
    # (whoever was served longest ago is next: the time of an attempt is also a place in line)
    place_ms = max(now_ms, batch.progress.next_attempt_ms) if batch.progress.failures else now_ms
    found = Settlement(replace(batch.progress, next_attempt_ms=place_ms))
    for number, attempt in enumerate(attempts, start=1):
        if attempt.event.turn is Turn.FIRST:
            found.progress = replace(found.progress, cursor=attempt.event.event)
        if attempt.is_delivery:
            _deliver(found, attempt, now_ms)
        else:
            _fail(found, batch, attempts[:number], now_ms)
    tried = {attempt.event.event for attempt in attempts}
    if all(each.event in tried for each in batch.events if each.turn is Turn.FIRST):
        found.progress = replace(found.progress, cursor=batch.scanned)
    return found


def _deliver(found: Settlement, attempt: DeliveryAttempt, now_ms: int) -> None:
    match attempt.event.turn:
        case Turn.RETRY | Turn.RECOVERY:
            found.delivered.append(attempt.event.event)
        case Turn.REPLAY:
            found.replayed.append(attempt.event.event)
    _end_absence(found, now_ms)


def _end_absence(found: Settlement, now_ms: int) -> None:
    if found.progress.failures > 1:
        found.recovers_since_ms = found.progress.failing_since_ms
    found.progress = DeliveryProgress(found.progress.cursor, next_attempt_ms=now_ms)


def _fail(
    found: Settlement, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
) -> None:
    attempt = attempts[-1]
    event, reason = attempt.event, attempt.result.error or ""
    since_ms = _since_ms(event.failing_since_ms, now_ms)
    if _is_there(batch, attempts):
        # (the order window is no absence: what is tried again in it does not end it)
        if event.turn is Turn.FIRST or found.progress.failures > 1:
            _end_absence(found, now_ms)
    elif event.turn is Turn.FIRST:
        found.progress = _failing(found.progress, batch, attempts, now_ms)
    elif attempt.result.is_refusal and found.progress.failures > 1:
        next_ms = min(found.progress.next_attempt_ms, now_ms + NEW_PAUSE_MAX_MS)
        found.progress = replace(found.progress, next_attempt_ms=next_ms)
    if event.turn is Turn.RECOVERY and not attempt.result.is_refusal:
        found.keeps_recovering = False
    if event.turn is Turn.REPLAY or now_ms - since_ms >= GIVE_UP_AFTER_MS:
        found.dead.append((event.event, reason))
        return
    next_ms = now_ms + pause_ms(event.event, now_ms - since_ms)
    found.waiting.append(Waiting(event.event, since_ms, event.attempts + 1, next_ms, reason))


def _failing(
    before: DeliveryProgress, batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt], now_ms: int
) -> DeliveryProgress:
    """The progress after a failure at a first attempt."""
    waiting = _waiting(batch, attempts[:-1])
    failures = before.failures + 1 if waiting else 1
    since_ms = _since_ms(before.failing_since_ms, now_ms)
    if not waiting:
        next_ms = now_ms + ORDER_WINDOW_MS
    elif failures >= FAILURES_IN_A_ROW_MAX and attempts[-1].result.is_refusal:
        next_ms = now_ms + NEW_PAUSE_MAX_MS
    elif failures >= FAILURES_IN_A_ROW_MAX:
        next_ms = max(since_ms + GIVE_UP_AFTER_MS, now_ms + PAUSE_MAX_MS)
    elif failures > 1:
        next_ms = now_ms + (PAUSE_MIN_MS << failures - 2)
    else:
        next_ms = now_ms
    return DeliveryProgress(before.cursor, failures, since_ms, next_ms)


def _since_ms(failing_since_ms: int | None, now_ms: int) -> int:
    """The first failure, which cannot lie ahead of the clock."""
    return now_ms if failing_since_ms is None else min(failing_since_ms, now_ms)


def _is_there(batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt]) -> bool:
    """Tells whether the last attempt shows that the receiver is there. A refusal does not when it
    opens the order window, nor when so many wait that it must be slowed down."""
    last = attempts[-1]
    if not last.result.is_refusal:
        return last.is_delivery
    waiting = _waiting(batch, attempts[:-1])
    return waiting < REFUSED_MAX and (waiting > 0 or last.event.turn is not Turn.FIRST)


def _waiting(batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt]) -> int:
    """How many events wait for another try after these attempts."""
    failed = sum(not each.is_delivery for each in attempts if each.event.turn is Turn.FIRST)
    again = (Turn.RETRY, Turn.RECOVERY)
    return batch.waiting + failed - sum(a.is_delivery for a in attempts if a.event.turn in again)


def _failures(batch: DeliveryBatch, attempts: Sequence[DeliveryAttempt]) -> int:
    """How many first attempts have failed in a row."""
    failures = batch.progress.failures
    for number, attempt in enumerate(attempts, start=1):
        is_first = attempt.event.turn is Turn.FIRST
        if _is_there(batch, attempts[:number]):
            failures = 0 if attempt.is_delivery or is_first or failures > 1 else failures
        elif is_first:
            failures += 1
    return failures


def dead_up_to(progress: DeliveryProgress, now_ms: int) -> EntityId | None:
    """Events that nobody tried, below this id, are dead, because the receiver has been away for so
    long; None: none are."""
    limit_ms = now_ms - GIVE_UP_AFTER_MS
    if progress.failing_since_ms is None or progress.failing_since_ms > limit_ms:
        return None
    return EntityId(f"{limit_ms // 1000:08x}{'0' * 16}")


def pause_ms(event: EntityId, failing_ms: int) -> int:
    """How long to wait before the next attempt at an event that has failed for so long. The jitter
    is drawn by event and time: what failed together does not come back at the same moment."""
    longest = min(max(failing_ms // PAUSE_DIVISOR, PAUSE_MIN_MS), PAUSE_MAX_MS)
    return longest - stable_hash(f"{event}:{failing_ms}".encode()) % (longest // 4)


def in_turn(
    failed: Sequence[OutgoingEvent],
    new: Sequence[OutgoingEvent],
    replays: Sequence[OutgoingEvent],
    events_max: int,
) -> tuple[OutgoingEvent, ...]:
    """The events of a batch in their order: of those that `failed` (recoveries first), one goes
    before the new ones and the others behind, so that neither can hold up the other: with
    `events_max` of at least 2."""
    recoveries = [each for each in failed if each.turn is Turn.RECOVERY]
    retries = [each for each in failed if each.turn is Turn.RETRY]
    return (*recoveries, *retries[:1], *new, *retries[1:], *replays)[:events_max]
