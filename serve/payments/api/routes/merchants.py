"""Merchants: opening, changing, reading; their users and apps; cards saved at them (part A)."""

from dataclasses import replace

from msgspec import Struct
from msgspec.json import decode

from tollgate.actors.ledger.book.entities import App, entity_of_row
from tollgate.actors.ledger.law import commands
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.roles import Act
from tollgate.actors.ledger.law.values import DIRECTORY, BookId, EntityId, Role
from tollgate.serve.payments.api.bodies.constraints import flag
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.bodies.requests import (
    AppAdd,
    MerchantChange,
    MerchantCreate,
    RoleChange,
    UserInvite,
)
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import (
    BY_MERCHANT,
    ApiContext,
    entity_of,
    list_of,
    require_mode,
)
from tollgate.serve.payments.api.limits.calls import per_call
from tollgate.serve.payments.api.rejections import BadRequest, FieldError, NotFound
from tollgate.serve.payments.api.replies import Reply, done_reply
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.mail.mailer import Invitation
from tollgate.serve.payments.reference.tables import ReferenceData

CHANGES = frozenset({403, 404})


class _Named(Struct):
    name: str = ""


async def create_merchant(context: ApiContext, call: Call) -> Reply:
    """Its id, and so its book, is reserved first; the same request gets the same one."""
    body = await call.body()
    is_test = flag(body.fields.get("test"), "test", is_form=body.is_form) is True
    await context.count_call(call, is_test=is_test)
    require_mode(call, is_test=is_test)
    if (told := await _first_reply(context, call, body)) is not None:
        return told
    creator = await _app(context, call.caller.app)
    wanted = context.read(body, MerchantCreate)
    await context.limits.admit(per_call("merchants", address=call.address))
    if not is_test and not context.trade.approves_live:
        await context.limits.admit(
            per_call("live_merchants", app=creator.id),
            per_call("live_merchants", address=call.address),
        )
        # (one that is asked for again has its place already)
        if await context.first_reply(call, DIRECTORY, body) is None:
            await context.waiting.admit(creator.id, call.address)
    command = replace(
        opening(wanted, context.reference, creator, context.secrets.public_key()),
        needs_approval=not context.trade.approves_live,
    )
    reserved = await context.execute(
        call, DIRECTORY, commands.ReserveMerchant(), body, is_test=is_test
    )
    book = BookId(_merchant_in(reserved.body))
    return done_reply(await context.execute(call, book, command, body, is_test=is_test))


async def _first_reply(context: ApiContext, call: Call, body: Body) -> Reply | None:
    """The reply to the same call when it was made before, whatever the currencies are by now."""
    reserved = await context.first_reply(call, DIRECTORY, body)
    if reserved is None:
        return None
    return await context.first_reply(call, BookId(_merchant_in(reserved.body)), body)


def _merchant_in(reserved: bytes) -> str:
    return decode(reserved, type=dict[str, dict[str, str]])["merchant"]["id"]


def opening(
    wanted: MerchantCreate, reference: ReferenceData, creator: App, key: str
) -> commands.OpenMerchant:
    """The command that opens a merchant's book. `key`: its public key."""
    return commands.OpenMerchant(
        public_key=key,
        name=wanted.name,
        currency=wanted.currency,
        is_test=wanted.test,
        email=wanted.email,
        website=wanted.website,
        descriptor=wanted.descriptor,
        company_country=wanted.company.country,
        company_number=wanted.company.number,
        iban=wanted.bank.iban,
        pricing=reference.pricing,
        creator=creator.id,
        creator_name=creator.name,
        creator_created_ms=creator.created_ms,
        exponent=reference.currencies.exponent(wanted.currency),
    )


async def change_merchant(context: ApiContext, call: Call) -> Reply:
    """A3."""
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    command = replace(
        merchant_change(context.read(body, MerchantChange)),
        needs_approval=not context.trade.approves_live,
    )
    return done_reply(await context.execute(call, merchant.id, command, body))


def merchant_change(wanted: MerchantChange) -> commands.ChangeMerchant:
    return commands.ChangeMerchant(wanted.name, wanted.email, wanted.descriptor)


async def invite_user(context: ApiContext, call: Call) -> Reply:
    """Anybody can open a live merchant: strangers hear of it when the operator has approved it."""
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, UserInvite)
    email = wanted.email
    await context.limits.admit(
        per_call("invitations", merchant=merchant.id),
        per_call("invitations", address=call.address),
    )
    done = await context.execute(call, merchant.id, commands.InviteUser(email, wanted.role), body)
    is_member = decode(done.body, type=dict[str, bool])["isMember"]
    if not is_member and not done.is_replay and await context.is_approved(merchant):
        by = await _name(context, "app", call.caller.app)
        to = await _name(context, "merchant", merchant.id)
        role = wanted.role or Role.OWNER
        context.invitations.send(Invitation(email, to, by, merchant.is_test, role))
    return done_reply(done)


