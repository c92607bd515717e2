"""The `test` object of a payment: how the simulated card and its bank behave (part H).

    {"card": {"scheme": "supported|unsupported|unknown", "code": "valid|invalid",
              "status": "valid|invalid|expired|disabled|lost",
              "limit": {"currency", "exponent", "value"}, "balance": {…}},
     "fingerprint": "timeout|success",
     "tds": {"fingerprint": "timeout|unavailable|success", "challenge": true|false,
             "status": "authenticated|rejected|unavailable|attempted"}}

Everything left out is good; without `tds` no 3-D Secure takes place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from tollgate.actors.ledger.law.values import AMOUNT_MAX
from tollgate.serve.payments.api.bodies.constraints import flag
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.reference.currencies import EXPONENT_MAX

_CODE_LENGTH = 3


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


def read_card_behaviour(value: object, *, is_form: bool = False) -> CardBehaviour | FieldError:
    """The options of a body's `test`, with its field in errors; `true` is as good as `{}`."""
    if value is True:
        return CardBehaviour()
    try:
        return _options(_Object.of(value, "test", ("card", "fingerprint", "tds"), is_form))
    except _Refused as refused:
        return refused.error


class _Refused(Exception):  # noqa: N818 - carries the value that is returned
    def __init__(self, field: str, message: str) -> None:
        super().__init__(field)
        self.error = FieldError(field, message)


E = TypeVar("E", bound=Enum)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of the body, its dotted path, and whether it came in a form."""

    place: str
    fields: Mapping[str, object]
    is_form: bool

    @classmethod
    def of(cls, value: object, place: str, known: tuple[str, ...], is_form: bool) -> "_Object":
        if not isinstance(value, dict):
            raise _Refused(place, "must be an object")
        for name in value:
            if name not in known:
                raise _Refused(f"{place}.{name}", f"is unknown; known here: {', '.join(known)}")
        return cls(place, value, is_form)

    def inner(self, name: str, known: tuple[str, ...], read: Callable[["_Object"], T]) -> T | None:
        value = self.fields.get(name)
        if value is None:
            return None
        return read(_Object.of(value, f"{self.place}.{name}", known, self.is_form))

    def choice(self, name: str, kind: type[E], otherwise: E) -> E:
        value = self.fields.get(name)
        if value is None:
            return otherwise
        words = [each.value for each in kind]
        if value not in words:
            raise _Refused(f"{self.place}.{name}", f"must be one of {', '.join(words)}")
        return kind(value)

    def flag(self, name: str) -> bool:
        value = self.fields.get(name)
        found = flag(value, f"{self.place}.{name}", is_form=self.is_form)
        if isinstance(found, FieldError) and value is not None:
            raise _Refused(found.field, found.message)
        return found is True

    def number(self, name: str, highest: int) -> int:
        value = self.fields.get(name)
        if self.is_form and isinstance(value, str) and value.isdecimal() and len(value) <= 16:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest:
            raise _Refused(f"{self.place}.{name}", f"must be a whole number from 0 to {highest}")
        return value


def _options(whole: _Object) -> CardBehaviour:
    names = ("scheme", "code", "status", "limit", "balance")
    card = whole.inner("card", names, lambda found: found) or _Object("test.card", {}, False)
    return CardBehaviour(
        scheme=card.choice("scheme", CardScheme, CardScheme.SUPPORTED),
        code=card.choice("code", SecurityCode, SecurityCode.VALID),
        status=card.choice("status", CardStatus, CardStatus.VALID),
        limit=card.inner("limit", ("currency", "exponent", "value"), _money),
        balance=card.inner("balance", ("currency", "exponent", "value"), _money),
        fingerprint=whole.choice("fingerprint", Fingerprint, Fingerprint.SUCCESS),
        tds=whole.inner("tds", ("fingerprint", "challenge", "status"), _tds),
    )


def _money(amount: _Object) -> Money:
    code = amount.fields.get("currency")
    if not isinstance(code, str) or len(code) != _CODE_LENGTH:
        raise _Refused(f"{amount.place}.currency", "must be a currency code, such as EUR")
    exponent = amount.number("exponent", EXPONENT_MAX)
    return Money(code, exponent, amount.number("value", AMOUNT_MAX))


def _tds(tds: _Object) -> TdsOptions:
    return TdsOptions(
        fingerprint=tds.choice("fingerprint", TdsFingerprint, TdsFingerprint.SUCCESS),
        has_challenge=tds.flag("challenge"),
        status=tds.choice("status", TdsStatus, TdsStatus.AUTHENTICATED),
    )
