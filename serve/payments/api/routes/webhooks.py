"""Webhooks: where events are sent, what could not be delivered, and sending it again (part D)."""

from msgspec.json import decode

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.book.entities import Webhook, entity_of_row
from tollgate.actors.ledger.delivery.schedule import DeadLetter, DeliveriesDown
from tollgate.actors.ledger.law.commands import AddWebhook, RemoveWebhook, ReplaceWebhookSecret
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError, is_id
from tollgate.serve.payments.api.bodies.fields import BodyFields
from tollgate.serve.payments.api.bodies.readers import read_query
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.orders import RETRY_AFTER_S, done_reply
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import NotFound, Unavailable
from tollgate.serve.payments.api.replies import Reply, as_list, encode_json
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.webhooks.calls import WebhookSecret, replaced, webhook_url

MEMBERS_ONLY = frozenset({403, 404})
EVENTS_MAX = 1_000


async def add(context: ApiContext, call: Call) -> Reply:
    merchant = await context.enter(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    url = fields.need("url", lambda value, field: webhook_url(value, context.targets, field), "")
    fields.check()
    given = call.idempotency_key
    scope = (call.caller.app, merchant.id, given) if given else ()
    secret = context.secrets.webhook_secret(*scope)
    command = AddWebhook(url, context.secret_sealer.seal([secret], merchant.id))
    return _with_secret(await context.order(call, merchant.id, command, body), secret)


async def replace_secret(context: ApiContext, call: Call) -> Reply:
    """The secret before signs beside the new one for a day."""
    row = await _webhook(context, call)
    webhook = entity_of_row(row)
    assert isinstance(webhook, Webhook), "a webhook's row holds a webhook"
    given = call.idempotency_key
    scope = (call.caller.app, webhook.id, given) if given else ()
    secret = context.secrets.webhook_secret(*scope)
    known = context.secret_sealer.open(webhook.secret, row.book)
    sealed = context.secret_sealer.seal(replaced(known, secret, context.now_ms), row.book)
    command = ReplaceWebhookSecret(webhook.id, sealed, webhook.secret)
    return _with_secret(await context.order(call, row.book, command, is_checked=True), secret)


def _with_secret(done: Done, secret: WebhookSecret) -> Reply:
    """The books never show a secret, so it is put into the reply here, for the only time."""
    reply = decode(done.body, type=dict[str, dict[str, object]])
    reply["webhook"]["secret"] = secret.secret
    return done_reply(done, encode_json(reply))


async def page(context: ApiContext, call: Call) -> Reply:
    return await context.listed(call, "webhook", call.ids[0])


async def remove(context: ApiContext, call: Call) -> Reply:
    merchant = await context.enter(call, call.ids[0])
    if not is_id(call.ids[1]):
        raise NotFound(f"there is no webhook {call.ids[1][:24]}")
    command = RemoveWebhook(EntityId(call.ids[1]))
    return done_reply(await context.order(call, merchant.id, command))


async def dead_letters(context: ApiContext, call: Call) -> Reply:
    webhook = await _webhook(context, call)
    page = read_list_query(read_query(call.query), frozenset()).page
    try:
        letters = await context.deliveries.dead_letters(webhook.id, page.limit, page.before)
    except DeliveriesDown as error:
        raise Unavailable(str(error), RETRY_AFTER_S) from error
    return Reply(200, as_list([encode_json(_letter(each)).decode() for each in letters]))


async def replay(context: ApiContext, call: Call) -> Reply:
    """Queueing what is queued already changes nothing, so a repetition needs no key."""
    webhook = await _webhook(context, call)
    fields = BodyFields(await call.body())
    events = fields.may("events", _events, None)
    fields.check()
    try:
        queued = await context.deliveries.send_again(webhook.id, events, context.now_ms)
    except DeliveriesDown as error:
        raise Unavailable(str(error), RETRY_AFTER_S) from error
    return Reply(201, encode_json({"queued": queued}))


async def _webhook(context: ApiContext, call: Call) -> EntityRow:
    merchant = await context.enter(call, call.ids[0])
    row = await context.entities.row("webhook", call.ids[1])
    if row.book != merchant.id:
        raise NotFound(f"this merchant has no webhook {row.id}")
    return row


def _events(value: object, field: str) -> list[EntityId] | FieldError | None:
    if not isinstance(value, list) or not 0 < len(value) <= EVENTS_MAX:
        return FieldError(field, f"must be a list of 1 to {EVENTS_MAX} ids")
    if not all(isinstance(each, str) and constraints.is_id(each) for each in value):
        return FieldError(field, "must hold ids of events")
    return [EntityId(each) for each in value]


def _letter(letter: DeadLetter) -> dict[str, object]:
    return {
        "id": letter.event,
        "failed": moment(letter.at_ms),
        "reason": letter.reason,
        "queued": letter.is_queued,
    }


ROUTES = (
    Route(
        "POST",
        "/merchants/{merchantId}/webhooks",
        add,
        "webhooks",
        "Send events to a URL",
        request="WebhookCreate",
        reply="WebhookCreated",
        status=201,
        statuses=MEMBERS_ONLY,
        description="Calls are signed: `Tollgate-Signature: t=…,v1=…`, HMAC-SHA-256 of "
        "`t.body` under the secret, which is shown here and nowhere else.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/webhooks",
        page,
        "webhooks",
        "Webhooks of a merchant",
        reply="Webhook[]",
        is_paged=True,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "DELETE",
        "/merchants/{merchantId}/webhooks/{webhookId}",
        remove,
        "webhooks",
        "Remove a webhook",
        status=204,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/webhooks/{webhookId}/secrets",
        replace_secret,
        "webhooks",
        "Replace the secret of a webhook",
        reply="WebhookCreated",
        status=201,
        statuses=MEMBERS_ONLY | {409},
        description="The new secret is shown here and nowhere else. For a day calls carry a "
        "`v1` of the secret before as well.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/webhooks/{webhookId}/dead-letters",
        dead_letters,
        "webhooks",
        "Events that could not be delivered in three days",
        reply="DeadLetter[]",
        is_paged=True,
        statuses=MEMBERS_ONLY,
        description="The newest first; page with `before`.",
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/webhooks/{webhookId}/replays",
        replay,
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
