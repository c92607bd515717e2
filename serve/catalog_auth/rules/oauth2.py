"""O: flows of OAuth 2.0 (part C). Their URLs are in `endpoints`."""

import re
from collections.abc import Mapping

from serve.catalog_auth.document import REFS, Flow, Scheme
from serve.catalog_auth.fields import FLOW_FIELDS, FLOW_URLS, lost_fields
from serve.catalog_auth.findings import Fix, Operation, Severity, shown
from serve.catalog_auth.registries.oauth_flows import (
    SUBJECT_TOKEN_TYPE,
    UNUSED_FIELDS,
    misnamed,
)
from serve.catalog_auth.registries.token_types import (
    REGISTERED,
    URN_PREFIX,
    YIELDED,
    is_uri,
    registered_urn,
)
from serve.catalog_auth.rule import Profile, Report, Rule, Subject
from serve.catalog_auth.rules.example_documents import LOGIN
from serve.catalog_auth.rules.protected_items import client_credentials, item, oauth2
from serve.catalog_auth.versions import Version

_OAUTH2 = frozenset({"oauth2"})
_FIELDS = FLOW_FIELDS["oauth2"]
_WITH_FLOWS = frozenset({"oauth2", "signedUrl"})
_TOKEN_URL = "https://login.example.com/token"
# scope-token of RFC 6749, 3.3.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_DEPRECATED = {
    "implicit": "tokens end up in the browser's history and in logs (RFC 9700, 2.1.2: SHOULD NOT)",
    "password": "it hands the user's password to the client (RFC 9700, 2.4: MUST NOT)",
}


def _is_not_deprecated(flow: Flow, report: Report) -> None:
    if reason := _DEPRECATED.get(flow.name):
        report.add(flow.path, f"the flow {flow.name} is deprecated: {reason}")


def _is_predefined(flow: Flow, report: Report) -> None:
    name = flow.name
    if name in FLOW_URLS or name in _FIELDS or misnamed(name):
        return
    is_extension_grant = ":" in name  # RFC 6749, 4.5: such a grant is named by a URI
    report.add(
        flow.path,
        f"{shown(name)} is not a predefined flow: clients find out how to run it elsewhere, or not "
        f"at all",
        severity=Severity.INFO if is_extension_grant else None,
    )


def _has_only_used_fields(flow: Flow, report: Report) -> None:
    needed = FLOW_URLS.get(flow.name)
    if needed is None or any(field not in flow.value for field in needed):
        return  # (what is missing is said already, and the name may be what is wrong)
    for field in UNUSED_FIELDS[flow.name]:
        if field in flow.value:
            _add_unused(flow, field, report)
    if (
        SUBJECT_TOKEN_TYPE in flow.value
        and flow.name != "tokenExchange"
        and _knows_exchange(report)
    ):
        _add_unused(flow, SUBJECT_TOKEN_TYPE, report)


def _add_unused(flow: Flow, field: str, report: Report) -> None:
    path = (*flow.path, field)
    report.add(
        path,
        f"{field} means nothing in the flow {flow.name}",
        (Operation("remove", path),),
    )


def _knows_exchange(report: Report) -> bool:
    """Whether the document's version has token exchange (an older one is told so by E08)."""
    version = report.document.version
    return version is None or version.rank >= Version.V1_2_0.rank


def _scopes_are_tokens(flow: Flow, report: Report) -> None:
    scopes = flow.value.get("scopes")
    if not isinstance(scopes, dict):
        return
    if not scopes:
        report.add(
            (*flow.path, "scopes"),
            f"the flow {shown(flow.name)} names no scopes: clients ask for whatever is usual",
            severity=Severity.INFO,
        )
    for name in scopes:
        if not _SCOPE.fullmatch(name):
            reason = "a space separates scopes" if " " in name else "it has characters of no scope"
            report.add(
                (*flow.path, "scopes", name),
                f"{shown(name)} cannot be the name of one scope: {reason}",
            )


def _fields_are_in_a_flow(scheme: Scheme, report: Report) -> None:
    flows = scheme.value.get("flows")
    if not isinstance(flows, dict):
        return
    found = lost_fields(scheme.type or "", flows)
    if not found:
        return
    path = (*scheme.path, "flows")
    name = _fitting_flow(scheme.type, flows)
    fix: Fix | None = None
    if name not in flows:
        fix = (
            Operation("add", (*path, name), {}),
            *(Operation("move", (*path, name, field), None, (*path, field)) for field in found),
        )
    report.add(
        path,
        f"{', '.join(found)} stand directly under flows: they belong into a flow, such as {name}",
        fix,
    )


def _fitting_flow(type_: str | None, flows: Mapping[str, object]) -> str:
    if type_ == "signedUrl":
        return "sign"
    if "authorizationUrl" not in flows:
        return "clientCredentials"
    return "authorizationCode" if "tokenUrl" in flows else "implicit"


def _is_named_well(flow: Flow, report: Report) -> None:
    wrong = None if flow.name in _FIELDS else misnamed(flow.name)
    if wrong is None:
        return
    meant = wrong.meant
    if meant == "tokenExchange" and not _knows_exchange(report):
        meant = None
    fix: Fix | None = None
    if meant is not None:
        target = (*flow.path[:-1], meant)
        # (without the URLs that the right name needs, something else may be meant after all)
        is_whole = all(field in flow.value for field in FLOW_URLS[meant])
        if is_whole and meant not in _flows(flow.scheme):
            fix = (Operation("move", target, None, flow.path),)
    hint = f": {meant} is meant" if meant else ", and says of none how to run it"
    report.add(
        flow.path,
        f"{shown(flow.name)} is not the name of a flow{hint}",
        fix,
        Severity.ERROR if wrong.is_grave else None,
    )


