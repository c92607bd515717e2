"""The secrets that a request makes: a key and a recovery code, or a webhook's secret (part G).

A repetition of the request must show them again, and they are stored nowhere: so both follow from
the request's idempotency key. That is the caller's choice, and callers change: a thief could find
out today which key somebody else's request will make tomorrow. So they follow as well from what the
request is for, and from a salt that nobody chooses and the books keep with the reply. When the
reply is forgotten, so is the salt, and the same idempotency key makes another secret.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from tollgate.actors.ledger.law.values import KeyMode
from tollgate.serve.payments.secrets.generator import SecretGenerator
from tollgate.serve.payments.webhooks.calls import WebhookSecret

T = TypeVar("T")


class KeyPurpose(StrEnum):
    """The requests that make a secret. The words are part of what secrets are derived from."""

    CREATION = "creation"
    ROTATION = "rotation"
    RECOVERY = "recovery"
    REISSUE = "reissue"
    CODE = "recovery code"
    WEBHOOK = "webhook"
    WEBHOOK_ROTATION = "webhook rotation"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key, and a recovery code to it; both as they are shown."""

    key: str
    code: str


@dataclass(frozen=True, slots=True)
class SecretIssue(Generic[T]):
    """`make`: what follows from a scope. `scope`: tells the request from others, by its idempotency
    key too; empty without one. `salt`: what the books are to keep with the reply; empty without a
    scope."""

    make: Callable[..., T]
    purpose: KeyPurpose
    scope: tuple[str, ...]
    salt: str
    made: T

    def shown(self, salt: str) -> T:
        """The secret of the request whose reply was kept with this salt: this one, or the one that
        it repeats. Replies of releases before there were salts have none."""
        if salt == self.salt:
            return self.made
        return self.make(*((self.purpose, *self.scope, salt) if salt else self.scope))


KeyIssue = SecretIssue[KeyPair]
WebhookSecretIssue = SecretIssue[WebhookSecret]


def issue_keys(
    secrets: SecretGenerator,
    purpose: KeyPurpose,
    scope: tuple[str, ...],
    mode: KeyMode | None = None,
) -> KeyIssue:
    """A new key of this mode, and a code, for a request with this scope."""

    def pair(*scope: str) -> KeyPair:
        return KeyPair(secrets.app_key(*scope, mode=mode), secrets.recovery_code(*scope))

    return _issue(secrets, pair, purpose, scope)


def issue_webhook_secret(
    secrets: SecretGenerator, purpose: KeyPurpose, scope: tuple[str, ...]
) -> WebhookSecretIssue:
    """A new secret of a webhook for a request with this scope."""
    return _issue(secrets, secrets.webhook_secret, purpose, scope)


def _issue(
    secrets: SecretGenerator, make: Callable[..., T], purpose: KeyPurpose, scope: tuple[str, ...]
) -> SecretIssue[T]:
    salt = secrets.salt() if scope else ""
    made = make(*((purpose, *scope, salt) if scope else ()))
    return SecretIssue(make, purpose, scope, salt, made)
