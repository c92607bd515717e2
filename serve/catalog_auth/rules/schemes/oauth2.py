"""O: what stands inside of flows of OAuth 2.0 (part C). Their names are in `flow_names`, their URLs
in `endpoints`."""

import re

from tollgate.serve.catalog_auth.document.document import REFS, Flow, Scheme
from tollgate.serve.catalog_auth.document.fields import FLOW_URLS
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.registries.oauth_flows import SUBJECT_TOKEN_TYPE, UNUSED_FIELDS
from tollgate.serve.catalog_auth.registries.token_types import (
    REGISTERED,
    URN_PREFIX,
    YIELDED,
    is_uri,
    registered_urn,
)
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN
from tollgate.serve.catalog_auth.rules.examples.items import client_credentials, protected_item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.rules.schemes.flow_names import knows_exchange

_OAUTH2 = frozenset({"oauth2"})
_TOKEN_URL = "https://login.example.com/token"
# scope-token of RFC 6749, 3.3.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def _has_only_used_fields(flow: Flow, report: FindingReport) -> None:
    needed = FLOW_URLS.get(flow.name)
    if needed is None or any(field not in flow.value for field in needed):
        return  # (what is missing is said already, and the name may be what is wrong)
    for field in UNUSED_FIELDS[flow.name]:
        if field in flow.value:
            _add_unused(flow, field, report)
    if SUBJECT_TOKEN_TYPE in flow.value and flow.name != "tokenExchange" and knows_exchange(report):
        _add_unused(flow, SUBJECT_TOKEN_TYPE, report)


def _add_unused(flow: Flow, field: str, report: FindingReport) -> None:
    path = (*flow.path, field)
    report.add(
        path,
        f"{field} means nothing in the flow {flow.name}",
        suggestions=suggestion(f"remove {field}", Operation("remove", path)),
    )


def _scopes_are_tokens(flow: Flow, report: FindingReport) -> None:
    scopes = flow.value.get("scopes")
    if not isinstance(scopes, dict):
        return
    if not scopes:
        report.add(
            (*flow.path, "scopes"),
            f"the flow {shown(flow.name)} names no scopes, so clients ask for none: which is right "
            "unless the server wants some",
            severity=Severity.INFO,
        )
    for name in scopes:
        if not _SCOPE.fullmatch(name):
            reason = "a space separates scopes" if " " in name else "it has characters of no scope"
            report.add(
                (*flow.path, "scopes", name),
                f"{shown(name)} cannot be the name of one scope: {reason}",
            )


def _refresh_differs(flow: Flow, report: FindingReport) -> None:
    refresh = flow.value.get("refreshUrl")
    if isinstance(refresh, str) and refresh == flow.value.get("tokenUrl"):
        path = (*flow.path, "refreshUrl")
        report.add(
            path,
            "refreshUrl is the tokenUrl again: without it, clients refresh there anyway",
            suggestions=suggestion("remove refreshUrl", Operation("remove", path)),
        )


def _subject_token_is_clear(flow: Flow, report: FindingReport) -> None:
    value = flow.value.get(SUBJECT_TOKEN_TYPE)
    if flow.name != "tokenExchange" or not isinstance(value, str) or not knows_exchange(report):
        return
    path = (*flow.path, SUBJECT_TOKEN_TYPE)
    if not is_uri(value):
        urn = registered_urn(value)
        suggestions = suggestion(f"write {urn}", Operation("replace", path, urn)) if urn else ()
        meant = f"; {urn} is meant" if urn else ""
        report.add(path, f"{shown(value)} is not a URN{meant}", None, Severity.ERROR, suggestions)
        return
    if value.startswith(URN_PREFIX) and value.removeprefix(URN_PREFIX) not in REGISTERED:
        report.add(path, f"{shown(value)} is not a registered token type")
    yielded = _yielded(flow.scheme, report)
    if len(set(yielded.values())) > 1:
        names = ", ".join(shown(name) for name in yielded)
        report.add(
            path,
            f"the inputs {names} yield tokens of different kinds, and {shown(value)} is one kind: "
            f"leave it out, or make one scheme for each",
        )


def _yielded(scheme: Scheme, report: FindingReport) -> dict[str, str]:
    """The kind of token that each scheme yields that this one can take its input from."""
    refs = scheme.value.get(REFS)
    found = {}
    for ref in refs if isinstance(refs, list) else ():
        source = report.document.scheme(ref) if isinstance(ref, str) else None
        if source is not None and source.type in YIELDED:
            found[source.name] = YIELDED[source.type]
    return found


RULES = (
    CatalogRule(
        id="O05",
        name="field-irrelevant-for-flow",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The flow has a field that this flow has no use for.",
        why="Readers take it for something that they have to do.",
        source="RFC 6749, 4.1 to 4.4 and RFC 8693: what each flow calls.",
        repair="Remove the field, or give the flow its right name.",
        check=_has_only_used_fields,
        example=protected_item(
            client_credentials(authorizationUrl="https://login.example.com/authorize")
        ),
    ),
    CatalogRule(
        id="O06",
        name="oauth-scope-malformed",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The name of a scope has characters that no scope can have, or there is no scope.",
        why="Scopes are sent in one list, separated by spaces.",
        source="RFC 6749, 3.3: scope-token.",
        repair="Write one entry for each scope, named as the server does; none if it wants none.",
        check=_scopes_are_tokens,
        example=protected_item(client_credentials(scopes={"read write": "Everything"})),
    ),
    CatalogRule(
        id="O13",
        name="refresh-url-redundant",
        severity=Severity.INFO,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="`refreshUrl` is the same as `tokenUrl`.",
        why="Tokens are refreshed at the token endpoint anyway.",
        source="RFC 6749, 6.",
        repair="Remove it.",
        check=_refresh_differs,
        example=protected_item(client_credentials(refreshUrl=_TOKEN_URL)),
    ),
    CatalogRule(
        id="O14",
        name="subject-token-type-unclear",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        since=Version.V1_2_0,
        says="`subjectTokenType` is no URN, or one for inputs of several kinds.",
        why="It is sent as it is, and a server knows token types by their URNs.",
        source="RFC 8693, 3; catalog-auth.md, B2 on token exchange.",
        repair="Write the URN of the token that is handed in, or leave the field out.",
        check=_subject_token_is_clear,
        example=protected_item(
            {
                "type": "oauth2",
                "flows": {
                    "tokenExchange": {
                        "tokenUrl": _TOKEN_URL,
                        "scopes": {"read": "Read"},
                        SUBJECT_TOKEN_TYPE: "id_token",
                    }
                },
                REFS: ["login"],
            },
            schemes={"login": LOGIN},
        ),
    ),
)
