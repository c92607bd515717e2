"""No secret leaves in a resolution: what looks like one is taken out of the texts that go in.

Everything that a resolution says is made of an href, of schemes and of storage schemes; these are
read here first. Taken out are user names and passwords in URLs, the values of query parameters that
carry signatures, tokens and keys, and texts that are shaped like a known kind of token: whatever
the rules about secrets find (`registries/secret_shapes.py`), and what is near enough to it.

The patterns of this file are looser than the registry's: a token cut short, or one of a length that
its maker never gave, is taken out as well. The rules must not accuse wrongly, so theirs are exact;
here a false alarm costs a word of a text, and a miss would publish a secret.
"""

import re
from collections.abc import Mapping

import msgspec

from tollgate.serve.catalog_auth.document.document import Scheme
from tollgate.serve.catalog_auth.document.urls import query_items, query_of
from tollgate.serve.catalog_auth.registries.secret_shapes import (
    TEXT_LENGTH_MAX,
    find_presigning,
    is_public_key,
    secret_named,
    secret_spans,
)

WITHHELD = "withheld"
# No field of a scheme that anybody reads is deeper.
DEPTH_MAX = 64
# A JSON Web Token, looked for once for each run of its characters: from the first mark in it.
_JWT = re.compile(
    r"(?<![\w-])(?P<before>(?:(?!eyJ)[\w-])*+)eyJ[\w-]{8,}+\.[\w-]{4,}+\.[\w-]*+", re.ASCII
)
_TOKEN = re.compile(
    r"(?:AKIA|ASIA)[0-9A-Z]{12,}"  # Amazon access key
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,}"  # GitHub
    r"|xox[abeprs]-[A-Za-z0-9-]{8,}"  # Slack
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{8,}"  # Stripe
    r"|AIza[A-Za-z0-9_-]{30,}"  # Google
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
# (found by the mark behind the scheme: to begin with schemes is to read a long word many times)
_USER = re.compile(
    r"(?P<before>(?<=[a-z0-9+.-])(?<!\babfs)(?<!\babfss)(?<!\bwasb)(?<!\bwasbs)://)[^/?#@\s]*@",
    re.IGNORECASE,
)
_STORE_PASSWORD = re.compile(
    r"(?P<before>\b(?:abfss?|wasbs?)://[^/?#@\s:]*):[^/?#@\s]*@", re.IGNORECASE
)
_QUERY = re.compile(
    r"(?P<before>[?&;](?:x-(?:amz|goog)-(?:signature|credential|security-token)|awsaccesskeyid"
    r"|signature|sig|(?:[a-z_-]*[_-])?(?:token|secret|passw(?:or)?d|api[_-]?key|jwt)"
    r"|subscription-key)=)(?P<value>[^&#;\s]+)",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The text with what looks like a secret taken out, and cut where nobody looks any more."""
    text = _JWT.sub(rf"\g<before>{WITHHELD}", text[:TEXT_LENGTH_MAX])
    text = _without_known(_TOKEN.sub(WITHHELD, text))
    if "://" not in text and "?" not in text:
        return text
    text = _STORE_PASSWORD.sub(r"\g<before>@", text)
    text = _USER.sub(r"\g<before>", text)
    return _without_values(_QUERY.sub(_withheld, text))


def _without_known(text: str) -> str:
    """The text without the secrets of well-known shapes; what overlaps goes as one."""
    pieces: list[str] = []
    end = 0
    for start, stop, _ in secret_spans(text):
        if start >= end:
            pieces += (text[end:start], WITHHELD)
        end = max(end, stop)
    return "".join((*pieces, text[end:]))


def _withheld(found: re.Match[str]) -> str:
    return found[0] if is_public_key(found["value"]) else f"{found['before']}{WITHHELD}"


def _without_values(url: str) -> str:
    """The URL without what the rules about secrets would find in its query."""
    query = query_of(url)
    presigning = find_presigning(query) if query else None
    opening = presigning.secrets if presigning is not None else frozenset()
    for name, value in query_items(query):
        if value and (name.lower() in opening or secret_named(name, value)):
            url = url.replace(f"={value}", f"={WITHHELD}")
    return url


def value_without_secrets(value: object, depth: int = 0) -> object:
    """The same for every text in a decoded value, names of members included; what is nested deeper
    than DEPTH_MAX is withheld."""
    if depth == DEPTH_MAX and isinstance(value, Mapping | list):
        return WITHHELD
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {
            without_secrets(str(name)): value_without_secrets(inner, depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [value_without_secrets(inner, depth + 1) for inner in value]
    return value


def mapping_without_secrets(value: Mapping[str, object]) -> Mapping[str, object]:
    found = value_without_secrets(value)
    assert isinstance(found, dict), "an object stays one"
    return found


def scheme_without_secrets(scheme: Scheme) -> Scheme:
    return msgspec.structs.replace(
        scheme,
        name=without_secrets(scheme.name),
        value=mapping_without_secrets(scheme.value),
        type=None if scheme.type is None else without_secrets(scheme.type),
    )
