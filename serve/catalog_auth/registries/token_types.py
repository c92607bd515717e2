"""Token types of OAuth 2.0: the URNs that name what kind of token is handed in (RFC 8693, 3)."""

import re

URN_PREFIX = "urn:ietf:params:oauth:token-type:"

ACCESS_TOKEN = f"{URN_PREFIX}access_token"
ID_TOKEN = f"{URN_PREFIX}id_token"

# IANA's "OAuth URI" registry, below the prefix.
REGISTERED = frozenset(
    {"access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt", "txn_token", "id-jag"}
)

# What each type of scheme yields as the input of an exchange (B2).
YIELDED = {"openIdConnect": ID_TOKEN, "oauth2": ACCESS_TOKEN}

# An absolute URI, roughly: RFC 3986 scheme, and no character that no URI has.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x20<>\"{}|\\^`]+")


def is_uri(text: str) -> bool:
    """Tells whether the text is an absolute URI (a URN, as a rule)."""
    return _URI.fullmatch(text) is not None


def registered_urn(short: str) -> str | None:
    """The URN that somebody meant who wrote only its last part: `id_token`, `ID Token`."""
    name = short.strip().lower().replace(" ", "_").replace("-", "_")
    return f"{URN_PREFIX}{name}" if name in REGISTERED else None
