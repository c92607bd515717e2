"""Apps: creating one, who one is, its merchants, and its keys (parts A and D)."""

from dataclasses import replace
from hashlib import sha256

from msgspec import UNSET
from msgspec.json import decode

from tollgate.actors.ledger.book.documents import moment
from tollgate.actors.ledger.book.entities import App, entity_of_row
from tollgate.actors.ledger.law.commands import CreateApp, RotateKey
from tollgate.actors.ledger.law.outcomes import Done
from tollgate.actors.ledger.law.values import DIRECTORY, KeyMode
from tollgate.serve.payments.api.bodies.requests import AppCreate, KeyCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.paging import read_list_query
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, Forbidden
from tollgate.serve.payments.api.replies import Reply, as_list, done_reply, encode_json, under
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.secrets.key_issue import KeyIssue, KeyPurpose, issue_keys

UNGUESSABLE_KEY_LENGTH_MIN = 20
# Of callers without credentials: a name of the longest, each character percent-encoded.
APP_BODY_BYTES_MAX = 16 * 1024
KEY_YEARS_MAX = 10
KEY_AGE_MAX_MS = KEY_YEARS_MAX * 366 * 86_400_000
MERCHANT_FILTERS = frozenset({"test"})


async def create_app(context: ApiContext, call: Call) -> Reply:
    """Without credentials nothing but the idempotency key tells a repetition from a stranger who
    uses the same one, so it must be one that nobody guesses."""
    await context.limits.admit(per_call("apps", address=call.address))
    body = await call.body()
    wanted = context.read(body, AppCreate)
    given = unguessable_key(call, "without credentials it is all that tells you from others")
    scope = (call.address, given) if given else ()
    mode = _mode(wanted.test)
    issue = issue_keys(context.secrets, KeyPurpose.CREATION, scope, mode)
    stored = context.digests.stored(issue.made.key)
    recovery = context.digests.stored(issue.made.code).digest
    command = CreateApp(
        name=wanted.name,
        key_digest=stored.digest,
        key_last4=stored.last4,
        recovery_digest=recovery,
        salt=issue.salt,
        expires_ms=_expiry(context, wanted.expires),
        mode=mode,
    )
    idempotency_key = sha256("\n".join(scope).encode()).hexdigest() if scope else ""
    done = await context.execute(call, DIRECTORY, command, body, idempotency_key=idempotency_key)
    return with_key(done, issue, has_code=await _has_code(context, done, issue))


def unguessable_key(call: Call, why: str) -> str:
    """The idempotency key of a call whose reply is not for whoever guesses it; empty without one.
    Raises BadRequest."""
    given = call.idempotency_key
    if 0 < len(given) < UNGUESSABLE_KEY_LENGTH_MIN:
        least = f"must have at least {UNGUESSABLE_KEY_LENGTH_MIN} characters here, as a UUID has"
        raise BadRequest(FieldError("Idempotency-Key", f"{least}: {why}"))
    return given


async def _has_code(context: ApiContext, done: Done, issue: KeyIssue) -> bool:
    """True if the app has the code that the reply would show. Replies of before there were salts
    can be those of before there were codes."""
    app = decode(done.body, type=dict[str, dict[str, str]])["app"]
    salt = app.get("salt", "")
    if salt == issue.salt or salt:
        return True
    found = entity_of_row(await context.entities.row("app", app["id"]))
    assert isinstance(found, App), "an app's row holds an app"
    return found.recovery == context.digests.stored(issue.shown(salt).code).digest


async def rotate_app_key(context: ApiContext, call: Call) -> Reply:
    """A key for test or live merchants alone makes others of its kind; what it made is another
    request than the same one of a key for both."""
    app = await own_app(context, call)
    body = await call.body()
    wanted = context.read(body, KeyCreate)
    mode, own_mode = _mode(wanted.test), call.caller.mode
    if own_mode is not None:
        if mode not in (None, own_mode):
            raise Forbidden(f"a {own_mode.value} key makes {own_mode.value} keys only")
        mode, body = own_mode, replace(body, fields={**body.fields, "test": own_mode.value})
    given = call.idempotency_key
    scope = (app.id, given) if given else ()
    issue = issue_keys(context.secrets, KeyPurpose.ROTATION, scope, mode)
    stored = context.digests.stored(issue.made.key)
    expires_ms = _expiry(context, wanted.expires)
    command = RotateKey(app.id, stored.digest, stored.last4, issue.salt, expires_ms, mode)
    done = await context.execute(call, DIRECTORY, command, body)
    context.authentication.forget()
    return with_key(done, issue)


