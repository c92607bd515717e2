"""The secrets of a webhook as the ledger keeps them: sealed, one or two of them.

What is signed with them is in `signature.py`.
"""

from collections.abc import Sequence

from tollgate.actors.ledger.law.values import BookId
from tollgate.serve.payments.api.bodies.strict_json import JsonError, canonical_json, read_json
from tollgate.serve.payments.secrets.master_secret import MasterSecret, SealBroken
from tollgate.serve.payments.webhooks.calls import WebhookSecret


class WebhookSecretSealer:
    """Seals secrets for a book: what is sealed for one cannot be opened for another."""

    def __init__(self, secret: MasterSecret) -> None:
        self._sealer = secret.sealer("webhooks")

    def seal(self, known: Sequence[WebhookSecret], book: BookId) -> str:
        """The secrets as an `AddWebhook` carries them."""
        return self._sealer.seal(
            canonical_json([[each.secret, each.until_ms] for each in known]), book
        )

    def open(self, sealed: str, book: BookId) -> tuple[WebhookSecret, ...]:
        """Raises SealBroken: sealed by another installation, or for another book."""
        try:
            found = read_json(self._sealer.open(sealed, book).encode())
        except JsonError as error:
            raise SealBroken(f"holds no secrets: {error}") from None
        match found:
            case [*pairs]:
                return tuple(_secret(pair) for pair in pairs)
        raise SealBroken("holds no secrets")


def _secret(pair: object) -> WebhookSecret:
    match pair:
        case [str(secret), None]:
            return WebhookSecret(secret)
        case [str(secret), int(until_ms)]:
            return WebhookSecret(secret, until_ms)
    raise SealBroken("holds no secrets")
