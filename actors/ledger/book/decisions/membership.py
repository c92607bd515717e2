"""Decisions on a merchant: opening it, changing it, and who has access to it.

Adding what is there already, and changing nothing, succeeds without an event.
"""

from msgspec import UNSET

from tollgate.actors.ledger.book.case import BookDecision, Case
from tollgate.actors.ledger.book.entities import Webhook
from tollgate.actors.ledger.book.head import (
    APPS_MAX,
    USERS_MAX,
    WEBHOOKS_MAX,
    Head,
    Member,
    User,
    given_role,
    kept_role,
)
from tollgate.actors.ledger.law import commands, events, webhook_law
from tollgate.actors.ledger.law.ids import is_id, is_merchant_id, next_ids
from tollgate.actors.ledger.law.outcomes import Refusal, absent, constraint
from tollgate.actors.ledger.law.values import AMOUNT_MAX, EntityId, Price, Pricing, Role

RATE_PPM_MAX = 1_000_000
LAST_OWNER = "it is the last owner among the merchant's apps: make another app one first"
APPROVED = "was approved with the merchant, and only the operator changes it now: ask them"


def decide_merchant_opening(
    head: Head, command: commands.OpenMerchant, order: commands.Order, at_ms: int
) -> BookDecision:
    """The first entry of a book; its creator is the first with access."""
    if not is_merchant_id(head.book):
        return constraint(f"{head.book} is no merchant's id: reserve one")
    if head.merchant is not None:
        return constraint(f"the merchant {head.book} is open already")
    if not is_id(command.creator):
        return constraint("a merchant is opened for an app: name its id", "creator")
    (own,) = next_ids(head.last_id, at_ms, order.operation, 1)
    return (
        events.MerchantOpened(
            id=own,
            public_key=command.public_key,
            name=command.name,
            currency=command.currency,
            is_test=command.is_test,
            email=command.email,
            website=command.website,
            descriptor=command.descriptor,
            company_country=command.company_country,
            company_number=command.company_number,
            iban=command.iban,
            pricing=command.pricing,
            creator=command.creator,
            creator_name=command.creator_name,
            creator_created_ms=command.creator_created_ms,
            exponent=command.exponent,
            is_pending=True if command.needs_approval and not command.is_test else UNSET,
        ),
    )


def decide_merchant_change(case: Case, command: commands.ChangeMerchant) -> BookDecision:
    """What customers see of a live merchant, and where letters go, stays what was approved."""
    merchant = case.merchant
    name = _changed(merchant.name, command.name)
    email = _changed(merchant.email, command.email)
    descriptor = _changed(merchant.descriptor, command.descriptor)
    if name is email is descriptor is None:
        return ()
    if command.needs_approval and merchant.may_trade and not merchant.is_test:
        wanted = {"name": name, "email": email, "descriptor": descriptor}
        return constraint(APPROVED, next(each for each in wanted if wanted[each] is not None))
    (own,) = case.ids(1)
    return (events.MerchantChanged(own, name, email, descriptor),)


def decide_pricing(case: Case, command: commands.PriceMerchant) -> BookDecision:
    """In the funding currency, so that a fee needs no exchange rate."""
    merchant = case.merchant
    if not 0 <= command.rate_ppm <= RATE_PPM_MAX:
        return constraint(f"must be from 0 to {RATE_PPM_MAX}", "ratePpm")
    for field, amount in (("flat", command.flat), ("dispute", command.dispute)):
        if not 0 <= amount <= AMOUNT_MAX:
            return constraint(f"must be from 0 to {AMOUNT_MAX}", field)
    flat, dispute = (
        Price(merchant.currency, amount, merchant.exponent)
        for amount in (command.flat, command.dispute)
    )
    pricing = Pricing(command.rate_ppm, flat, dispute)
    if pricing == merchant.pricing:
        return ()
    (own,) = case.ids(1)
    return (events.MerchantPriced(own, pricing),)


def _changed(before: str, wanted: str | None) -> str | None:
    return None if wanted == before else wanted


def decide_app_addition(case: Case, command: commands.AddApp) -> BookDecision:
    for member in case.merchant.apps:
        if member.app == command.app:
            return _refuse_other_role(member, command.role) or ()
    if not is_id(command.app):
        return constraint("an app's id has 24 lowercase hexadecimal digits", "appId")
    if len(case.merchant.apps) >= APPS_MAX:
        return constraint(f"a merchant has at most {APPS_MAX} apps: revoke one first", "appId")
    (own,) = case.ids(1)
    role = kept_role(command.role)
    return (events.AppAdded(own, command.app, command.name, command.created_ms, role),)


