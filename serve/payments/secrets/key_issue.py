"""The key and the recovery code that a request makes (part G).

A repetition of the request must show them again, and they are stored nowhere: so both follow from
the request's idempotency key. That is the caller's choice, and callers change: a thief could find
out today which key somebody else's request will make tomorrow. So they follow as well from what the
request is for, and from a salt that nobody chooses and the books keep with the reply. When the
reply is forgotten, so is the salt, and the same idempotency key makes another key.
"""

from dataclasses import dataclass
from enum import StrEnum

from tollgate.serve.payments.secrets.generator import SecretGenerator


class KeyPurpose(StrEnum):
    """The requests that make a key. The words are part of what keys are derived from."""

    CREATION = "creation"
    ROTATION = "rotation"
    RECOVERY = "recovery"
    REISSUE = "reissue"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key, and a recovery code to it; both as they are shown."""

    key: str
    code: str


@dataclass(frozen=True, slots=True)
class KeyIssue:
    """`scope`: tells the request from others, by its idempotency key too; empty without one.
    `salt`: what the books are to keep with the reply; empty without a scope."""

    secrets: SecretGenerator
    purpose: KeyPurpose
    scope: tuple[str, ...]
    salt: str
    made: KeyPair

    def shown(self, salt: str) -> KeyPair:
        """The pair of the request whose reply was kept with this salt: this one, or the one that
        it repeats. Replies of releases before there were salts have none."""
        if salt == self.salt:
            return self.made
        scope = (self.purpose, *self.scope, salt) if salt else self.scope
        return _pair(self.secrets, scope)


def issue_keys(secrets: SecretGenerator, purpose: KeyPurpose, scope: tuple[str, ...]) -> KeyIssue:
    """A new key and code for a request with this scope."""
    salt = secrets.salt() if scope else ""
    made = _pair(secrets, (purpose, *scope, salt) if scope else ())
    return KeyIssue(secrets, purpose, scope, salt, made)


def _pair(secrets: SecretGenerator, scope: tuple[str, ...]) -> KeyPair:
    return KeyPair(secrets.app_key(*scope), secrets.recovery_code(*scope))
