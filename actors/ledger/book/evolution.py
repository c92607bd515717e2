"""The state of a book after an event. This cannot refuse: what has happened, has happened.

`decide` looked at the state and made the event; `evolve` looks at the event and makes the state,
now and at every replay, with the same result. Nothing is computed here that a later version of
the program could compute otherwise: amounts, conversions and fees are the event's.
"""

from typing import assert_never

from msgspec import UNSET
from msgspec.structs import replace

from tollgate.actors.ledger.book.case import Entities
from tollgate.actors.ledger.book.decisions.directory import rotated
from tollgate.actors.ledger.book.entities import App, AppKey, SavedCard, SettledDay, Webhook
from tollgate.actors.ledger.book.head import Head, Member, Merchant, User, kept_role
from tollgate.actors.ledger.book.transitions import (
    Changed,
    after_authorisation,
    after_dispute,
    after_intent,
    after_move,
    after_notice,
)
from tollgate.actors.ledger.law import events, webhook_law
from tollgate.actors.ledger.law.accounts import posted
from tollgate.actors.ledger.law.rows import Entry


def evolve(
    head: Head, entities: Entities, event: events.Event, entry: Entry
) -> tuple[Head, Changed]:
    """The head after the entry of an event, and the entities that it changed."""
    after = replace(
        head,
        seq=entry.seq,
        hash=entry.hash,
        at_ms=entry.at_ms,
        last_id=event.id,
        merchant=merchant_after(head.merchant, event, entry.at_ms),
        accounts=posted(head.accounts, entry.postings),
        books=head.books + isinstance(event, events.MerchantReserved),
    )
    return after, _entities_after(head, entities, event, entry.at_ms)


def merchant_after(merchant: Merchant | None, event: events.Event, at_ms: int) -> Merchant | None:
    """The merchant of a book after the event of an entry; None in the directory."""
    if isinstance(event, events.MerchantOpened):
        return _opened(event, at_ms)
    if merchant is None:
        return None
    match event:
        case events.MerchantApproved():
            return replace(merchant, is_pending=UNSET, is_rejected=UNSET)
        case events.MerchantRejected():
            return replace(merchant, is_rejected=True)
        case events.MerchantPriced():
            return replace(merchant, pricing=event.pricing)
        case events.MerchantChanged():
            return replace(
                merchant,
                name=_or(event.name, merchant.name),
                email=_or(event.email, merchant.email),
                descriptor=_or(event.descriptor, merchant.descriptor),
            )
        case events.AppAdded():
            app = Member(event.app, event.name, event.created_ms, event.role)
            return replace(merchant, apps=(*merchant.apps, app))
        case events.AppRevoked():
            apps = tuple(member for member in merchant.apps if member.app != event.app)
            return replace(merchant, apps=apps)
        case events.AppRoleChanged():
            role = kept_role(event.role)
            apps = tuple(replace(m, role=role) if m.app == event.app else m for m in merchant.apps)
            return replace(merchant, apps=apps)
        case events.UserRoleChanged():
            role = kept_role(event.role)
            users = tuple(
                replace(u, role=role) if u.id == event.user else u for u in merchant.users
            )
            return replace(merchant, users=users)
        case events.UserInvited():
            user = User(event.user, event.email, at_ms, event.role)
            return replace(merchant, users=(*merchant.users, user))
        case events.UserRevoked():
            users = tuple(user for user in merchant.users if user.id != event.user)
            return replace(merchant, users=users)
        case webhook_law.WebhookAdded():
            return replace(merchant, webhooks=(*merchant.webhooks, event.webhook))
        case webhook_law.WebhookRemoved():
            webhooks = tuple(hook for hook in merchant.webhooks if hook != event.webhook)
            return replace(merchant, webhooks=webhooks)
        case _:
            return merchant


def _or(changed: str | None, before: str) -> str:
    return before if changed is None else changed


def _opened(event: events.MerchantOpened, at_ms: int) -> Merchant:
    return Merchant(
        public_key=event.public_key,
        name=event.name,
        currency=event.currency,
        is_test=event.is_test,
        email=event.email,
        website=event.website,
        descriptor=event.descriptor,
        company_country=event.company_country,
        company_number=event.company_number,
        iban=event.iban,
        pricing=event.pricing,
        created_ms=at_ms,
        apps=(Member(event.creator, event.creator_name, event.creator_created_ms),),
        exponent=event.exponent,
        is_pending=event.is_pending,
    )


