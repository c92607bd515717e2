"""Webhooks: where events are sent, what could not be delivered, and sending it again (part D)."""

from msgspec.json import decode

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.book.entities import Webhook, entity_of_row
from tollgate.actors.ledger.delivery.schedule import DeadLetter, DeliveriesDown
from tollgate.actors.ledger.law.commands import AddWebhook, RemoveWebhook, ReplaceWebhookSecret
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.values import EntityId
from tollgate.serve.payments.api.bodies.requests import ReplayCreate, WebhookCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext, list_of
from tollgate.serve.payments.api.orders import RETRY_AFTER_S
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import NotFound, Unavailable
from tollgate.serve.payments.api.replies import Reply, as_list, done_reply, encode_json
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.webhooks.calls import WebhookSecret, replaced

MEMBERS_ONLY = frozenset({403, 404})


async def create_webhook(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    url = context.read(body, WebhookCreate).url
    given = call.idempotency_key
    scope = (call.caller.app, merchant.id, given) if given else ()
    secret = context.secrets.webhook_secret(*scope)
    command = AddWebhook(url, context.secret_sealer.seal([secret], merchant.id))
    return _with_secret(await context.execute(call, merchant.id, command, body), secret)


async def replace_webhook_secret(context: ApiContext, call: Call) -> Reply:
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
    return _with_secret(await context.execute(call, row.book, command, is_checked=True), secret)


def _with_secret(done: Done, secret: WebhookSecret) -> Reply:
    """The books never show a secret, so it is put into the reply here, for the only time."""
    reply = decode(done.body, type=dict[str, dict[str, object]])
    reply["webhook"]["secret"] = secret.secret
    return done_reply(done, encode_json(reply))


async def delete_webhook(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    if not is_id(call.ids[1]):
        raise NotFound(f"there is no webhook {call.ids[1][:24]}")
    command = RemoveWebhook(EntityId(call.ids[1]))
    return done_reply(await context.execute(call, merchant.id, command))


async def list_dead_letters(context: ApiContext, call: Call) -> Reply:
    webhook = await _webhook(context, call)
    page = read_list_query(call.query_fields, frozenset()).page
    try:
        letters = await context.deliveries.dead_letters(webhook.id, page.limit, page.before)
    except DeliveriesDown as error:
        raise Unavailable(str(error), RETRY_AFTER_S) from error
    return Reply(200, as_list([encode_json(_letter(each)).decode() for each in letters]))


async def replay_dead_letters(context: ApiContext, call: Call) -> Reply:
    """Queueing what is queued already changes nothing, so a repetition needs no key."""
    webhook = await _webhook(context, call)
    events = context.read(await call.body(), ReplayCreate).events
    try:
        queued = await context.deliveries.send_again(webhook.id, events, context.now_ms)
    except DeliveriesDown as error:
        raise Unavailable(str(error), RETRY_AFTER_S) from error
    return Reply(201, encode_json({"queued": queued}))


async def _webhook(context: ApiContext, call: Call) -> EntityRow:
    merchant = await context.access_merchant(call, call.ids[0])
    row = await context.entities.row("webhook", call.ids[1])
    if row.book != merchant.id:
        raise NotFound(f"this merchant has no webhook {row.id}")
    return row


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
        create_webhook,
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
        list_of("webhook"),
        "webhooks",
        "Webhooks of a merchant",
        reply="Webhook[]",
        is_paged=True,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "DELETE",
        "/merchants/{merchantId}/webhooks/{webhookId}",
        delete_webhook,
        "webhooks",
        "Remove a webhook",
        status=204,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/webhooks/{webhookId}/secrets",
        replace_webhook_secret,
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
        list_dead_letters,
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