def decide_app_revocation(case: Case, command: commands.RevokeApp) -> BookDecision:
    """An app may revoke itself, and the last one too."""
    if not case.merchant.has_app(command.app):
        return absent(f"the app {command.app} has no access to this merchant")
    if len(case.merchant.apps) > 1 and not case.merchant.has_owner_beside(command.app):
        return constraint(LAST_OWNER)
    (own,) = case.ids(1)
    return (events.AppRevoked(own, command.app),)


def decide_invitation(case: Case, command: commands.InviteUser) -> BookDecision:
    email = command.email.casefold()
    for known in case.merchant.users:
        if known.email.casefold() == email:
            return _refuse_other_role(known, command.role) or ()
    if len(case.merchant.users) >= USERS_MAX:
        return constraint(f"a merchant has at most {USERS_MAX} users: revoke one first", "email")
    user, own = case.ids(2)
    return (events.UserInvited(own, user, command.email, kept_role(command.role)),)


def _refuse_other_role(member: Member | User, wanted: Role | None) -> Refusal | None:
    role = given_role(member)
    if wanted is None or wanted is role:
        return None
    return constraint(f"it has access already, with the role {role.value}: PUT changes it", "role")


def decide_role_change(case: Case, command: commands.ChangeRole) -> BookDecision:
    """A merchant's apps have an owner among them."""
    merchant, wanted = case.merchant, command.member
    if command.is_app:
        role = merchant.role_of(wanted)
    else:
        roles = (given_role(user) for user in merchant.users if user.id == wanted)
        role = next(roles, None)
    if role is None:
        what = "app" if command.is_app else "user"
        return absent(f"this merchant has no {what} {wanted}")
    if role is command.role:
        return ()
    if command.is_app and role is Role.OWNER and not merchant.has_owner_beside(wanted):
        return constraint(LAST_OWNER, "role")
    (own,) = case.ids(1)
    return (_role_change(own, command),)


def _role_change(own: EntityId, command: commands.ChangeRole) -> events.Event:
    changed = events.AppRoleChanged if command.is_app else events.UserRoleChanged
    return changed(own, command.member, command.role)


def decide_user_revocation(case: Case, command: commands.RevokeUser) -> BookDecision:
    if all(user.id != command.user for user in case.merchant.users):
        return absent(f"this merchant has no user {command.user}")
    (own,) = case.ids(1)
    return (events.UserRevoked(own, command.user),)


def decide_webhook_addition(case: Case, command: webhook_law.AddWebhook) -> BookDecision:
    if len(case.merchant.webhooks) >= WEBHOOKS_MAX:
        return constraint(f"a merchant has at most {WEBHOOKS_MAX} webhooks: remove one first")
    webhook, own = case.ids(2)
    types = command.types or UNSET
    is_enabled = UNSET if command.is_enabled else False
    return (webhook_law.WebhookAdded(own, webhook, command.url, command.secret, types, is_enabled),)


def decide_webhook_change(case: Case, command: webhook_law.ChangeWebhook) -> BookDecision:
    webhook = case.find(Webhook, command.webhook)
    if webhook is None:
        return absent(f"this merchant has no webhook {command.webhook}")
    url = _changed(webhook.url, command.url)
    types = None if command.types == webhook.types else command.types
    is_enabled = None if command.is_enabled == webhook.is_enabled else command.is_enabled
    if url is None and types is None and is_enabled is None:
        return ()
    (own,) = case.ids(1)
    return (webhook_law.WebhookChanged(own, webhook.id, url, types, is_enabled),)


def decide_webhook_secret(case: Case, command: webhook_law.ReplaceWebhookSecret) -> BookDecision:
    webhook = case.find(Webhook, command.webhook)
    if webhook is None:
        return absent(f"this merchant has no webhook {command.webhook}")
    if webhook.secret != command.replaces:
        return constraint("another secret has taken its place meanwhile: read the list again")
    (own,) = case.ids(1)
    return (webhook_law.WebhookSecretReplaced(own, webhook.id, command.secret),)


def decide_webhook_removal(case: Case, command: webhook_law.RemoveWebhook) -> BookDecision:
    if command.webhook not in case.merchant.webhooks:
        return absent(f"this merchant has no webhook {command.webhook}")
    (own,) = case.ids(1)
    return (webhook_law.WebhookRemoved(own, command.webhook),)