def _changed_webhook(before: Webhook, event: webhook_law.WebhookChanged) -> Webhook:
    return replace(
        before,
        url=_or(event.url, before.url),
        types=before.types if event.types is None else event.types,
        is_enabled=before.is_enabled if event.is_enabled is None else event.is_enabled,
    )


def _entities_after(head: Head, entities: Entities, event: events.Event, at_ms: int) -> Changed:
    match event:
        case events.Intended() | events.NetworkRefused():
            return after_intent(head, entities, event, at_ms)
        case events.Captured() | events.Refunded() | events.Voided():
            return after_move(entities, event, at_ms)
        case events.TransactionCreated():
            return after_authorisation(head, entities, event, at_ms)
        case events.DisputeOpened():
            changed = after_dispute(head, entities, event, at_ms)
            return changed | after_notice(head, event.notice, event.dispute)
        case events.DisputeWon() | events.DisputeLost():
            return after_dispute(head, entities, event, at_ms)
        case events.FraudReported():
            return after_notice(head, event.notice, event.fraud)
        case events.SettlementReported():
            day = SettledDay(event.settled_day, head.book, head.is_test, event.settled)
            return {day.id: day, **after_notice(head, event.notice, event.settlement)}
        case events.CardSaved():
            card = SavedCard(
                id=event.card,
                book=head.book,
                is_test=head.is_test,
                created_ms=at_ms,
                transaction=event.transaction,
                summary=event.summary,
                notes=event.notes,
            )
            return {card.id: card}
        case webhook_law.WebhookAdded() | webhook_law.WebhookChanged():
            return _webhooks_after(head, entities, event, at_ms)
        case webhook_law.WebhookSecretReplaced() | webhook_law.WebhookRemoved():
            return _webhooks_after(head, entities, event, at_ms)
        case events.AppCreated():
            keys = (_new_key(event, at_ms),)
            app = App(event.app, head.book, event.name, at_ms, keys, event.recovery_digest)
            return {app.id: app}
        case events.KeyRotated() | events.AppRecovered():
            return _with_key(entities, event, at_ms)
        case events.RecoveryCodeReplaced():
            owner = entities[event.app]
            assert isinstance(owner, App), "a recovery code is an app's"
            return {owner.id: replace(owner, recovery=event.recovery_digest)}
        case (
            events.MerchantReserved()
            | events.MerchantOpened()
            | events.MerchantApproved()
            | events.MerchantRejected()
            | events.MerchantPriced()
            | events.MerchantChanged()
            | events.AppAdded()
            | events.AppRevoked()
            | events.AppRoleChanged()
            | events.UserInvited()
            | events.UserRoleChanged()
            | events.UserRevoked()
            | events.DuplicateSuspected()
            | events.PaidOut()
        ):
            return {}
        case _:
            assert_never(event)


def _webhooks_after(
    head: Head,
    entities: Entities,
    event: webhook_law.WebhookAdded
    | webhook_law.WebhookChanged
    | webhook_law.WebhookSecretReplaced
    | webhook_law.WebhookRemoved,
    at_ms: int,
) -> Changed:
    match event:
        case webhook_law.WebhookAdded():
            webhook = Webhook(
                event.webhook,
                head.book,
                head.is_test,
                at_ms,
                event.url,
                event.secret,
                () if event.types is UNSET else event.types,
                event.is_enabled is not False,
            )
            return {webhook.id: webhook}
        case webhook_law.WebhookChanged():
            hook = entities[event.webhook]
            assert isinstance(hook, Webhook), "a webhook is changed that is there"
            return {hook.id: _changed_webhook(hook, event)}
        case webhook_law.WebhookSecretReplaced():
            before = entities[event.webhook]
            assert isinstance(before, Webhook), "a secret is replaced at a webhook that is there"
            return {before.id: replace(before, secret=event.secret)}
        case webhook_law.WebhookRemoved():
            return {event.webhook: None}


def _with_key(
    entities: Entities, event: events.KeyRotated | events.AppRecovered, at_ms: int
) -> Changed:
    app = entities[event.app]
    assert isinstance(app, App), "a key is an app's"
    if isinstance(event, events.KeyRotated):
        return {app.id: replace(app, keys=rotated(app.keys, _new_key(event, at_ms)))}
    key = AppKey(event.key_digest, event.key_last4, at_ms)
    recovery = app.recovery if event.recovery_digest is UNSET else event.recovery_digest
    return {app.id: replace(app, keys=(key,), recovery=recovery)}


def _new_key(event: events.AppCreated | events.KeyRotated, at_ms: int) -> AppKey:
    return AppKey(event.key_digest, event.key_last4, at_ms, event.expires_ms, event.mode)