def _has_flows(scheme: Scheme, report: Report) -> None:
    if scheme.value.get("flows") == {}:
        report.add((*scheme.path, "flows"), "there is no flow: no way to get access")


def _refresh_differs(flow: Flow, report: Report) -> None:
    refresh = flow.value.get("refreshUrl")
    if isinstance(refresh, str) and refresh == flow.value.get("tokenUrl"):
        path = (*flow.path, "refreshUrl")
        report.add(
            path,
            "refreshUrl is the tokenUrl again: without it, clients refresh there anyway",
            (Operation("remove", path),),
        )


def _subject_token_is_clear(flow: Flow, report: Report) -> None:
    value = flow.value.get(SUBJECT_TOKEN_TYPE)
    if flow.name != "tokenExchange" or not isinstance(value, str) or not _knows_exchange(report):
        return
    path = (*flow.path, SUBJECT_TOKEN_TYPE)
    if not is_uri(value):
        urn = registered_urn(value)
        fix = (Operation("replace", path, urn),) if urn else None
        meant = f"; {urn} is meant" if urn else ""
        report.add(path, f"{shown(value)} is not a URN{meant}", fix, Severity.ERROR)
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


def _yielded(scheme: Scheme, report: Report) -> dict[str, str]:
    """What kind of token each scheme yields that this one can take its input from."""
    refs = scheme.value.get(REFS)
    found = {}
    for ref in refs if isinstance(refs, list) else ():
        source = report.document.scheme(ref) if isinstance(ref, str) else None
        if source is not None and source.type in YIELDED:
            found[source.name] = YIELDED[source.type]
    return found


def _flows(scheme: Scheme) -> Mapping[str, object]:
    flows = scheme.value.get("flows")
    return flows if isinstance(flows, dict) else {}


RULES = (
    Rule(
        id="O01",
        name="oauth-flow-deprecated",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        profiles={Profile.STRICT: Severity.ERROR},
        says="The flow is one that OAuth's own security rules have given up.",
        why="Its tokens or passwords get into wrong hands; OAuth 2.1 has neither flow.",
        source="RFC 9700, 2.1.2 (implicit) and 2.4 (password).",
        repair="Offer authorizationCode (with PKCE) for people, clientCredentials for machines.",
        check=_is_not_deprecated,
        example=item(oauth2(password={"tokenUrl": _TOKEN_URL, "scopes": {"read": "Read"}})),
    ),
    Rule(
        id="O04",
        name="oauth-flow-not-predefined",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The flow is not one of the predefined ones.",
        why="Clients can run a flow only if they know it.",
        source="Requirements: the predefined keys of `flows` for oauth2. RFC 6749, 4.5: an "
        "extension grant is named by a URI.",
        repair="Offer a predefined flow as well, or name an extension grant by its URI.",
        check=_is_predefined,
        example=item(oauth2(deviceCode={"tokenUrl": _TOKEN_URL, "scopes": {"read": "Read"}})),
    ),
    Rule(
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
        example=item(client_credentials(authorizationUrl="https://login.example.com/authorize")),
    ),
    Rule(
        id="O06",
        name="oauth-scope-malformed",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The name of a scope has characters that no scope can have, or there is no scope.",
        why="Scopes are sent in one list, separated by spaces.",
        source="RFC 6749, 3.3: scope-token.",
        repair="Write one entry for each scope, named as the server does.",
        check=_scopes_are_tokens,
        example=item(client_credentials(scopes={"read write": "Everything"})),
    ),
    Rule(
        id="O10",
        name="flow-fields-directly-under-flows",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_WITH_FLOWS,
        says="The fields of a flow stand directly under `flows`, where flows are.",
        why="Clients look for flows by name and find texts. (Old examples had it like this.)",
        source="Requirements: `flows` is a map of names to flow objects.",
        repair="Put the fields into an object under the name of the flow.",
        check=_fields_are_in_a_flow,
        example=item(oauth2(tokenUrl=_TOKEN_URL, scopes={"read": "Read"})),
    ),
    Rule(
        id="O11",
        name="flow-key-typo",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The name of the flow is nearly that of a predefined one, or none at all.",
        why="Names are compared to the letter: nobody runs it, and what it needs is not checked.",
        source="Requirements: the predefined keys of `flows` for oauth2.",
        repair="Write the predefined name.",
        check=_is_named_well,
        example=item(
            oauth2(client_credentials={"tokenUrl": _TOKEN_URL, "scopes": {"read": "Read"}})
        ),
    ),
    Rule(
        id="O12",
        name="flows-empty",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_WITH_FLOWS,
        says="There is no flow in `flows`.",
        why="The scheme promises a way to get access and names none.",
        source="Requirements: `flows` is required, the ways a client obtains an access token.",
        repair="Describe at least one flow.",
        check=_has_flows,
        example=item(oauth2()),
    ),
    Rule(
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
        example=item(client_credentials(refreshUrl=_TOKEN_URL)),
    ),
    Rule(
        id="O14",
        name="subject-token-type-unclear",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        since=Version.V1_2_0,
        says="`subjectTokenType` is no URN, or one for inputs of several kinds.",
        why="It is sent as it is, and a server knows token types by their URNs.",
        source="RFC 8693, 3; specification B2 on token exchange.",
        repair="Write the URN of the token that is handed in, or leave the field out.",
        check=_subject_token_is_clear,
        example=item(
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
