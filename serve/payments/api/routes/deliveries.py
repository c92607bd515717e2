"""Deliveries to a webhook: the status, the log, a test, retries, dead letters (part D)."""

from collections.abc import Awaitable
from typing import TypeVar

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.delivery.batches import DeliveryAttempt, OutgoingEvent
from tollgate.actors.ledger.delivery.store import (
    DeadLetter,
    DeliveriesDown,
    DeliveryStatus,
    LoggedAttempt,
)
from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies.requests import ReplayCreate, RetryCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.orders import RETRY_AFTER_S
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import Unavailable
from tollgate.serve.payments.api.replies import Reply, as_list, encode_json
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.api.routes.webhooks import MEMBERS_ONLY, webhook_of

# What is kept is read from its end alone.
PAGED_BACK = (("limit", "1 to 1000"), ("before", "older than this id"))
TEST_TYPE = "webhook.test"
T = TypeVar("T")


async def _kept(answer: Awaitable[T]) -> T:
    """What is kept of deliveries, or Unavailable."""
    try:
        return await answer
    except DeliveriesDown as error:
        raise Unavailable(str(error), RETRY_AFTER_S) from error


async def find_status(context: ApiContext, call: Call) -> Reply:
    webhook = await webhook_of(context, call)
    found = await _kept(context.deliveries.status(webhook.id))
    return Reply(200, encode_json({"status": _status(found)}))


async def list_deliveries(context: ApiContext, call: Call) -> Reply:
    webhook = await webhook_of(context, call)
    page = read_list_query(call.query_fields).page
    found = await _kept(context.deliveries.attempts(webhook.id, page.limit, page.before))
    return Reply(200, as_list([encode_json(_logged(each)).decode() for each in found]))


async def send_test(context: ApiContext, call: Call) -> Reply:
    """Calls it while the caller waits, whether it is enabled or not. Nothing of it is in the books:
    the event is made up here, and is tried once."""
    webhook = await webhook_of(context, call)
    await context.limits.admit(
        per_call("webhook_tests", merchant=webhook.book),
        per_call("webhook_tests", address=call.address),
    )
    at_ms = context.now_ms
    event = EntityId(f"{at_ms // 1000:08x}{context.secrets.operation()[:16]}")
    body = {
        "id": event,
        "seq": 0,
        "type": TEST_TYPE,
        "created": moment(at_ms),
        "data": {"webhookId": webhook.id},
    }
    outgoing = OutgoingEvent(event, TEST_TYPE, encode_json(body).decode())
    attempt = await context.webhook_caller.attempt(webhook, outgoing)
    logged = await _kept(context.deliveries.log(webhook.id, attempt))
    return Reply(201, encode_json({"delivery": _logged(_of(logged, attempt))}))


def _of(logged: EntityId, attempt: DeliveryAttempt) -> LoggedAttempt:
    return LoggedAttempt(
        logged,
        attempt.event.event,
        attempt.event.type,
        attempt.at_ms,
        attempt.duration_ms,
        attempt.result.status,
        attempt.result.error or "",
        None,
    )


async def retry_events(context: ApiContext, call: Call) -> Reply:
    """Asking again for what is already due changes nothing, so a repetition needs no key."""
    webhook = await webhook_of(context, call)
    events = context.read(await call.body(), RetryCreate).events
    hurried = await _kept(context.deliveries.retry_now(webhook.id, events, context.now_ms))
    return Reply(201, encode_json({"queued": hurried}))


async def list_dead_letters(context: ApiContext, call: Call) -> Reply:
    webhook = await webhook_of(context, call)
    page = read_list_query(call.query_fields).page
    letters = await _kept(context.deliveries.dead_letters(webhook.id, page.limit, page.before))
    return Reply(200, as_list([encode_json(_letter(each)).decode() for each in letters]))


async def replay_dead_letters(context: ApiContext, call: Call) -> Reply:
    """Queueing what is queued already changes nothing, so a repetition needs no key."""
    webhook = await webhook_of(context, call)
    events = context.read(await call.body(), ReplayCreate).events
    queued = await _kept(context.deliveries.send_again(webhook.id, events, context.now_ms))
    return Reply(201, encode_json({"queued": queued}))


def _status(found: DeliveryStatus) -> dict[str, object]:
    status: dict[str, object] = {"waiting": found.waiting, "deadLetters": found.dead}
    if found.failing_since_ms is not None:
        status["failingSince"] = moment(found.failing_since_ms)
    if found.next_attempt_ms is not None:
        status["nextAttempt"] = moment(found.next_attempt_ms)
    return status


def _logged(attempt: LoggedAttempt) -> dict[str, object]:
    document: dict[str, object] = {
        "id": attempt.id,
        "eventId": attempt.event,
        "type": attempt.type,
        "created": moment(attempt.at_ms),
        "durationMs": attempt.duration_ms,
        "delivered": not attempt.error,
    }
    if attempt.status is not None:
        document["status"] = attempt.status
    if attempt.error:
        document["error"] = attempt.error
    if attempt.next_attempt_ms is not None:
        document["nextAttempt"] = moment(attempt.next_attempt_ms)
    return document


def _letter(letter: DeadLetter) -> dict[str, object]:
    return {
        "id": letter.event,
        "failed": moment(letter.at_ms),
        "reason": letter.reason,
        "queued": letter.is_queued,
    }


_WEBHOOK = "/merchants/{merchantId}/webhooks/{webhookId}"
ROUTES = (
    Route(
        "GET",
        f"{_WEBHOOK}/status",
        find_status,
        "webhooks",
        "How deliveries to a webhook fare",
        reply="DeliveryStatusReply",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        f"{_WEBHOOK}/deliveries",
        list_deliveries,
        "webhooks",
        "Log of the attempts to deliver",
        reply="Delivery[]",
        query=PAGED_BACK,
        required=frozenset({"limit"}),
        statuses=MEMBERS_ONLY,
        description="The newest first; page with `before`. The last 1,000 are kept.",
    ),
    Route(
        "POST",
        f"{_WEBHOOK}/tests",
        send_test,
        "webhooks",
        "Call a webhook with a test event",
        reply="DeliveryReply",
        status=201,
        statuses=MEMBERS_ONLY,
        description="The event, of type `webhook.test`, is signed like every other, tried once, "
        "and not in the list of events. The answer says how it went.",
        takes_key=False,
    ),
    Route(
        "POST",
        f"{_WEBHOOK}/retries",
        retry_events,
        "webhooks",
        "Try again now what waits for another try",
        request="RetryCreate",
        reply="RetryCreated",
        status=201,
        statuses=MEMBERS_ONLY,
        description="Those named in `events`, or all that wait.",
        takes_key=False,
    ),
    Route(
        "GET",
        f"{_WEBHOOK}/dead-letters",
        list_dead_letters,
        "webhooks",
        "Events that could not be delivered in three days",
        reply="DeadLetter[]",
        query=PAGED_BACK,
        required=frozenset({"limit"}),
        statuses=MEMBERS_ONLY,
        description="The newest first; page with `before`.",
    ),
    Route(
        "POST",
        f"{_WEBHOOK}/replays",
        replay_dead_letters,
        "webhooks",
        "Send dead letters again",
        request="ReplayCreate",
        reply="ReplayCreated",
        status=201,
        statuses=MEMBERS_ONLY,
        description="Those named in `events`, or all of them.",
        takes_key=False,
    ),
)
