"""New ids and secrets (part G).

What is shown once must be shown again when the same request is repeated with the same idempotency
key, and is stored nowhere: so it is derived from that key, the caller, and a secret of this
installation. Without an idempotency key it is random.
"""

import hmac
import secrets
from typing import final

from tollgate.actors.ledger.law.values import KeyMode
from tollgate.serve.payments.secrets.keys import new_app_key, new_public_key, new_recovery_code
from tollgate.serve.payments.secrets.master_secret import MasterSecret
from tollgate.serve.payments.webhooks.calls import WebhookSecret, new_webhook_secret


@final
class SecretGenerator:
    """Makes what nobody can guess."""

    __slots__ = ("__seed_key",)

    def __init__(self, secret: MasterSecret) -> None:
        self.__seed_key = secret.key_for("secrets that are shown again to the same request")

    def operation(self) -> str:
        """The id of an operation."""
        return secrets.token_hex(16)

    def request_id(self) -> str:
        return secrets.token_hex(16)

    def salt(self) -> str:
        """A text that no caller chooses, for what is derived from their idempotency keys."""
        return secrets.token_hex(16)

    def public_key(self) -> str:
        """A merchant's public key."""
        return new_public_key()

    def app_key(self, *scope: str, mode: KeyMode | None = None) -> str:
        """An app's key; with a scope, always the same one."""
        return new_app_key(self._seed("app key", scope), mode)

    def recovery_code(self, *scope: str) -> str:
        """An app's recovery code; with a scope, always the same one."""
        return new_recovery_code(self._seed("recovery code", scope))

    def webhook_secret(self, *scope: str) -> WebhookSecret:
        """A webhook's secret; with a scope, always the same one."""
        return new_webhook_secret(self._seed("webhook secret", scope))

    def _seed(self, purpose: str, scope: tuple[str, ...]) -> bytes | None:
        if not scope:
            return None
        # Lengths go first, so that no two scopes run together into the same text.
        text = "".join(f"{len(each)}:{each}" for each in (purpose, *scope))
        return hmac.digest(self.__seed_key, text.encode(), "sha256")
