"""The types of fields on the wire, each stated once: its check, and its schema in the API's
document (parts A and B). Request bodies and replies are declared with them.

A check gives the value as it is kept or a `FieldError`; it is told what it needs by the `Reading`
of the body. In the schema of a reply only the second half counts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from tollgate.actors.ledger.book.decisions.approval import VERSION_LENGTH
from tollgate.actors.ledger.book.decisions.membership import RATE_PPM_MAX
from tollgate.actors.ledger.law.events import MERCHANT_EVENT_TYPES
from tollgate.actors.ledger.law.ids import is_id
from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency, EntityId, Role
from tollgate.serve.net.guarded_client import TargetPolicy
from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.network.simulated_behaviour import (
    CardScheme,
    CardStatus,
    Fingerprint,
    SecurityCode,
    TdsFingerprint,
    TdsStatus,
)
from tollgate.serve.payments.reference.currencies import EXPONENT_MAX, CurrencyEntry
from tollgate.serve.payments.reference.data_file import DATA_FILE_BYTES_MAX
from tollgate.serve.payments.reference.tables import ReferenceData
from tollgate.serve.payments.secrets.keys import is_key
from tollgate.serve.payments.webhooks.calls import webhook_url

ID_PATTERN = "^[0-9a-f]{24}$"
EVENTS_MAX = 1_000
FRAUD_REASON_MAX = 8
DISPUTE_REASON_MAX = 9_999
VERSION_PATTERN = f"^[0-9a-f]{{{VERSION_LENGTH}}}$"
_VERSION = re.compile(VERSION_PATTERN)
_DIGITS = re.compile("[0-9]{1,16}")
_TYPE_SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """The circumstances that checks know of. `is_form`: values are texts."""

    reference: ReferenceData
    targets: TargetPolicy
    is_form: bool


FieldCheck = Callable[[object, Reading], object]


def checked(check: FieldCheck) -> PlainValidator:
    """A check as pydantic takes it."""

    def validate(value: object, info: ValidationInfo) -> object:
        assert isinstance(info.context, Reading), "bodies are read with one"
        found = check(value, info.context)
        if isinstance(found, FieldError):
            raise field_refusal(found)
        return found

    return PlainValidator(validate)


def field_refusal(error: FieldError) -> PydanticCustomError:
    """A field's error as pydantic carries it; a `field` that is not empty is the whole path."""
    return PydanticCustomError("refused", "{why}", {"why": error.message, "field": error.field})


def _text(length_max: int) -> FieldCheck:
    return lambda value, _: constraints.plain_text(value, "", length_max)


def _id(value: object, reading: Reading) -> EntityId | FieldError:
    del reading
    if isinstance(value, str) and is_id(value):
        return EntityId(value)
    return FieldError("", "must be an id: 24 digits of 0-9 and a-f")


def _ids(value: object, reading: Reading) -> list[EntityId] | FieldError:
    del reading
    if not isinstance(value, list) or not 0 < len(value) <= EVENTS_MAX:
        return FieldError("", f"must be a list of 1 to {EVENTS_MAX} ids")
    if not all(isinstance(each, str) and is_id(each) for each in value):
        return FieldError("", "must hold ids of events")
    return [EntityId(each) for each in value]


