"""The events of a batch: what failed and is tried again, what is new, what is sent again."""

from msgspec import Struct
from msgspec.json import Decoder
from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from tollgate.actors.ledger.delivery.batches import DeliveryBatch, OutgoingEvent, Turn
from tollgate.actors.ledger.delivery.schedule import in_turn, may_go_first
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.storage.deliveries.tables import (
    DueWebhook,
    failed_events,
    is_retry_due,
    new_events,
    queued_letters,
    retries,
)

# New events that are looked through at once for those of the wanted types.
SCAN_MAX = 500


class _Typed(Struct):
    type: str


_decode = Decoder(_Typed).decode


async def batch_of(
    connection: AsyncConnection, due: DueWebhook, lease: str, now_ms: int, events_max: int
) -> DeliveryBatch:
    """A claimed webhook's batch of at most `events_max`."""
    webhook, progress = due.webhook, due.progress
    new: list[OutgoingEvent] = []
    scanned = progress.cursor
    if may_go_first(progress, now_ms):
        new, scanned = await _new(connection, due, events_max)
    failed = await _failed(connection, due, now_ms, events_max, is_probed=bool(new))
    found = await connection.execute(queued_letters(webhook.id).limit(events_max))
    replays = [_outgoing(event, body, Turn.REPLAY) for event, body in found]
    waiting = select(func.count()).where(retries.c.webhook == webhook.id)
    events = in_turn(failed, new, replays, events_max)
    if (taken := [each for each in new if each in events]) != new:
        scanned = taken[-1].event if taken else progress.cursor
    return DeliveryBatch(
        webhook=webhook.id,
        book=webhook.book,
        url=webhook.url,
        secret=webhook.secret,
        is_test=webhook.is_test,
        lease=lease,
        progress=progress,
        events=events,
        waiting=(await connection.execute(waiting)).scalar_one(),
        scanned=scanned,
    )


async def _new(
    connection: AsyncConnection, due: DueWebhook, events_max: int
) -> tuple[list[OutgoingEvent], EntityId]:
    """The next new events of the types that the webhook wants, and how far they reach."""
    types, scanned = due.webhook.types, due.progress.cursor
    new: list[OutgoingEvent] = []
    found = await connection.execute(new_events(due).limit(SCAN_MAX if types else events_max))
    for event, body in found:
        scanned = EntityId(event)
        outgoing = _outgoing(event, body, Turn.FIRST)
        if not types or outgoing.type in types:
            new.append(outgoing)
        if len(new) == events_max:
            break
    return new, scanned


async def _failed(
    connection: AsyncConnection,
    due: DueWebhook,
    now_ms: int,
    events_max: int,
    *,
    is_probed: bool,
) -> list[OutgoingEvent]:
    """What is due of it; and the oldest, when new ones are about to go before it."""
    every = failed_events(due.webhook.id)
    by_turn = every.where(is_retry_due(now_ms)).order_by(retries.c.next_attempt_ms, retries.c.event)
    failed = await _again(connection, by_turn.limit(events_max))
    if is_probed and due.progress.failures:
        oldest = await _again(connection, every.order_by(retries.c.event).limit(1))
        recoveries = [each for each in failed if each.turn is Turn.RECOVERY]
        if not recoveries:
            failed = oldest + [each for each in failed if each not in oldest]
    return failed


async def _again(
    connection: AsyncConnection, query: Select[str, str, int, int, int]
) -> list[OutgoingEvent]:
    return [
        _outgoing(event, body, Turn.RETRY if next_ms else Turn.RECOVERY, since_ms, attempts)
        for event, body, since_ms, attempts, next_ms in await connection.execute(query)
    ]


def _outgoing(
    event: str, body: str, turn: Turn, failing_since_ms: int | None = None, attempts: int = 0
) -> OutgoingEvent:
    kind = _decode(body).type
    return OutgoingEvent(EntityId(event), kind, body, turn, failing_since_ms, attempts)
