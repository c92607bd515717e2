"""The bodies of payments in a browser (part H, Step by step). What is read and what the API's
document says both follow from these."""

from collections.abc import Callable
from typing import Annotated

from pydantic import WithJsonSchema

from tollgate.serve.payments.api.bodies import wire_types
from tollgate.serve.payments.api.bodies.model_reader import RequestBody
from tollgate.serve.payments.api.bodies.requests import SandboxTest
from tollgate.serve.payments.api.bodies.wire_types import Reading, checked, schema
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.checkout.hints import HINT_LENGTH_MAX, HINTS_MAX
from tollgate.serve.payments.checkout.vault import SecretPart

VALUE_LENGTH_MAX = 64
TOKEN_LENGTH_MAX = 256
KEY_LENGTH_MAX = 256
PLANNED_MAX = 100
FINEST_EXPONENT = 15
YEAR_MAX = 9_999


def _limited(length_max: int, what: str) -> Callable[[object, Reading], str | FieldError]:
    def check(value: object, reading: Reading) -> str | FieldError:
        del reading
        if isinstance(value, str) and 0 < len(value) <= length_max:
            return value
        return FieldError("", f"must be {what}")

    return check


def _token(value: object, reading: Reading) -> str | FieldError:
    """The text, or the vault's reply as it came."""
    if isinstance(value, dict) and value.keys() == {"token"}:
        value = value["token"]
    return _limited(TOKEN_LENGTH_MAX, "a token of POST /vault")(value, reading)


def _part(value: object, reading: Reading) -> SecretPart | FieldError:
    del reading
    words = [each.value for each in SecretPart]
    return SecretPart(value) if value in words else FieldError("", f"must be {' or '.join(words)}")


def _hints(value: object, reading: Reading) -> tuple[str, ...] | FieldError:
    del reading
    if not isinstance(value, list) or len(value) > HINTS_MAX:
        return FieldError("", f"must be a list of at most {HINTS_MAX} hints")
    if not all(isinstance(each, str) and 0 < len(each) <= HINT_LENGTH_MAX for each in value):
        return FieldError("", "must hold hints, as they were given")
    return tuple(value)


def _plan(value: object, reading: Reading) -> bool | FieldError:
    """True if anything is planned."""
    del reading
    planned = value if isinstance(value, list) else [value]
    if len(planned) > PLANNED_MAX or not all(isinstance(each, dict) for each in planned):
        return FieldError("", f"must be an object, or a list of at most {PLANNED_MAX}")
    return any(planned)


Value = Annotated[
    str,
    checked(_limited(VALUE_LENGTH_MAX, "the number or the security code of a card")),
    schema("string", "4100000000000000", maxLength=VALUE_LENGTH_MAX),
]
Token = Annotated[str, checked(_token), schema("string", maxLength=TOKEN_LENGTH_MAX)]
PartWord = Annotated[
    SecretPart, checked(_part), schema("string", enum=[each.value for each in SecretPart])
]
Hints = Annotated[
    tuple[str, ...],
    checked(_hints),
    schema(
        "array",
        items={"type": "string", "minLength": 1, "maxLength": HINT_LENGTH_MAX},
        maxItems=HINTS_MAX,
    ),
]
Planned = Annotated[
    bool,
    checked(_plan),
    WithJsonSchema({"type": "object", "description": "later payments, without the holder"}),
]
FineExponent = Annotated[
    int,
    checked(wire_types.whole(FINEST_EXPONENT)),
    schema("integer", minimum=0, maximum=FINEST_EXPONENT),
]
PublicKey = Annotated[
    str,
    checked(_limited(KEY_LENGTH_MAX, "the merchant's public key")),
    schema("string", maxLength=KEY_LENGTH_MAX),
]


class VaultCreate(RequestBody):
    """`type`: pcn, the card's number, or pcsc, its security code."""

    type: PartWord
    value: Value


class CheckoutIntegration(RequestBody):
    """`key`: the merchant's public key."""

    key: PublicKey


class CheckoutMoney(RequestBody):
    """`value` times ten to the minus `exponent`, in major units."""

    currency: wire_types.KnownCurrency
    exponent: FineExponent
    value: wire_types.Amount


class CheckoutExpiry(RequestBody):
    month: Annotated[int, checked(wire_types.whole(12)), schema("integer", minimum=1, maximum=12)]
    year: Annotated[
        int, checked(wire_types.whole(YEAR_MAX)), schema("integer", minimum=2000, maximum=2099)
    ]


class CheckoutCard(RequestBody):
    """`number`, `code`: tokens of the vault."""

    number: Token
    expiry: CheckoutExpiry
    code: Token


class CheckoutPayment(RequestBody):
    """`test`: for a test merchant, and for no other. `plan`, `unplanned`: payments are to follow,
    and the holder has to agree to them. `hints`: all that were given so far."""

    test: SandboxTest | None = None
    integration: CheckoutIntegration
    text: wire_types.Text = ""
    amount: CheckoutMoney
    card: CheckoutCard
    custom: wire_types.CustomText = ""
    unplanned: Planned = False
    plan: Planned = False
    hints: Hints = ()
