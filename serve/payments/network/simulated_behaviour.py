"""The `test` object of a payment: how the simulated card and its bank behave (part H).

    {"card": {"scheme": "supported|unsupported|unknown", "code": "valid|invalid",
              "status": "valid|invalid|expired|disabled|lost",
              "limit": {"currency", "exponent", "value"}, "balance": {…}},
     "fingerprint": "timeout|success",
     "tds": {"fingerprint": "timeout|unavailable|success", "challenge": true|false,
             "status": "authenticated|rejected|unavailable|attempted"}}

Everything left out is good; without `tds` no 3-D Secure takes place. This file has the words alone:
which card, amount or behaviour fails, and with which error, is decided in `simulator.py`.
"""

from dataclasses import dataclass
from enum import Enum


class CardScheme(Enum):
    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


class SecurityCode(Enum):
    VALID = "valid"
    INVALID = "invalid"


class CardStatus(Enum):
    VALID = "valid"
    INVALID = "invalid"
    EXPIRED = "expired"
    DISABLED = "disabled"
    LOST = "lost"


class Fingerprint(Enum):
    SUCCESS = "success"
    TIMEOUT = "timeout"


class TdsFingerprint(Enum):
    SUCCESS = "success"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"


class TdsStatus(Enum):
    AUTHENTICATED = "authenticated"
    REJECTED = "rejected"
    UNAVAILABLE = "unavailable"
    ATTEMPTED = "attempted"


@dataclass(frozen=True, slots=True)
class Money:
    """`value` times ten to the minus `exponent`, in major units."""

    currency: str
    exponent: int
    value: int

    def is_less_than(self, amount: int, exponent: int) -> bool:
        """True if it is less than an amount with that exponent, exactly."""
        return bool(self.value * 10**exponent < amount * 10**self.exponent)


@dataclass(frozen=True, slots=True)
class TdsOptions:
    """3-D Secure. `has_challenge`: the bank asks the holder to confirm."""

    fingerprint: TdsFingerprint = TdsFingerprint.SUCCESS
    has_challenge: bool = False
    status: TdsStatus = TdsStatus.AUTHENTICATED


@dataclass(frozen=True, slots=True)
class CardBehaviour:
    """The whole object; as it is made, everything is good. `limit`: what the card allows at once;
    `balance`: what is on its account; None: without an end."""

    scheme: CardScheme = CardScheme.SUPPORTED
    code: SecurityCode = SecurityCode.VALID
    status: CardStatus = CardStatus.VALID
    limit: Money | None = None
    balance: Money | None = None
    fingerprint: Fingerprint = Fingerprint.SUCCESS
    tds: TdsOptions | None = None
