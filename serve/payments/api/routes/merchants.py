"""Merchants: opening, changing, reading; their users and apps; cards saved at them (part A)."""

from msgspec import Struct
from msgspec.json import decode

from tollgate.actors.ledger.book.entities import App, entity_of_row
from tollgate.actors.ledger.law.commands import (
    AddApp,
    ChangeMerchant,
    InviteUser,
    OpenMerchant,
    ReserveMerchant,
    RevokeApp,
    RevokeUser,
)
from tollgate.actors.ledger.law.values import DIRECTORY, BookId, Currency, EntityId
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError, is_id
from tollgate.serve.payments.api.bodies.fields import BodyFields
from tollgate.serve.payments.api.bodies.readers import Body
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.orders import done_reply
from tollgate.serve.payments.api.rejections import BadRequest, NotFound
from tollgate.serve.payments.api.replies import Reply
from tollgate.serve.payments.api.router import Route
from tollgate.serve.payments.mail.mailer import Invitation

CHANGEABLE = ("name", "email", "descriptor")
CHANGES = frozenset({403, 404})


class _Named(Struct):
    name: str = ""


async def create(context: ApiContext, call: Call) -> Reply:
    """Its id, and so its book, is reserved first; the same request gets the same one."""
    body = await call.body()
    is_test = BodyFields(body).flag("test")
    await context.count_call(call, is_test=is_test)
    creator = await _app(context, call.caller.app)
    command = _opening(context, body, creator)
    reserved = await context.order(call, DIRECTORY, ReserveMerchant(), body)
    merchant = decode(reserved.body, type=dict[str, dict[str, str]])["merchant"]["id"]
    return done_reply(await context.order(call, BookId(merchant), command, body))


def _opening(context: ApiContext, body: Body, creator: App) -> OpenMerchant:
    reference, fields = context.reference, BodyFields(body)
    command = OpenMerchant(
        public_key=context.secrets.public_key(),
        name=fields.may("name", constraints.name, ""),
        currency=fields.need(
            "currency",
            lambda value, field: constraints.funding_currency(value, reference.currencies, field),
            Currency(""),
        ),
        is_test=fields.flag("test"),
        email=fields.need("email", constraints.email, ""),
        website=fields.need("website", constraints.website, ""),
        descriptor=fields.need("descriptor", constraints.descriptor, ""),
        company_country=fields.need(
            "company.country",
            lambda value, field: constraints.country(value, reference.countries, field),
            "",
        ),
        company_number=fields.may("company.number", constraints.company_number, ""),
        iban=fields.may(
            "bank.iban",
            lambda value, field: constraints.iban(value, reference.iban_lengths, field),
            "",
        ),
        pricing=reference.pricing,
        creator=creator.id,
        creator_name=creator.name,
        creator_created_ms=creator.created_ms,
    )
    fields.check()
    return command


async def find(context: ApiContext, call: Call) -> Reply:
    return await context.one(call, "merchant", call.ids[0])


async def change(context: ApiContext, call: Call) -> Reply:
    """A3."""
    merchant = await context.enter(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    for name in body.fields:
        if name not in CHANGEABLE:
            fields.refuse(name[:100], f"cannot be changed; these can: {', '.join(CHANGEABLE)}")
    command = ChangeMerchant(
        name=_new_name(body, fields),
        email=fields.may("email", constraints.email, None),
        descriptor=fields.may("descriptor", constraints.descriptor, None),
    )
    fields.check()
    return done_reply(await context.order(call, merchant.id, command, body))


def _new_name(body: Body, fields: BodyFields) -> str | None:
    """A name may be taken away by an empty one."""
    return "" if body.fields.get("name") == "" else fields.may("name", constraints.name, None)


async def invite(context: ApiContext, call: Call) -> Reply:
    merchant = await context.enter(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    email = fields.need("email", constraints.email, "")
    fields.check()
    done = await context.order(call, merchant.id, InviteUser(email), body)
    is_member = decode(done.body, type=dict[str, bool])["isMember"]
    if not is_member and not done.is_replay:
        by = await _name(context, "app", call.caller.app)
        to = await _name(context, "merchant", merchant.id)
        context.invitations.send(Invitation(email, to, by))
    return done_reply(done)


async def _name(context: ApiContext, kind: str, entity: str) -> str:
    """Empty when it has none."""
    return decode((await context.entities.row(kind, entity)).document, type=_Named).name


async def users(context: ApiContext, call: Call) -> Reply:
    return await context.listed(call, "user", call.ids[0])


async def revoke_user(context: ApiContext, call: Call) -> Reply:
    merchant = await context.enter(call, call.ids[0])
    user = _existing(call.ids[1], "user")
    return done_reply(await context.order(call, merchant.id, RevokeUser(user)))


async def add_app(context: ApiContext, call: Call) -> Reply:
    merchant = await context.enter(call, call.ids[0])
    body = await call.body()
    fields = BodyFields(body)
    wanted = fields.reference("appId")
    fields.check()
    try:
        app = await _app(context, wanted)
    except NotFound:
        raise BadRequest(FieldError("appId", f"there is no app {wanted}")) from None
    command = AddApp(app.id, app.name, app.created_ms)
    return done_reply(await context.order(call, merchant.id, command, body))


async def apps(context: ApiContext, call: Call) -> Reply:
    return await context.listed(call, "membership", call.ids[0])


async def revoke_app(context: ApiContext, call: Call) -> Reply:
    """An app that has revoked itself and asks again with the same key is told the same again."""
    merchant = await context.enter(call, call.ids[0], is_for_the_book=bool(call.idempotency_key))
    app = _existing(call.ids[1], "app")
    done = await context.order(call, merchant.id, RevokeApp(app))
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
        create,
        "merchants",
        "Create a merchant",
        request="MerchantCreate",
        reply="MerchantReply",
        status=201,
        description="The calling app becomes its first member.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}",
        find,
        "merchants",
        "Fetch a merchant",
        reply="MerchantReply",
        statuses=CHANGES,
    ),
    Route(
        "PUT",
        "/merchants/{merchantId}",
        change,
        "merchants",
        "Change a merchant's name, email or descriptor",
        request="MerchantChange",
        status=204,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/users",
        invite,
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
        users,
        "members",
        "Users of a merchant",
        reply="User[]",
        is_paged=True,
        statuses=CHANGES,
    ),
    Route(
        "DELETE",
        "/merchants/{merchantId}/users/{userId}",
        revoke_user,
        "members",
        "Revoke a user",
        status=204,
        statuses=CHANGES,
    ),
    Route(
        "POST",
        "/merchants/{merchantId}/apps",
        add_app,
        "members",
        "Give an app access",
        request="AppAdd",
        status=201,
        statuses=CHANGES,
        description="Adding one that has access already succeeds.",
    ),
    Route(
        "GET",
        "/merchants/{merchantId}/apps",
        apps,
        "members",
        "Apps of a merchant",
        reply="App[]",
        is_paged=True,
        statuses=CHANGES,
    ),
    Route(
        "DELETE",
        "/merchants/{merchantId}/apps/{appId}",
        revoke_app,
        "members",
        "Revoke an app",
        status=204,
        statuses=CHANGES,
        description="An app may revoke itself.",
    ),
)