def _event_types(value: object, reading: Reading) -> list[str] | FieldError:
    """In the order of the alphabet, each once; in a form, `types[]=` is none."""
    if not isinstance(value, list) or len(value) > len(MERCHANT_EVENT_TYPES):
        return FieldError("", "must be a list of types of events, each once")
    wanted = [each for each in value if not (reading.is_form and each == "")]
    for each in wanted:
        if not isinstance(each, str) or each not in MERCHANT_EVENT_TYPES:
            near = get_close_matches(str(each)[:_TYPE_SHOWN_MAX], MERCHANT_EVENT_TYPES, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            return FieldError("", f"must hold types of events, such as transaction.captured{hint}")
    return sorted(set(wanted))


def _any_currency(value: object, reading: Reading) -> Currency | FieldError:
    """Any text: what it must be is known to the book alone."""
    del reading
    if not isinstance(value, str) or len(value) != 3:
        return FieldError("", "must be a currency code of ISO 4217, such as EUR")
    return Currency(value)


def whole(highest: int) -> FieldCheck:
    """The check of a whole number from 0 on."""

    def check(value: object, reading: Reading) -> int | FieldError:
        """In forms, digits."""
        is_digits = reading.is_form and isinstance(value, str) and _DIGITS.fullmatch(value)
        number = int(str(value)) if is_digits else value
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= highest:
            return FieldError("", f"must be a whole number from 0 to {highest}")
        return number

    return check


def _one_of(kind: type[Enum]) -> tuple[PlainValidator, WithJsonSchema]:
    """The check and the schema of a word of a closed set."""
    words = [each.value for each in kind]

    def check(value: object, reading: Reading) -> Enum | FieldError:
        del reading
        if value not in words:
            return FieldError("", f"must be one of {', '.join(words)}")
        return kind(value)

    return checked(check), schema("string", enum=words)


def schema(kind: str, *examples: object, **more: Any) -> WithJsonSchema:
    """A type of JSON as pydantic takes it."""
    shown: dict[str, Any] = {"examples": list(examples)} if examples else {}
    return WithJsonSchema({"type": kind} | more | shown)


_ID_SCHEMA = schema("string", "560fd96b7973ff3d2362a78c", pattern=ID_PATTERN)
_AMOUNT_SCHEMA = schema("integer", 995, minimum=1, maximum=AMOUNT_MAX, description="minor units")
_CURRENCY_SCHEMA = schema("string", "EUR", pattern="^[A-Z]{3}$")

Id = Annotated[EntityId, checked(_id), _ID_SCHEMA]
EventIds = Annotated[
    list[EntityId],
    checked(_ids),
    schema(
        "array",
        items={"type": "string", "pattern": ID_PATTERN},
        minItems=1,
        maxItems=EVENTS_MAX,
    ),
]
EventTypes = Annotated[
    list[str],
    checked(_event_types),
    schema(
        "array",
        items={"type": "string", "enum": sorted(MERCHANT_EVENT_TYPES)},
        maxItems=len(MERCHANT_EVENT_TYPES),
    ),
]
# `false` means absent as well, because clients send that.
OptionalId = Annotated[
    EntityId | None,
    checked(lambda value, reading: None if value is False else _id(value, reading)),
    WithJsonSchema({"anyOf": [_ID_SCHEMA.json_schema, {"const": False}]}),
]
Amount = Annotated[
    int,
    checked(lambda value, reading: constraints.amount(value, "", is_form=reading.is_form)),
    _AMOUNT_SCHEMA,
]
Flag = Annotated[
    bool,
    checked(lambda value, reading: constraints.flag(value, "", is_form=reading.is_form)),
    schema("boolean"),
]
Moment = Annotated[
    int,
    checked(lambda value, _: constraints.moment_ms(value, "")),
    schema("string", "2026-02-28T09:30:00Z", format="date-time", maxLength=40),
]
CurrencyCode = Annotated[Currency, checked(_any_currency), _CURRENCY_SCHEMA]
KnownCurrency = Annotated[
    CurrencyEntry,
    checked(lambda value, reading: constraints.currency(value, reading.reference.currencies, "")),
    _CURRENCY_SCHEMA,
]
FundingCurrency = Annotated[
    Currency,
    checked(
        lambda value, reading: constraints.funding_currency(value, reading.reference.currencies, "")
    ),
    schema("string", "DKK", pattern="^[A-Z]{3}$"),
]
Descriptor = Annotated[
    str,
    checked(lambda value, _: constraints.descriptor(value, "")),
    schema(
        "string",
        "Coffee & Cake",
        maxLength=constraints.DESCRIPTOR_LENGTH_MAX,
        pattern="^[ -~]*$",
    ),
]
Name = Annotated[
    str,
    checked(_text(constraints.NAME_LENGTH_MAX)),
    schema("string", "Coffee & Cake", maxLength=constraints.NAME_LENGTH_MAX),
]
Text = Annotated[
    str,
    checked(_text(constraints.TEXT_LENGTH_MAX)),
    schema("string", maxLength=constraints.TEXT_LENGTH_MAX),
]
Email = Annotated[
    str,
    checked(lambda value, _: constraints.email(value, "")),
    schema("string", "shop@example.com", maxLength=constraints.EMAIL_LENGTH_MAX),
]
Website = Annotated[
    str,
    checked(lambda value, _: constraints.website(value, "")),
    schema("string", "https://example.com", maxLength=constraints.WEBSITE_LENGTH_MAX),
]
Country = Annotated[
    str,
    checked(lambda value, reading: constraints.country(value, reading.reference.countries, "")),
    schema("string", "DK", pattern="^[A-Z]{2}$"),
]
CompanyNumber = Annotated[
    str,
    checked(lambda value, _: constraints.company_number(value, "")),
    schema("string", "12345678", maxLength=64),
]
Iban = Annotated[
    str,
    checked(lambda value, reading: constraints.iban(value, reading.reference.iban_lengths, "")),
    schema("string", "DK5000400440116243"),
]
CustomText = Annotated[
    str,
    checked(lambda value, _: constraints.custom(value, "")),
    schema(
        "object",
        description="any data, at most 50 KB and 32 levels",
        additionalProperties=True,
    ),
]
WebhookUrl = Annotated[
    str,
    checked(lambda value, reading: webhook_url(value, reading.targets, "")),
    schema("string", "https://example.com/hook", maxLength=2_048),
]
DisputeReasonCode = Annotated[
    int, checked(whole(DISPUTE_REASON_MAX)), schema("integer", minimum=0, maximum=9_999)
]
FraudReason = Annotated[
    int,
    checked(whole(FRAUD_REASON_MAX)),
    schema("integer", minimum=0, maximum=FRAUD_REASON_MAX),
]
RoleWord = Annotated[Role, *_one_of(Role)]
CardSchemeWord = Annotated[CardScheme, *_one_of(CardScheme)]
SecurityCodeWord = Annotated[SecurityCode, *_one_of(SecurityCode)]
CardStatusWord = Annotated[CardStatus, *_one_of(CardStatus)]
FingerprintWord = Annotated[Fingerprint, *_one_of(Fingerprint)]
TdsFingerprintWord = Annotated[TdsFingerprint, *_one_of(TdsFingerprint)]
TdsStatusWord = Annotated[TdsStatus, *_one_of(TdsStatus)]
Exponent = Annotated[
    int, checked(whole(EXPONENT_MAX)), schema("integer", minimum=0, maximum=EXPONENT_MAX)
]
WholeAmount = Annotated[
    int, checked(whole(AMOUNT_MAX)), schema("integer", minimum=0, maximum=AMOUNT_MAX)
]
RatePpm = Annotated[
    int, checked(whole(RATE_PPM_MAX)), schema("integer", 13_500, minimum=0, maximum=RATE_PPM_MAX)
]


def _file(value: object, reading: Reading) -> str | FieldError:
    del reading
    if not isinstance(value, str) or len(value) > DATA_FILE_BYTES_MAX:
        return FieldError("", "must be the text of a file")
    return value


ImportFile = Annotated[
    str, checked(_file), schema("string", description="The text of the file, YAML or JSON.")
]
NetworkFileText = Annotated[
    str, checked(_file), schema("string", description="The text of the file, CSV or JSON lines.")
]


def _recovery_code(value: object, reading: Reading) -> str | FieldError:
    del reading
    if isinstance(value, str) and is_key(value):
        return value
    return FieldError("", "must be the recovery code of the app, as it was shown")


RecoveryCode = Annotated[
    str,
    checked(_recovery_code),
    schema("string", description="as it was shown with the app's first key", maxLength=256),
]


def _version(value: object, reading: Reading) -> str | FieldError:
    del reading
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    return FieldError("", "must be the version that the list of waiting merchants shows")


ApprovalVersion = Annotated[str, checked(_version), schema("string", pattern=VERSION_PATTERN)]

# The parts of a payment are judged by the handler: their refusals have codes of part C.
_AS_GIVEN = PlainValidator(lambda value: value)
GivenKey = Annotated[object, _AS_GIVEN, schema("string", description="the merchant's public key")]
GivenAmount = Annotated[object, _AS_GIVEN, _AMOUNT_SCHEMA]
GivenCurrency = Annotated[object, _AS_GIVEN, _CURRENCY_SCHEMA]
GivenCard = Annotated[
    object,
    _AS_GIVEN,
    schema(
        "object",
        required=["number", "expiry", "code"],
        properties={
            "number": {"type": "string", "examples": ["4100000000000000"]},
            "expiry": {
                "type": "object",
                "required": ["month", "year"],
                "properties": {
                    "month": {"type": "integer", "minimum": 1, "maximum": 12, "examples": [8]},
                    "year": {
                        "type": "integer",
                        "minimum": 2000,
                        "maximum": 2099,
                        "examples": [2066],
                    },
                },
            },
            "code": {"type": "string", "pattern": "^[0-9]{3,4}$", "examples": ["123"]},
        },
    ),
]
