"""Webhooks in the books: the changes that can be asked for, their events, and what events are."""

from dataclasses import dataclass

from msgspec import UNSET, Struct, UnsetType

from tollgate.actors.ledger.law.values import EntityId


@dataclass(frozen=True, slots=True)
class AddWebhook:
    """`secret`: sealed by the caller; the book keeps it as it is. `types`: of the events that it
    gets; none: of all. `salt`: as of `commands.CreateApp`."""

    url: str
    secret: str
    types: tuple[str, ...] = ()
    is_enabled: bool = True
    salt: str = ""


@dataclass(frozen=True, slots=True)
class ChangeWebhook:
    """Only what is not None changes."""

    webhook: EntityId
    url: str | None = None
    types: tuple[str, ...] | None = None
    is_enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class ReplaceWebhookSecret:
    """`secret`: the new one and, for a while, the one before, sealed by the caller. `replaces`:
    what was sealed until now; if that has changed meanwhile, nothing is done. `salt`: as of
    `CreateApp`."""

    webhook: EntityId
    secret: str
    replaces: str
    salt: str = ""


@dataclass(frozen=True, slots=True)
class RemoveWebhook:
    webhook: EntityId


WebhookCommand = AddWebhook | ChangeWebhook | ReplaceWebhookSecret | RemoveWebhook


class Happening(Struct, frozen=True, tag_field="event"):
    """The fields of every event."""

    id: EntityId


class WebhookAdded(Happening, frozen=True, tag="webhook.added/1"):
    webhook: EntityId
    url: str
    secret: str
    types: tuple[str, ...] | UnsetType = UNSET
    is_enabled: bool | UnsetType = UNSET


class WebhookChanged(Happening, frozen=True, tag="webhook.changed/1"):
    """Only what changed is not None."""

    webhook: EntityId
    url: str | None
    types: tuple[str, ...] | None
    is_enabled: bool | None


class WebhookSecretReplaced(Happening, frozen=True, tag="webhook.secret_replaced/1"):
    webhook: EntityId
    secret: str


class WebhookRemoved(Happening, frozen=True, tag="webhook.removed/1"):
    webhook: EntityId


WebhookEvent = WebhookAdded | WebhookChanged | WebhookSecretReplaced | WebhookRemoved
