"""Constraints on the fields of requests (parts A, B and G): each function gives the value as it is
kept, or a `FieldError` that names the field. They are pure; what is absent is the caller's matter.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from email_validator import EmailNotValidError, validate_email

from tollgate.actors.ledger.law.values import AMOUNT_MAX, Currency
from tollgate.serve.payments.api.bodies.strict_json import canonical_json, depth_of
from tollgate.serve.payments.api.rejections import FieldError
from tollgate.serve.payments.reference.currencies import Currencies, CurrencyEntry

DESCRIPTOR_LENGTH_MAX = 22
NAME_LENGTH_MAX = 256
EMAIL_LENGTH_MAX = 254
WEBSITE_LENGTH_MAX = 2_048
TEXT_LENGTH_MAX = 1_024
MOMENT_LENGTH_MAX = 40
# A text may be so many times longer than what is left of it: each character is looked at.
HARMFUL_SHARE = 4
CUSTOM_BYTES_MAX = 50 * 1024
CUSTOM_DEPTH_MAX = 32

_AMOUNT = re.compile(r"[0-9]{1,16}")
_HOST = re.compile(r"(?!-)[\w-]{1,63}(?<!-)(\.(?!-)[\w-]{1,63}(?<!-))*\.?")
_COMPANY_NUMBER = re.compile(r"[\w./ -]{1,64}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]+")
_IBAN_MODULUS = 97  # ISO 7064, MOD 97-10
# Marks that turn the direction of the text after them, so that it reads as what it is not.
_DIRECTIONS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = frozenset({"Cc", "Cs", "Zl", "Zp"})
_FORM_BOOLEANS = {"yes": True, "no": False, "y": True, "n": False, "1": True, "0": False}
_BOOLEANS = _FORM_BOOLEANS | {"true": True, "false": False}


def amount(value: object, field: str = "amount", *, is_form: bool = False) -> int | FieldError:
    """Minor units, 1 to 2^53-1: an integer or an integral float; in forms, digits."""
    error = FieldError(field, f"must be a whole number from 1 to {AMOUNT_MAX}, in minor units")
    match value:
        case bool():
            return error
        case int():
            number = value
        case float():
            if not value.is_integer():
                return error
            number = int(value)
        case str() if is_form and _AMOUNT.fullmatch(value):
            number = int(value)
        case _:
            return error
    return number if 1 <= number <= AMOUNT_MAX else error


def flag(value: object, field: str, *, is_form: bool = False) -> bool | FieldError:
    """A JSON boolean; in forms `yes` or `no`, or what filters take too."""
    if isinstance(value, bool):
        return value
    if is_form and isinstance(value, str) and value in _BOOLEANS:
        return _BOOLEANS[value]
    return FieldError(field, "must be yes or no" if is_form else "must be true or false")


def plain_text(value: object, field: str, length_max: int = TEXT_LENGTH_MAX) -> str | FieldError:
    """A text for people without control characters, line breaks and turns of direction, which are
    taken out; blanks around it as well."""
    if not isinstance(value, str):
        return FieldError(field, "must be a text")
    too_long = FieldError(field, f"must have at most {length_max} characters")
    if len(value) > length_max * HARMFUL_SHARE:
        return too_long
    cleaned = "".join(filter(_is_harmless, value)).strip()
    if len(cleaned) > length_max:
        return too_long
    return cleaned


def moment_ms(value: object, field: str) -> int | FieldError:
    """A time of ISO 8601, in milliseconds of the epoch; one without a zone is of UTC."""
    error = FieldError(field, "must be a time such as 2026-02-28T09:30:00Z")
    if not isinstance(value, str) or len(value) > MOMENT_LENGTH_MAX:
        return error
    try:
        at = datetime.fromisoformat(value)
        # A time of another zone may have no year in ours.
        at_s = (at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return error
    return int(at_s * 1000) if at_s >= 0 else error


def name(value: object, field: str = "name") -> str | FieldError:
    """The name of an app or a merchant."""
    return plain_text(value, field, NAME_LENGTH_MAX)


def descriptor(value: object, field: str = "descriptor") -> str | FieldError:
    """The text on bank statements: printable ASCII, at most 22 characters."""
    if not isinstance(value, str):
        return FieldError(field, "must be a text")
    if len(value) > DESCRIPTOR_LENGTH_MAX:
        return FieldError(field, f"must have at most {DESCRIPTOR_LENGTH_MAX} characters")
    if not (value.isascii() and value.isprintable()):
        return FieldError(field, "must be printable ASCII")
    return value


def email(value: object, field: str = "email") -> str | FieldError:
    """An address with the shape of one; whether it exists is not asked."""
    if not isinstance(value, str) or len(value) > EMAIL_LENGTH_MAX:
        return FieldError(field, "must be an e-mail address")
    try:
        validate_email(value, check_deliverability=False, test_environment=True, strict=True)
    except EmailNotValidError:
        return FieldError(field, "must be an e-mail address, such as shop@example.com")
    return value


def website(value: object, field: str = "website") -> str | FieldError:
    """A web address; the scheme may be left out."""
    error = FieldError(field, "must be a web address, such as https://example.com")
    if not isinstance(value, str) or not 0 < len(value) <= WEBSITE_LENGTH_MAX:
        return error
    if any(each.isspace() or not _is_harmless(each) for each in value):
        return error
    try:
        parts = urlsplit(value if "://" in value else f"https://{value}")
        is_good = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:
        return error
    return value if is_good and _HOST.fullmatch(parts.hostname or "") else error


def country(
    value: object, countries: frozenset[str], field: str = "company.country"
) -> str | FieldError:
    """An ISO 3166 code of two capital letters."""
    if not isinstance(value, str) or value not in countries:
        return FieldError(field, "must be a country code of ISO 3166, such as DK")
    return value


def company_number(value: object, field: str = "company.number") -> str | FieldError:
    """A company's number in its register; countries write it as they like."""
    if not isinstance(value, str) or not _COMPANY_NUMBER.fullmatch(value):
        return FieldError(field, "must be letters, digits, blanks or ./- (at most 64)")
    return value


