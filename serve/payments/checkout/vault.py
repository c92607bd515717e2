"""The vault: card data as tokens, which only Tollgate can open (part H, The vault).

A token is its content: number or security code, sealed with AES-256-GCM under a key of a file
(secrets/vault_keys.py), and so stored nowhere.

    mark of the key (4) | nonce (12) | sealed: kind, until, value, filled up to one length

It can be opened for 15 minutes. That it is used for one payment alone is seen to by whoever opens
it (`TokenCard.tokens`), for the replicas share a table for that. What is opened becomes a
`PlainCard` at once, which gives nothing away.
"""

import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from cryptography.exceptions import InvalidTag

from tollgate.actors.kernel.clock import Clock
from tollgate.serve.payments.network.card import (
    CardProblem,
    PlainCard,
    is_security_code,
    read_card,
    ungrouped,
)
from tollgate.serve.payments.secrets.vault_keys import MARK_BYTES, VaultKeys

LIVES_MS = 15 * 60_000
_NONCE_BYTES = 12
_UNTIL_BYTES = 8
_VALUE_BYTES = 19
_TAG_BYTES = 16
TOKEN_BYTES = MARK_BYTES + _NONCE_BYTES + 1 + _UNTIL_BYTES + _VALUE_BYTES + _TAG_BYTES
TOKEN_LENGTH = 4 * TOKEN_BYTES // 3


class SecretPart(Enum):
    """The parts of a card that are sealed, by their words on the wire."""

    NUMBER = "pcn"
    CODE = "pcsc"


_KIND = {SecretPart.NUMBER: b"n", SecretPart.CODE: b"c"}


class TokenFault(Enum):
    """Why a token is refused."""

    UNKNOWN = "is no token of this vault, was changed, or has expired"
    OTHER_PART = "is a token of the other part of the card"


@dataclass(frozen=True, slots=True)
class TokenProblem:
    """A token that is refused: its field."""

    fault: TokenFault
    field: str


@dataclass(frozen=True, slots=True)
class TokenCard:
    """A card by its tokens. `tokens`: their digests, and when each expires, in ms."""

    card: PlainCard
    tokens: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Opened:
    value: str
    until_ms: int

    def __repr__(self) -> str:
        return "_Opened(…)"


@dataclass(frozen=True, slots=True)
class Vault:
    """Seals and opens."""

    keys: VaultKeys
    clock: Clock

    def seal(self, part: SecretPart, value: str) -> str | CardProblem:
        """The token of a number or a security code."""
        plain = _plain(part, value.strip())
        if isinstance(plain, CardProblem):
            return plain
        key, nonce = self.keys.newest, secrets.token_bytes(_NONCE_BYTES)
        until_ms = self._now_ms() + LIVES_MS
        content = _KIND[part] + until_ms.to_bytes(_UNTIL_BYTES) + plain.ljust(_VALUE_BYTES).encode()
        sealed = key.cipher.encrypt(nonce, content, key.mark)
        return urlsafe_b64encode(key.mark + nonce + sealed).decode()

    def card(
        self, number: str, code: str, month: object, year: object
    ) -> TokenCard | TokenProblem | CardProblem:
        """The card of two tokens and an expiry."""
        digits = self._open(number, SecretPart.NUMBER)
        if isinstance(digits, TokenFault):
            return TokenProblem(digits, "card.number")
        secret = self._open(code, SecretPart.CODE)
        if isinstance(secret, TokenFault):
            return TokenProblem(secret, "card.code")
        card = read_card(digits.value, month, year, secret.value)
        if isinstance(card, CardProblem):
            return card
        tokens = {
            token_digest(number): digits.until_ms,
            token_digest(code): secret.until_ms,
        }
        return TokenCard(card, tokens)

    def _open(self, token: str, part: SecretPart) -> _Opened | TokenFault:
        if len(token) != TOKEN_LENGTH:
            return TokenFault.UNKNOWN
        try:
            body = urlsafe_b64decode(token)
        except ValueError:
            return TokenFault.UNKNOWN
        # A token has one spelling: it is known by its digest when it is used again.
        if urlsafe_b64encode(body).decode() != token:
            return TokenFault.UNKNOWN
        mark, nonce = body[:MARK_BYTES], body[MARK_BYTES : MARK_BYTES + _NONCE_BYTES]
        key = self.keys.find(mark)
        if key is None:
            return TokenFault.UNKNOWN
        try:
            content = key.cipher.decrypt(nonce, body[MARK_BYTES + _NONCE_BYTES :], mark)
        except InvalidTag:
            return TokenFault.UNKNOWN
        until_ms = int.from_bytes(content[1 : 1 + _UNTIL_BYTES])
        if until_ms <= self._now_ms():
            return TokenFault.UNKNOWN
        if content[:1] != _KIND[part]:
            return TokenFault.OTHER_PART
        return _Opened(content[1 + _UNTIL_BYTES :].decode().rstrip(), until_ms)

    def _now_ms(self) -> int:
        return int(self.clock.now_s() * 1000)


def token_digest(token: str) -> str:
    """The name of a token where it may be stored."""
    return sha256(token.encode()).hexdigest()


def _plain(part: SecretPart, value: str) -> str | CardProblem:
    match part:
        case SecretPart.NUMBER:
            digits = ungrouped(value)
            return CardProblem(3, "value") if digits is None else digits
        case SecretPart.CODE:
            return value if is_security_code(value) else CardProblem(4, "value")
