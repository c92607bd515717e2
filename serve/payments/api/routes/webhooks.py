"""Webhooks: adding, changing and removing one; its secrets (part D)."""

from msgspec.json import decode

from tollgate.actors.ledger.book.entities import Webhook, entity_of_row
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.rows import EntityRow
from tollgate.actors.ledger.law.values import EntityId
from tollgate.actors.ledger.law.webhook_law import (
    AddWebhook,
    ChangeWebhook,
    RemoveWebhook,
    ReplaceWebhookSecret,
)
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.bodies.requests import WebhookChange, WebhookCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import BY_MERCHANT, ApiContext, list_of
from tollgate.serve.payments.api.entity_cache import CachedMerchant
from tollgate.serve.payments.api.rejections import NotFound
from tollgate.serve.payments.api.replies import Reply, done_reply, encode_json, under
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.secrets.key_issue import (
    KeyPurpose,
    WebhookSecretIssue,
    issue_webhook_secret,
)
from tollgate.serve.payments.webhooks.calls import replaced

MEMBERS_ONLY = frozenset({403, 404})


async def create_webhook(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, WebhookCreate, _targets(context, call, merchant))
    given = call.idempotency_key
    scope = (call.caller.app, merchant.id, given) if given else ()
    issue = issue_webhook_secret(context.secrets, KeyPurpose.WEBHOOK, scope)
    command = AddWebhook(
        wanted.url,
        context.secret_sealer.seal([issue.made], merchant.id),
        tuple(wanted.types or ()),
        wanted.enabled,
        issue.salt,
    )
    return _with_secret(await context.execute(call, merchant.id, command, body), issue)


def _targets(context: ApiContext, call: Call, merchant: CachedMerchant) -> TargetPolicy:
    """Where a webhook of this merchant may be, as far as this caller may say.

    A test merchant's may be on the loopback of a Tollgate that serves the loopback alone, where the
    operator says that it is a machine for development. Anybody can make a test merchant, but there
    the anybody is somebody on this machine, who can reach its ports without our help. Callers from
    elsewhere, whom a proxy or a replica's own port let in, would gain by it: they are refused by
    the address that they come from and the headers that proxies add. A proxy that adds none cannot
    be told from a local caller, which is why it takes the operator's word. Names that merely lead
    to the loopback are refused when they are dialled.
    """
    if not merchant.is_test:
        return context.targets.live
    return context.targets.test if call.is_local else context.targets.live


async def change_webhook(context: ApiContext, call: Call) -> Reply:
    """What is not named stays."""
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, WebhookChange, _targets(context, call, merchant))
    types = None if wanted.types is None else tuple(wanted.types)
    command = ChangeWebhook(_webhook_id(call), wanted.url, types, wanted.enabled)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def find_webhook(context: ApiContext, call: Call) -> Reply:
    return Reply(200, under("webhook", (await _row(context, call)).document))


async def _row(context: ApiContext, call: Call) -> EntityRow:
    merchant = await context.access_merchant(call, call.ids[0])
    row = await context.entities.row("webhook", call.ids[1])
    if row.book != merchant.id:
        raise NotFound(f"this merchant has no webhook {row.id}")
    return row


async def webhook_of(context: ApiContext, call: Call) -> Webhook:
    """The webhook that the path names, of the merchant that it names. Raises NotFound and what
    access does."""
    webhook = entity_of_row(await _row(context, call))
    assert isinstance(webhook, Webhook), "a webhook's row holds a webhook"
    return webhook


async def replace_webhook_secret(context: ApiContext, call: Call) -> Reply:
    """The secret before signs beside the new one for a day."""
    webhook = await webhook_of(context, call)
    given = call.idempotency_key
    scope = (call.caller.app, webhook.id, given) if given else ()
    issue = issue_webhook_secret(context.secrets, KeyPurpose.WEBHOOK_ROTATION, scope)
    known = context.secret_sealer.open(webhook.secret, webhook.book)
    sealed = context.secret_sealer.seal(replaced(known, issue.made, context.now_ms), webhook.book)
    command = ReplaceWebhookSecret(webhook.id, sealed, webhook.secret, issue.salt)
    done = await context.execute(call, webhook.book, command, is_checked=True)
    return _with_secret(done, issue)


def _with_secret(done: Done, issue: WebhookSecretIssue) -> Reply:
    """The books never show a secret, so it is put into the reply here, for the only time."""
    reply = decode(done.body, type=dict[str, dict[str, object]])
    salt = reply["webhook"].pop("salt", "")
    reply["webhook"]["secret"] = issue.shown(str(salt)).secret
    return done_reply(done, encode_json(reply))


async def delete_webhook(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    command = RemoveWebhook(_webhook_id(call))
    return done_reply(await context.execute(call, merchant.id, command))


def _webhook_id(call: Call) -> EntityId:
    if not is_id(call.ids[1]):
        raise NotFound(f"there is no webhook {call.ids[1][:24]}")
    return EntityId(call.ids[1])


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
        filters=BY_MERCHANT,
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/webhooks/{webhookId}",
        find_webhook,
        "webhooks",
        "Fetch a webhook",
        reply="WebhookReply",
        statuses=MEMBERS_ONLY,
    ),
    Route(
        "PUT",
        "/merchants/{merchantId}/webhooks/{webhookId}",
        change_webhook,
        "webhooks",
        "Change a webhook's address or types of events, enable or disable it",
        request="WebhookChange",
        status=204,
        statuses=MEMBERS_ONLY,
        description="What is not named stays. An empty list of `types` means all. While it is "
        "disabled events wait.",
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
)
