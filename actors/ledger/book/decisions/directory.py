"""Decisions of the directory: apps, their keys, and the ids of merchants to come."""

from tollgate.actors.ledger.book.case import BookDecision, Entities
from tollgate.actors.ledger.book.entities import App, AppKey
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law.commands import (
    CreateApp,
    DirectoryCommand,
    ReserveMerchant,
    RotateKey,
)
from tollgate.actors.ledger.law.events import AppCreated, KeyRotated, MerchantReserved
from tollgate.actors.ledger.law.ids import merchant_id, next_id
from tollgate.actors.ledger.law.outcomes import absent

KEYS_MAX = 2  # live ones of an app: during a rotation both work (part D)


def decide_in_directory(
    head: Head, entities: Entities, command: DirectoryCommand, at_ms: int
) -> BookDecision:
    own = next_id(head.last_id, at_ms)
    match command:
        case CreateApp():
            app, own = own, next_id(own, at_ms)
            return (AppCreated(own, app, command.name, command.key_digest, command.key_last4),)
        case RotateKey():
            if not isinstance(entities.get(command.app), App):
                return absent(f"there is no app {command.app}")
            return (KeyRotated(own, command.app, command.key_digest, command.key_last4),)
        case ReserveMerchant():
            return (MerchantReserved(own, merchant_id(head.books + 1, at_ms)),)


def rotated(keys: tuple[AppKey, ...], key: AppKey) -> tuple[AppKey, ...]:
    """The live keys once there is a new one: the oldest goes."""
    return (*keys, key)[-KEYS_MAX:]