def _mode(is_test: bool | None) -> KeyMode | None:
    if is_test is None:
        return None
    return KeyMode.TEST if is_test else KeyMode.LIVE


def _expiry(context: ApiContext, expires_ms: int | None) -> int | None:
    """Not beyond what a key can be meant for; that it is in the future, the books see. Raises
    BadRequest."""
    if expires_ms is not None and expires_ms > context.now_ms + KEY_AGE_MAX_MS:
        raise BadRequest(FieldError("expires", f"must be within {KEY_YEARS_MAX} years"))
    return expires_ms


async def list_app_keys(context: ApiContext, call: Call) -> Reply:
    app = await own_app(context, call)
    used = await context.key_uses.last_used([key.digest for key in app.keys])
    documents = []
    for key in app.keys:
        document: dict[str, object] = {"last4": key.last4, "created": moment(key.created_ms)}
        if key.expires_ms is not UNSET:
            document["expires"] = moment(key.expires_ms)
        if key.mode is not UNSET:
            document["test"] = key.mode is KeyMode.TEST
        if (at_ms := used.get(key.digest)) is not None:
            document["lastUsed"] = moment(at_ms)
        documents.append(encode_json(document).decode())
    return Reply(200, as_list(documents))


async def find_caller(context: ApiContext, call: Call) -> Reply:
    await context.count_call(call)
    row = await context.entities.row("app", call.caller.app)
    return Reply(200, under("identity", row.document))


async def list_app_merchants(context: ApiContext, call: Call) -> Reply:
    app = await own_app(context, call)
    query = read_list_query(call.query_fields)
    wanted, mode = query.wanted, call.caller.mode
    if mode is not None:
        is_test = mode is KeyMode.TEST
        if wanted.is_test is not None and wanted.is_test is not is_test:
            return Reply(200, as_list(()))
        wanted = replace(wanted, is_test=is_test)
    return Reply(200, as_list(await context.store.merchants_of(app.id, query.page, wanted)))


async def own_app(context: ApiContext, call: Call) -> App:
    """The app of the path, which must be the caller's own."""
    await context.count_call(call)
    app = entity_of_row(await context.entities.row("app", call.ids[0]))
    assert isinstance(app, App), "an app's row holds an app"
    if app.id != call.caller.app:
        raise Forbidden("this is another app's")
    return app


def with_key(done: Done, issue: KeyIssue, *, has_code: bool = False) -> Reply:
    """The books never see a key or a recovery code, so they are put into the reply here, for the
    only time."""
    body = decode(done.body, type=dict[str, dict[str, str]])
    shown = issue.shown(body["app"].pop("salt", ""))
    body["app"]["key"] = shown.key
    if has_code:
        body["app"]["recoveryCode"] = shown.code
    return done_reply(done, encode_json(body))


ROUTES = (
    Route(
        "POST",
        "/apps",
        create_app,
        "apps",
        "Create an app",
        request="AppCreate",
        reply="AppCreated",
        status=201,
        description="Takes no credentials. The key and the recovery code, which makes a new key "
        "when this one is lost or stolen, are shown here and nowhere else. An "
        f"Idempotency-Key must have at least {UNGUESSABLE_KEY_LENGTH_MIN} characters.",
        access=Access.NOBODY,
        body_bytes_max=APP_BODY_BYTES_MAX,
    ),
    Route("GET", "/me", find_caller, "apps", "The app that calls", reply="IdentityReply"),
    Route(
        "GET",
        "/identities/{appId}/merchants",
        list_app_merchants,
        "apps",
        "Merchants of an app",
        reply="Merchant[]",
        is_paged=True,
        filters=MERCHANT_FILTERS,
        statuses=frozenset({403, 404}),
    ),
    Route(
        "GET",
        "/apps/{appId}/keys",
        list_app_keys,
        "apps",
        "Live keys of an app",
        reply="Key[]",
        statuses=frozenset({403, 404}),
        description="The oldest first. Keys themselves are never shown again.",
    ),
    Route(
        "POST",
        "/apps/{appId}/keys",
        rotate_app_key,
        "apps",
        "Add a key, and end the older one of two",
        request="KeyCreate",
        reply="AppCreated",
        status=201,
        statuses=frozenset({403, 404}),
        description="An app has one or two live keys. The new one is shown here and nowhere "
        "else; the key before it goes on working until the next is added, and replies to it say "
        "in `Tollgate-Newer-Key` that there is one. A key may expire, and be for `test` merchants "
        "alone (`yes`) or for live ones (`no`): of each kind there are two at most.",
    ),
)
