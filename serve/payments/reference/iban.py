"""International bank account numbers: length by country and check digits (part B, IBAN)."""

import re
from collections.abc import Mapping

_SHAPE = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]+")
_CHECK_MODULUS = 97  # ISO 7064, MOD 97-10


def iban_problem(iban: str, lengths: Mapping[str, int]) -> str | None:
    """The fault of an IBAN that is written without spaces, in capitals; None: it has none.
    `lengths`: characters of an IBAN by country code."""
    if not _SHAPE.fullmatch(iban):
        return "must be two letters, two digits, then letters and digits"
    country = iban[:2]
    if country not in lengths:
        return f"is of {country}, where there are no IBANs"
    if len(iban) != lengths[country]:
        return f"must have {lengths[country]} characters in {country}, not {len(iban)}"
    return None if _remainder(iban) == 1 else "has wrong check digits"


def _remainder(iban: str) -> int:
    """Country and check digits to the end, letters to two digits each (A is 10), modulo 97."""
    rearranged = iban[4:] + iban[:4]
    return int("".join(str(int(each, 36)) for each in rearranged)) % _CHECK_MODULUS
