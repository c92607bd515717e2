"""The flows of OAuth 2.0 as this extension names them, and what people write instead (B2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tollgate.serve.catalog_auth.document.fields import FLOW_URLS
from tollgate.serve.catalog_auth.document.near_misses import nearest

# The predefined flows. Of the URLs and fields of others, these have no use for:
UNUSED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "authorizationCode": (),
    "implicit": ("tokenUrl", "refreshUrl"),
    "password": ("authorizationUrl",),
    "clientCredentials": ("authorizationUrl",),
    "tokenExchange": ("authorizationUrl",),
}
SUBJECT_TOKEN_TYPE = "subjectTokenType"
# The fields of a flow that hold URLs.
OAUTH_URLS = ("authorizationUrl", "tokenUrl", "refreshUrl")

# Names from OpenAPI 2, from `grant_type`, and shorter ones.
_ALIASES = {
    "accesscode": "authorizationCode",
    "authcode": "authorizationCode",
    "code": "authorizationCode",
    "application": "clientCredentials",
    "clientcredential": "clientCredentials",
    "resourceownerpassword": "password",
    "ropc": "password",
}
_BY_PLAIN_NAME = {name.lower(): name for name in FLOW_URLS} | _ALIASES
_REPEATED = re.compile(f"(?:{'|'.join(FLOW_URLS)}){{2,}}")
_NO_LETTERS = re.compile(r"[\W_]+")
# Longer names are nobody's mistake for one of these.
NAME_LENGTH_MAX = 64


@dataclass(frozen=True, slots=True)
class Misnamed:
    """`meant` is the flow's right name, if one can be told. `is_grave`: the official schema reads
    the name in a way of its own, or it is none at all."""

    meant: str | None
    is_grave: bool


def misnamed(name: str) -> Misnamed | None:
    """Tells what is wrong with the name of a flow; None for a predefined one and for one's own."""
    if name in FLOW_URLS or len(name) > NAME_LENGTH_MAX:
        return None
    plain = _NO_LETTERS.sub("", name).lower()
    if not plain:
        return Misnamed(None, is_grave=True)
    if _REPEATED.fullmatch(name):
        first = next(known for known in FLOW_URLS if name.startswith(known))
        is_same = not name.replace(first, "")
        return Misnamed(first if is_same else None, is_grave=True)
    meant = _BY_PLAIN_NAME.get(plain) or _BY_PLAIN_NAME.get(plain.removesuffix("flow"))
    if meant is None:
        meant = nearest(plain, (known.lower() for known in FLOW_URLS))
        meant = None if meant is None else _BY_PLAIN_NAME[meant]
    return None if meant is None else Misnamed(meant, is_grave=name.strip() == meant)