async def _name(context: ApiContext, kind: str, entity: str) -> str:
    """Empty when it has none."""
    return decode((await context.entities.row(kind, entity)).document, type=_Named).name


async def delete_user(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    user = _existing(call.ids[1], "user")
    return done_reply(await context.execute(call, merchant.id, commands.RevokeUser(user)))


async def add_merchant_app(context: ApiContext, call: Call) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    body = await call.body()
    wanted = context.read(body, AppAdd)
    try:
        app = await _app(context, wanted.appId)
    except NotFound:
        raise BadRequest(FieldError("appId", f"there is no app {wanted.appId}")) from None
    command = commands.AddApp(app.id, app.name, app.created_ms, wanted.role)
    return done_reply(await context.execute(call, merchant.id, command, body))


async def change_app_role(context: ApiContext, call: Call) -> Reply:
    return await _change_role(context, call, is_app=True)


async def change_user_role(context: ApiContext, call: Call) -> Reply:
    return await _change_role(context, call, is_app=False)


async def _change_role(context: ApiContext, call: Call, *, is_app: bool) -> Reply:
    merchant = await context.access_merchant(call, call.ids[0])
    member = _existing(call.ids[1], "app" if is_app else "user")
    body = await call.body()
    role = context.read(body, RoleChange).role
    command = commands.ChangeRole(member, role, is_app=is_app)
    done = await context.execute(call, merchant.id, command, body)
    context.authentication.forget()
    return done_reply(done)


async def delete_merchant_app(context: ApiContext, call: Call) -> Reply:
    """An app that has revoked itself and asks again with the same key is told the same again."""
    merchant = await context.access_merchant(
        call,
        call.ids[0],
        is_for_the_book=bool(call.idempotency_key),
        act=Act.READ if call.ids[1] == call.caller.app else None,
    )
    app = _existing(call.ids[1], "app")
    done = await context.execute(call, merchant.id, commands.RevokeApp(app))
    context.authentication.forget()
    return done_reply(done)


async def _app(context: ApiContext, app: str) -> App:
    found = entity_of_row(await context.entities.row("app", app))
    assert isinstance(found, App), "an app's row holds an app"
    return found


def _existing(text: str, kind: str) -> EntityId:
    if not is_id(text):
        raise NotFound(f"there is no {kind} {text[:24]}")
    return EntityId(text)


ROUTES = (
    Route(
        "POST",
        "/merchants",
        create_merchant,
        "merchants",
        "Create a merchant",
        request="MerchantCreate",
        reply="MerchantReply",
        status=201,
        description="The calling app becomes its first member. A live merchant can be read and "
        "configured at once, and may trade when the operator has approved it: `claim` tells.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}",
        entity_of("merchant"),
        "merchants",
        "Fetch a merchant",
        reply="MerchantReply",
        statuses=CHANGES,
    ),
    Route(
        "PUT",
        "/merchants/{merchantId}",
        change_merchant,
        "merchants",
        "Change a merchant's name, email or descriptor",
        request="MerchantChange",
        status=204,
        statuses=CHANGES,
        description="Of a live merchant that the operator has approved, they alone change these.",
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/users",
        invite_user,
        "members",
        "Invite a user by e-mail",
        request="UserInvite",
        reply="UserInvited",
        status=201,
        statuses=CHANGES,
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/users",
        list_of("user"),
        "members",
        "Users of a merchant",
        reply="User[]",
        is_paged=True,
        filters=BY_MERCHANT,
        statuses=CHANGES,
    ),
    Route(
        "PUT",
        "/merchants/{merchantId}/users/{userId}",
        change_user_role,
        "members",
        "Change a user's role",
        request="RoleChange",
        status=204,
        statuses=CHANGES,
    ),
    Route(
        "DELETE",
        "/merchants/{merchantId}/users/{userId}",
        delete_user,
        "members",
        "Revoke a user",
        status=204,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/apps",
        add_merchant_app,
        "members",
        "Give an app access",
        request="AppAdd",
        status=201,
        statuses=CHANGES,
        description="Adding one that has access already succeeds. `role`: `owner`, which is the "
        "default, `refunds` or `read-only`.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/apps",
        list_of("membership"),
        "members",
        "Apps of a merchant",
        reply="MemberApp[]",
        is_paged=True,
        filters=BY_MERCHANT,
        statuses=CHANGES,
    ),
    Route(
        "PUT",
        "/merchants/{merchantId}/apps/{appId}",
        change_app_role,
        "members",
        "Change an app's role",
        request="RoleChange",
        status=204,
        statuses=CHANGES,
        description="The last owner among the apps stays one.",
    ),
    Route(
        "DELETE",
        "/merchants/{merchantId}/apps/{appId}",
        delete_merchant_app,
        "members",
        "Revoke an app",
        status=204,
        statuses=CHANGES,
        description="An app may revoke itself.",
    ),
)
