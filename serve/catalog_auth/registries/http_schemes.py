"""HTTP authentication schemes: IANA's "HTTP Authentication Scheme Registry", as data.

To take over a newer registry, add a line; nothing else knows the names.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpScheme:
    """`name` as this extension lists it; `obsolete` says why nobody should start with it."""

    name: str
    source: str
    obsolete: str | None = None


REGISTERED: Mapping[str, HttpScheme] = {
    scheme.name: scheme
    for scheme in (
        HttpScheme("basic", "RFC 7617"),
        HttpScheme("bearer", "RFC 6750"),
        HttpScheme("concealed", "RFC 9729"),
        HttpScheme("digest", "RFC 7616"),
        HttpScheme("dpop", "RFC 9449"),
        HttpScheme("gnap", "RFC 9635"),
        HttpScheme("hoba", "RFC 7486", "an experiment that browsers never took up"),
        HttpScheme("mutual", "RFC 8120", "an experiment that browsers never took up"),
        HttpScheme("negotiate", "RFC 4559"),
        HttpScheme("oauth", "RFC 5849", "OAuth 1.0, which RFC 6749 replaced"),
        HttpScheme("privatetoken", "RFC 9577"),
        HttpScheme("scram-sha-1", "RFC 7804"),
        HttpScheme("scram-sha-256", "RFC 7804"),
        HttpScheme("vapid", "RFC 8292"),
    )
}
# Names that were never registered here, but are known for being over.
OBSOLETE_ELSEWHERE: Mapping[str, str] = {
    "digest-md5": "a SASL mechanism that RFC 6331 moved to Historic",
}

# token of RFC 9110, 5.6.2: names of schemes, methods, header fields and cookies.
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")


def is_token(text: str) -> bool:
    """Tells whether the text is a token as RFC 9110 (5.6.2) has it."""
    return TOKEN.fullmatch(text) is not None
