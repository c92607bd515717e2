"""Decisions of the directory: apps, their keys, and the ids of merchants to come."""

from msgspec import UNSET

from tollgate.actors.ledger.book.case import BookDecision, Entities
from tollgate.actors.ledger.book.entities import App, AppKey
from tollgate.actors.ledger.book.head import Head
from tollgate.actors.ledger.law.commands import (
    CreateApp,
    DirectoryCommand,
    Order,
    RecoverApp,
    ReplaceRecoveryCode,
    ReserveMerchant,
    RotateKey,
)
from tollgate.actors.ledger.law.events import (
    AppCreated,
    AppRecovered,
    KeyRotated,
    MerchantReserved,
    RecoveryCodeReplaced,
)
from tollgate.actors.ledger.law.ids import next_ids
from tollgate.actors.ledger.law.outcomes import absent, constraint, forbidden
from tollgate.actors.ledger.law.values import OPERATOR, BookId, EntityId

KEYS_MAX = 2  # live ones of an app and mode: during a rotation both work (part D)
# A code makes a key. Were that enough to replace the code, whoever finds one could lock the owner
# out; so the owner has this long to notice that their own key has ended.
REPLACING_KEY_AGE_MIN_MS = 24 * 3_600_000


def decide_in_directory(
    head: Head,
    entities: Entities,
    command: DirectoryCommand,
    order: Order,
    at_ms: int,
    now_ms: int,
) -> BookDecision:
    """`at_ms`: of the entry; `now_ms`: the time that it is, by which a key is a day old (F13)."""
    made, own = next_ids(head.last_id, at_ms, order.operation, 2)
    if isinstance(command, CreateApp | RotateKey) and is_past(command.expires_ms, now_ms):
        return constraint("a key expires in the future", "expires")
    match command:
        case CreateApp():
            recovery = command.recovery_digest or UNSET
            return (
                AppCreated(
                    id=own,
                    app=made,
                    name=command.name,
                    key_digest=command.key_digest,
                    key_last4=command.key_last4,
                    recovery_digest=recovery,
                    expires_ms=command.expires_ms or UNSET,
                    mode=command.mode or UNSET,
                ),
            )
        case RotateKey():
            if not isinstance(entities.get(command.app), App):
                return absent(f"there is no app {command.app}")
            return (
                KeyRotated(
                    id=own,
                    app=command.app,
                    key_digest=command.key_digest,
                    key_last4=command.key_last4,
                    expires_ms=command.expires_ms or UNSET,
                    mode=command.mode or UNSET,
                ),
            )
        case RecoverApp():
            return _decide_recovery(
                entities, command, own, by_operator=order.origin.app == OPERATOR
            )
        case ReplaceRecoveryCode():
            return _decide_code_replacement(entities, command, own, now_ms)
        case ReserveMerchant():
            return (MerchantReserved(own, BookId(made)),)


def _decide_recovery(
    entities: Entities, command: RecoverApp, own: EntityId, *, by_operator: bool
) -> BookDecision:
    """Refuses a code, and does not tell whether the app or the code is wrong."""
    app = entities.get(command.app)
    if by_operator:
        if not isinstance(app, App):
            return absent(f"there is no app {command.app}")
    elif not isinstance(app, App) or app.recovery is UNSET or app.recovery != command.presented:
        return forbidden("this is not the recovery code of an app with this id")
    recovery = command.recovery_digest or UNSET
    return (AppRecovered(own, command.app, command.key_digest, command.key_last4, recovery),)


def _decide_code_replacement(
    entities: Entities, command: ReplaceRecoveryCode, own: EntityId, now_ms: int
) -> BookDecision:
    """Takes the code and a key: a key that was stolen is no way to the code, and a code that was
    found is one for as long only as nobody notices."""
    app = entities.get(command.app)
    if not isinstance(app, App):
        return absent(f"there is no app {command.app}")
    if app.recovery is UNSET:
        return forbidden("this app has no recovery code: the operator makes one")
    if app.recovery != command.presented:
        return forbidden("this is not the recovery code of this app")
    key = next((each for each in app.keys if each.digest == command.key_digest), None)
    if key is None:
        return forbidden("the key was ended meanwhile")
    is_first = key.created_ms == app.created_ms
    if not is_first and now_ms - key.created_ms < REPLACING_KEY_AGE_MIN_MS:
        return forbidden("this key is younger than a day: the recovery code takes an older one")
    return (RecoveryCodeReplaced(own, command.app, command.recovery_digest),)


def is_past(expires_ms: int | None, now_ms: int) -> bool:
    """True if a key that is to be made would have expired."""
    return expires_ms is not None and expires_ms <= now_ms


def rotated(keys: tuple[AppKey, ...], key: AppKey) -> tuple[AppKey, ...]:
    """The live keys once there is a new one: those that have expired go, and of two others of its
    mode the older one."""
    live = [each for each in keys if not each.is_over(key.created_ms)]
    alike = [each for each in live if each.mode is key.mode]
    ended = alike[: max(0, len(alike) - KEYS_MAX + 1)]
    return (*(each for each in live if each not in ended), key)