def iban(value: object, lengths: Mapping[str, int], field: str = "bank.iban") -> str | FieldError:
    """An IBAN without its blanks, in capitals. `lengths`: by country."""
    if not isinstance(value, str):
        return FieldError(field, "must be a text")
    compact = value.replace(" ", "").upper()
    problem = iban_problem(compact, lengths)
    return FieldError(field, problem) if problem else compact


def iban_problem(iban: str, lengths: Mapping[str, int]) -> str | None:
    """The fault of an IBAN (part B) that is written without spaces, in capitals; None: it has none.
    `lengths`: characters of an IBAN by country code."""
    if not _IBAN.fullmatch(iban):
        return "must be two letters, two digits, then letters and digits"
    country = iban[:2]
    if country not in lengths:
        return f"is of {country}, where there are no IBANs"
    if len(iban) != lengths[country]:
        return f"must have {lengths[country]} characters in {country}, not {len(iban)}"
    return None if _iban_remainder(iban) == 1 else "has wrong check digits"


def _iban_remainder(iban: str) -> int:
    """Country and check digits to the end, letters to two digits each (A is 10), modulo 97."""
    rearranged = iban[4:] + iban[:4]
    return int("".join(str(int(each, 36)) for each in rearranged)) % _IBAN_MODULUS


def currency(
    value: object, currencies: Currencies, field: str = "currency"
) -> CurrencyEntry | FieldError:
    """A currency for something new, so none that is deprecated."""
    facts = currencies.find(value) if isinstance(value, str) else None
    if facts is None:
        return FieldError(field, "must be a currency code of ISO 4217, such as EUR")
    if facts.is_deprecated:
        return FieldError(field, f"{facts.code} is not in use any more")
    return facts


def funding_currency(
    value: object, currencies: Currencies, field: str = "currency"
) -> Currency | FieldError:
    """A currency that a merchant's account can be kept in."""
    facts = currency(value, currencies, field)
    if isinstance(facts, FieldError):
        return facts
    if not facts.is_fundable:
        fundable = ", ".join(currencies.fundable)
        return FieldError(field, f"{facts.code} cannot fund an account; these can: {fundable}")
    return facts.code


def custom(value: object, field: str = "custom") -> str | FieldError:
    """Custom data: an object, as the canonical JSON text that is kept (at most 50 KB, 32 levels).
    That no name is there twice was seen to when the body was read. An empty list is an empty
    object (part A, Bodies in)."""
    if value == []:
        value = {}
    if not isinstance(value, dict):
        return FieldError(field, "must be an object")
    if depth_of(value) > CUSTOM_DEPTH_MAX:
        return FieldError(field, f"must be nested at most {CUSTOM_DEPTH_MAX} levels deep")
    canonical = canonical_json(value)
    if len(canonical.encode("utf-8")) > CUSTOM_BYTES_MAX:
        return FieldError(field, f"must have at most {CUSTOM_BYTES_MAX} bytes as JSON")
    return canonical


def _is_harmless(character: str) -> bool:
    return character not in _DIRECTIONS and unicodedata.category(character) not in _BREAKS
