"""The fields that the extension gives to each type of scheme, flow and parameter (part B2), and the
shapes that its schemas ask of them."""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import PREFIX

# Each is required for its own types and forbidden for all others, custom ones too.
FIELDS_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "http": ("scheme",),
    "s3": (),
    "signedUrl": ("flows",),
    "oauth2": ("flows",),
    "apiKey": ("name", "in"),
    "openIdConnect": ("openIdConnectUrl",),
}
TYPED_FIELDS = ("name", "in", "scheme", "flows", "openIdConnectUrl")

# What a flow may have, by the type of its scheme.
FLOW_FIELDS: Mapping[str, frozenset[str]] = {
    "oauth2": frozenset(
        {"authorizationUrl", "tokenUrl", "refreshUrl", "scopes", "subjectTokenType"}
    ),
    "signedUrl": frozenset({"method", "authorizationApi", "parameters", "responseField"}),
}
# Of an oauth2 flow: the URLs that each predefined key has to have.
FLOW_URLS: Mapping[str, tuple[str, ...]] = {
    "authorizationCode": ("authorizationUrl", "tokenUrl"),
    "implicit": ("authorizationUrl",),
    "password": ("tokenUrl",),
    "clientCredentials": ("tokenUrl",),
    "tokenExchange": ("tokenUrl",),
}


def lost_fields(type_: str, flows: Mapping[str, object]) -> list[str]:
    """The members of `flows` that are fields of a flow, and stand where a flow should: the earliest
    texts about the extension had them so. None when no one of them is a text, for then they may be
    flows with odd keys."""
    found = [
        name
        for name, value in flows.items()
        if name in FLOW_FIELDS[type_]
        and isinstance(value, dict if name in ("scopes", "parameters") else str)
    ]
    return found if any(isinstance(flows[name], str) for name in found) else []


def is_string_list(value: object) -> bool:
    """An array of strings; it may be empty."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def are_strings(value: Mapping[str, object], *names: str) -> bool:
    """Tells whether those of these members that are there are strings."""
    return all(isinstance(value[name], str) for name in names if name in value)


def has_no_other(value: Mapping[str, object], *allowed: str) -> bool:
    """Tells whether no other member than these has the extension's prefix."""
    return all(name in allowed for name in value if name.startswith(PREFIX))
