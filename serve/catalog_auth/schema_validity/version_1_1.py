"""v1.1.0 and v1.2.0, which share all but scheme-level references and token exchange (part B2).

Their slips, kept: an alternate's own references are never looked at, but those on the map of
alternates are; `flows` and `parameters` that are no objects pass; the names of flows that need URLs
are told by patterns that end in `*`, so that the empty name needs both and `implicitimplicit` one.
"""

import re
from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import REFS, SCHEMES, Document, Kind
from tollgate.serve.catalog_auth.document.fields import (
    FIELDS_BY_TYPE,
    TYPED_FIELDS,
    are_strings,
    has_no_other,
    is_string_list,
)
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.schema_validity.metaschema import is_schema

_SCHEME_NAME = re.compile(r"^.*$")
_NEEDS_AUTHORIZATION_URL = re.compile(r"^(implicit|authorizationCode)*$")
_NEEDS_TOKEN_URL = {
    Version.V1_1_0: re.compile(r"^(password|clientCredentials|authorizationCode)*$"),
    Version.V1_2_0: re.compile(r"^(password|clientCredentials|authorizationCode|tokenExchange)*$"),
}


def needed_urls(flow_name: str, version: Version) -> tuple[str, ...]:
    """The URLs that the schema of this version (v1.1.0 or later) wants of an oauth2 flow with this
    key, slips of its patterns included."""
    needed = []
    if _NEEDS_AUTHORIZATION_URL.search(flow_name):
        needed.append("authorizationUrl")
    if _NEEDS_TOKEN_URL[version].search(flow_name):
        needed.append("tokenUrl")
    return tuple(needed)


def is_valid_since_v1_1(document: Document, version: Version) -> bool:
    """Tells whether a document passes the schema of the version it declares, v1.1.0 or later."""
    if document.kind in (Kind.OTHER, Kind.ITEM_COLLECTION):
        return False
    schemes = document.schemes_value
    if not isinstance(schemes, dict) or not all(
        _SCHEME_NAME.search(name) and _is_scheme(scheme, version)
        for name, scheme in schemes.items()
    ):
        return False
    # What was located on the way already proves the rest for nearly every document.
    is_tidy = not (document.misplaced or document.malformed or document.misshapen)
    return is_tidy or _has_its_fields(document.root, document.kind)


def _has_its_fields(root: Mapping[str, object], kind: Kind) -> bool:
    owner = root.get("properties") if kind is Kind.ITEM else root
    return (
        isinstance(owner, dict)
        and has_no_other(owner, SCHEMES)
        and _is_links(root.get("links", []))
        and (kind is Kind.CATALOG or _is_assets(root.get("assets", {})))
        and (kind is not Kind.COLLECTION or _is_assets(root.get("item_assets", {})))
    )


def _is_links(value: object) -> bool:
    return isinstance(value, list) and all(_has_references(link) for link in value)


def _is_assets(value: object) -> bool:
    return isinstance(value, dict) and all(
        _has_references(asset) and _has_references(asset.get("alternate", {}))
        for asset in value.values()
    )


def _has_references(value: object) -> bool:
    """`refs_field` of the schema."""
    return (
        isinstance(value, dict)
        and has_no_other(value, REFS)
        and (REFS not in value or is_string_list(value[REFS]))
    )


def _is_scheme(scheme: object, version: Version) -> bool:
    if not isinstance(scheme, dict) or not isinstance(scheme.get("description", ""), str):
        return False
    type_ = scheme.get("type")
    if not isinstance(type_, str):
        return False
    fields = FIELDS_BY_TYPE.get(type_, ())
    for field in TYPED_FIELDS:
        if (field in scheme) is not (field in fields):
            return False
    if version is Version.V1_2_0 and not _has_its_input(scheme, type_):
        return False
    if fields != ("flows",):
        return are_strings(scheme, *fields)
    flows = scheme["flows"]
    if not isinstance(flows, dict):
        return True
    if type_ == "oauth2":
        return all(_is_oauth2_flow(name, flow, version) for name, flow in flows.items())
    return all(_is_signed_url_flow(flow) for flow in flows.values())


def _has_its_input(scheme: Mapping[str, object], type_: str) -> bool:
    """References of the scheme itself: strings, and one at least for a token exchange."""
    flows = scheme.get("flows")
    if REFS in scheme:
        refs = scheme[REFS]
        if not is_string_list(refs):
            return False
        if refs:
            return True
    return not (type_ == "oauth2" and isinstance(flows, dict) and "tokenExchange" in flows)


def _is_oauth2_flow(name: str, flow: object, version: Version) -> bool:
    if not isinstance(flow, dict):
        return False
    scopes = flow.get("scopes")
    return (
        isinstance(scopes, dict)
        and all(isinstance(meaning, str) for meaning in scopes.values())
        and are_strings(flow, "authorizationUrl", "tokenUrl", "refreshUrl")
        and (version is not Version.V1_2_0 or are_strings(flow, "subjectTokenType"))
        and all(url in flow for url in needed_urls(name, version))
    )


def _is_signed_url_flow(flow: object) -> bool:
    if not (
        isinstance(flow, dict)
        and "method" in flow
        and "authorizationApi" in flow
        and are_strings(flow, "method", "authorizationApi", "responseField")
    ):
        return False
    parameters = flow.get("parameters")
    return not isinstance(parameters, dict) or all(map(_is_parameter, parameters.values()))


def _is_parameter(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("in"), str)
        and isinstance(value.get("required"), bool)
        and are_strings(value, "description")
        and is_schema(value.get("schema", True))
    )
