"""Types of schemes: the standard ones, those that were removed, and what people write instead."""

import re
from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.fields import FIELDS_BY_TYPE
from tollgate.serve.catalog_auth.document.near_misses import nearest

# Predefined in v1.0.0, removed in v1.1.0 (part B3), and what describes the same today.
REMOVED: Mapping[str, str] = {
    "planetaryComputer": "signedUrl, with the flow of its signing API",
    "earthdata": "oauth2, or http with bearer",
}

_ALIASES = {
    "oauth": "oauth2",
    "oauth20": "oauth2",
    "openid": "openIdConnect",
    "oidc": "openIdConnect",
    "openidconnecturl": "openIdConnect",
    "signed": "signedUrl",
    "presignedurl": "signedUrl",
    "https": "http",
}
_BY_PLAIN_NAME = {name.lower(): name for name in FIELDS_BY_TYPE} | _ALIASES
# One letter more or less says nothing of a short name: `s4` is not meant for `s3`.
_LONG_NAMES = tuple(name for name in FIELDS_BY_TYPE if len(name) > 4)
_NO_LETTERS = re.compile(r"[\W_]+")
# Longer names are nobody's mistake for one of these.
NAME_LENGTH_MAX = 64


def standard_meant(type_: str) -> str | None:
    """The standard type that somebody meant who wrote nearly that; None for one's own type."""
    if type_ in FIELDS_BY_TYPE or type_ in REMOVED or len(type_) > NAME_LENGTH_MAX:
        return None
    plain = _NO_LETTERS.sub("", type_).lower()
    return _BY_PLAIN_NAME.get(plain) or _standard_near(plain)


def _standard_near(plain: str) -> str | None:
    near = nearest(plain, (name.lower() for name in _LONG_NAMES))
    return None if near is None else _BY_PLAIN_NAME[near]


def is_spelled_alike(type_: str, standard: str) -> bool:
    """Tells whether only case, blanks and punctuation differ."""
    return _NO_LETTERS.sub("", type_).lower() == standard.lower()
