"""Keys: how they are made, stored and presented (part G).

- An app's key is `sk_`, 30 random characters (178 bits) and a checksum of 6, by which scanners for
  leaked keys tell it from noise; one for test or live merchants alone begins with `sk_test_`
  or `sk_live_`. It is shown once; what is stored is its HMAC-SHA-256 under a key that is not in the
  database. Keys of imports are whatever they are.
- A recovery code is made and stored as a key is, and begins with `rc_`. It opens nothing but the
  recovery of its app.
- A merchant's public key is no secret; it looks like a UUID, because clients expect one.
- A key is presented by HTTP Basic with an empty user name. What is malformed is looked up all the
  same, as a digest that no key has, so that neither time nor answer tells it from an unknown key.
"""

import hmac
import re
import secrets
from base64 import b64decode
from dataclasses import dataclass
from typing import final
from zlib import crc32

from tollgate.actors.ledger.law.values import KeyMode
from tollgate.serve.payments.secrets.master_secret import MasterSecret

AUTHORIZATION_LENGTH_MAX = 1_024
KEY_LENGTH_MAX = 256
SEED_BYTES = 32
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_LENGTH = 30
_CHECKSUM_LENGTH = 6
_PREFIX = "sk_"
_MODE_PREFIXES = {KeyMode.TEST: "sk_test_", KeyMode.LIVE: "sk_live_"}
_RECOVERY_PREFIX = "rc_"
_CHECKED_LENGTH = _RANDOM_LENGTH + _CHECKSUM_LENGTH
_KEY = re.compile(rf"[\x21-\x7e]{{1,{KEY_LENGTH_MAX}}}")
_BASIC = re.compile(r"[Bb][Aa][Ss][Ii][Cc] +([A-Za-z0-9+/]+={0,2}) *")


def new_app_key(seed: bytes | None = None, mode: KeyMode | None = None) -> str:
    """The secret key that follows from a secret seed of 32 bytes; by default a random one."""
    prefix = _PREFIX if mode is None else _MODE_PREFIXES[mode]
    return prefix + _checked(_derived(seed or secrets.token_bytes(SEED_BYTES)))


def new_recovery_code(seed: bytes | None = None) -> str:
    """The recovery code of an app that follows from a seed, as a key does."""
    return _RECOVERY_PREFIX + _checked(_derived(seed or secrets.token_bytes(SEED_BYTES)))


def has_checksum(key: str) -> bool:
    """True if a text has the form and checksum of a key of `new_app_key`."""
    prefix, random = key[:-_CHECKED_LENGTH], key[-_CHECKED_LENGTH:-_CHECKSUM_LENGTH]
    if prefix not in (_PREFIX, *_MODE_PREFIXES.values()):
        return False
    return len(random) == _RANDOM_LENGTH and key == prefix + _checked(random)


def new_public_key() -> str:
    """A new public key of a merchant."""
    text = secrets.token_hex(16)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _derived(seed: bytes) -> str:
    number, text = int.from_bytes(seed, "big"), ""
    for _ in range(_RANDOM_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        text += _DIGITS[digit]
    return text


def _checked(text: str) -> str:
    return text + _checksum(text)


def _checksum(text: str) -> str:
    number, digits = crc32(text.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


@dataclass(frozen=True, slots=True)
class StoredKey:
    """The digest and the last characters of an app's key."""

    digest: str
    last4: str


@final
class KeyDigests:
    """Turns keys into what is stored of them."""

    __slots__ = ("__mac",)

    def __init__(self, secret: MasterSecret) -> None:
        # Every call copies it: unlike a new one it never gives up the interpreter's lock.
        self.__mac = hmac.new(secret.key_for("app keys"), digestmod="sha256")

    def stored(self, key: str) -> StoredKey:
        """The stored form of a new or an imported key."""
        assert _KEY.fullmatch(key), "whoever hands in a key has checked it"
        return StoredKey(self._digest(key), key[-4:])

    def presented(self, authorization: str | None) -> str:
        """The digest to look up for an Authorization header; that of no key if it is malformed."""
        key = read_basic(authorization)
        return self._digest("" if key is None else key)

    def _digest(self, key: str) -> str:
        mac = self.__mac.copy()
        mac.update(key.encode())
        return mac.hexdigest()


def is_same_digest(digest: str, other: str) -> bool:
    """True if two digests are the same, in the same time whatever they are."""
    return hmac.compare_digest(digest.encode(), other.encode())


def is_key(text: str) -> bool:
    """True if a text can be a key: 1 to 256 printable characters without blanks."""
    return _KEY.fullmatch(text) is not None


def read_basic(authorization: str | None) -> str | None:
    """The key of an Authorization header: `Basic`, no user name, the key as the password. None:
    there is none, or it is written in another way."""
    if authorization is None or len(authorization) > AUTHORIZATION_LENGTH_MAX:
        return None
    found = _BASIC.fullmatch(authorization)
    if found is None:
        return None
    try:
        credentials = b64decode(found[1], validate=True).decode("ascii")
    except ValueError:
        return None
    key = credentials.removeprefix(":")
    return key if key != credentials and is_key(key) else None
