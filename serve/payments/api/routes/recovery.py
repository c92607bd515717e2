"""Recovery of an app whose key was lost or stolen (part D, Recovery).

Whoever holds a key can add others until the owner's is gone. So there is a way back that no key
opens or closes: the recovery code, which is shown once with the app's first key; and the operator,
for apps without a code and owners without theirs. Both end every key that there is.

A code that others may have seen is replaced by whoever has it and a key that is a day old: neither
a stolen key nor a code that was found is enough to take the app over.
"""

from hashlib import sha256

from msgspec.json import decode

from tollgate.actors.ledger.law.commands import RecoverApp, ReplaceRecoveryCode
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.values import DIRECTORY, EntityId
from tollgate.serve.payments.api.bodies.requests import AppRecover
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.rejections import NotFound
from tollgate.serve.payments.api.replies import Reply, done_reply, encode_json
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.api.routes.apps import (
    UNGUESSABLE_KEY_LENGTH_MIN,
    own_app,
    unguessable_key,
    with_key,
)
from tollgate.serve.payments.secrets.key_issue import KeyPurpose, issue_keys


async def recover_app(context: ApiContext, call: Call) -> Reply:
    """Without credentials; the code stays what it is, so that a lost reply locks nobody out."""
    await context.limits.admit(per_call("recoveries", address=call.address))
    app = _app(call)
    body = await call.body()
    presented = context.digests.stored(context.read(body, AppRecover).recoveryCode).digest
    # Nobody's idempotency keys are everybody's: the code tells one caller's from another's.
    given = call.idempotency_key
    scope = (app, presented, given) if given else ()
    issue = issue_keys(context.secrets, KeyPurpose.RECOVERY, scope)
    stored = context.digests.stored(issue.made.key)
    command = RecoverApp(app, presented, stored.digest, stored.last4, salt=issue.salt)
    own = sha256("\n".join(scope).encode()).hexdigest() if scope else ""
    done = await context.execute(call, DIRECTORY, command, body, idempotency_key=own)
    context.authentication.forget()
    return with_key(done, issue)


async def reissue_app_key(context: ApiContext, call: Call) -> Reply:
    """By the operator, who has made sure of the owner in another way. The recovery code is new as
    well: whoever had the key may have had that."""
    app, given = _app(call), call.idempotency_key
    issue = issue_keys(context.secrets, KeyPurpose.REISSUE, (app, given) if given else ())
    stored = context.digests.stored(issue.made.key)
    recovery = context.digests.stored(issue.made.code).digest
    command = RecoverApp(app, "", stored.digest, stored.last4, recovery, issue.salt)
    done = await context.execute(call, DIRECTORY, command, await call.body())
    context.authentication.forget()
    return with_key(done, issue, has_code=True)


async def replace_recovery_code(context: ApiContext, call: Call) -> Reply:
    """The code before opens nothing from then on."""
    app = await own_app(context, call)
    await context.limits.admit(per_call("recoveries", address=call.address))
    body = await call.body()
    presented = context.digests.stored(context.read(body, AppRecover).recoveryCode).digest
    # Who stole a key may know the code before: the reply is not for them.
    given = unguessable_key(call, "whoever guesses it is shown the code again")
    issue = issue_keys(context.secrets, KeyPurpose.CODE, (app.id, given) if given else ())
    asking = context.digests.presented(call.headers.authorization)
    recovery = context.digests.stored(issue.made.code).digest
    command = ReplaceRecoveryCode(app.id, presented, asking, recovery, issue.salt)
    done = await context.execute(call, DIRECTORY, command, body)
    reply = decode(done.body, type=dict[str, dict[str, str]])
    reply["app"]["recoveryCode"] = issue.shown(reply["app"].pop("salt", "")).code
    return done_reply(done, encode_json(reply))


def _app(call: Call) -> EntityId:
    if not is_id(call.ids[0]):
        raise NotFound(f"there is no app {call.ids[0][:24]}")
    return EntityId(call.ids[0])


ROUTES = (
    Route(
        "POST",
        "/apps/{appId}/recoveries",
        recover_app,
        "apps",
        "End all keys of an app and make a new one, by its recovery code",
        request="AppRecover",
        reply="AppCreated",
        status=201,
        statuses=frozenset({403, 404}),
        description="Takes no credentials. The key is shown here and nowhere else; the recovery "
        "code stays what it is.",
        access=Access.NOBODY,
        body_bytes_max=1024 * 4,
    ),
    Route(
        "POST",
        "/apps/{appId}/recovery-codes",
        replace_recovery_code,
        "apps",
        "Replace the recovery code of an app, by the code and a key",
        request="AppRecover",
        reply="RecoveryCodeReply",
        status=201,
        statuses=frozenset({403, 404}),
        description="The key must be the app's first, or a day old. The new code is shown here "
        "and nowhere else, and the one before opens nothing any more. An Idempotency-Key must have "
        f"at least {UNGUESSABLE_KEY_LENGTH_MIN} characters.",
        body_bytes_max=1024 * 4,
    ),
)
OPERATOR_ROUTES = (
    Route(
        "POST",
        "/operator/apps/{appId}/keys",
        reissue_app_key,
        "operator",
        "End all keys of an app and make a new one, with a new recovery code",
        reply="AppCreated",
        status=201,
        statuses=frozenset({404}),
        description="For the owner of an app who has neither key nor recovery code. Both are "
        "shown here and nowhere else.",
        access=Access.OPERATOR,
    ),
)
