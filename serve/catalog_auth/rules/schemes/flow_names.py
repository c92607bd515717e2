"""O: the names of flows: which there are, and where they belong (part C)."""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import Flow, Scheme
from tollgate.serve.catalog_auth.document.fields import FLOW_FIELDS, FLOW_URLS, lost_fields
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.registries.oauth_flows import misnamed
from tollgate.serve.catalog_auth.rules.examples.items import oauth2, protected_item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, Suggestion, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject

_OAUTH2 = frozenset({"oauth2"})
_WITH_FLOWS = frozenset({"oauth2", "signedUrl"})
_FIELDS = FLOW_FIELDS["oauth2"]
_TOKEN_URL = "https://login.example.com/token"
_DEPRECATED = {
    "implicit": "tokens end up in the browser's history and in logs (RFC 9700, 2.1.2: SHOULD NOT)",
    "password": "it hands the user's password to the client (RFC 9700, 2.4: MUST NOT)",
}


def knows_exchange(report: FindingReport) -> bool:
    """Tells whether the document's version has token exchange (an older one is told so by E08)."""
    version = report.document.version
    return version is None or version.rank >= Version.V1_2_0.rank


def _is_not_deprecated(flow: Flow, report: FindingReport) -> None:
    if reason := _DEPRECATED.get(flow.name):
        report.add(flow.path, f"the flow {flow.name} is deprecated: {reason}")


def _is_predefined(flow: Flow, report: FindingReport) -> None:
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


def _fields_are_in_a_flow(scheme: Scheme, report: FindingReport) -> None:
    flows = scheme.value.get("flows")
    if not isinstance(flows, dict):
        return
    found = lost_fields(scheme.type or "", flows)
    if not found:
        return
    path = (*scheme.path, "flows")
    name = _fitting_flow(scheme.type, flows)
    suggestions: tuple[Suggestion, ...] = ()
    if name not in flows:
        suggestions = suggestion(
            f"put them into a flow {name}",
            Operation("add", (*path, name), {}),
            *(Operation("move", (*path, name, field), None, (*path, field)) for field in found),
        )
    report.add(
        path,
        f"{', '.join(found)} stand directly under flows: they belong into a flow, such as {name}",
        suggestions=suggestions,
    )


def _fitting_flow(type_: str | None, flows: Mapping[str, object]) -> str:
    if type_ == "signedUrl":
        return "sign"
    if "authorizationUrl" not in flows:
        return "clientCredentials"
    return "authorizationCode" if "tokenUrl" in flows else "implicit"


def _is_named_well(flow: Flow, report: FindingReport) -> None:
    wrong = None if flow.name in _FIELDS else misnamed(flow.name)
    if wrong is None:
        return
    meant = wrong.meant
    if meant == "tokenExchange" and not knows_exchange(report):
        meant = None
    suggestions: tuple[Suggestion, ...] = ()
    if meant is not None:
        target = (*flow.path[:-1], meant)
        # (without the URLs that the right name needs, something else may be meant after all)
        is_whole = all(field in flow.value for field in FLOW_URLS[meant])
        if is_whole and meant not in _flows(flow.scheme):
            suggestions = suggestion(
                f"rename the flow {meant}", Operation("move", target, None, flow.path)
            )
    hint = f": {meant} is meant" if meant else ", and says of none how to run it"
    report.add(
        flow.path,
        f"{shown(flow.name)} is not the name of a flow{hint}",
        severity=Severity.ERROR if wrong.is_grave else None,
        suggestions=suggestions,
    )


def _flows(scheme: Scheme) -> Mapping[str, object]:
    flows = scheme.value.get("flows")
    return flows if isinstance(flows, dict) else {}


def _has_flows(scheme: Scheme, report: FindingReport) -> None:
    if scheme.value.get("flows") == {}:
        report.add((*scheme.path, "flows"), "there is no flow: no way to get access")


RULES = (
    CatalogRule(
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
        example=protected_item(
            oauth2(password={"tokenUrl": _TOKEN_URL, "scopes": {"read": "Read"}})
        ),
    ),
    CatalogRule(
        id="O04",
        name="oauth-flow-not-predefined",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The flow is not one of the predefined ones.",
        why="Clients can run a flow only if they know it.",
        source=(
            "catalog-auth.md, B2: the predefined flows. RFC 6749, 4.5: an extension "
            "grant is named by a URI."
        ),
        repair="Offer a predefined flow as well, or name an extension grant by its URI.",
        check=_is_predefined,
        example=protected_item(
            oauth2(deviceCode={"tokenUrl": _TOKEN_URL, "scopes": {"read": "Read"}})
        ),
    ),
    CatalogRule(
        id="O10",
        name="flow-fields-directly-under-flows",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_WITH_FLOWS,
        says="The fields of a flow stand directly under `flows`, where flows are.",
        why="Clients look for flows by name and find texts. (Old examples had it like this.)",
        source=(
            "Authentication extension, Authentication Scheme Object: `flows` is a map "
            "of names to flow objects."
        ),
        repair="Put the fields into an object under the name of the flow.",
        check=_fields_are_in_a_flow,
        example=protected_item(oauth2(tokenUrl=_TOKEN_URL, scopes={"read": "Read"})),
    ),
    CatalogRule(
        id="O11",
        name="flow-key-typo",
        severity=Severity.WARNING,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="The name of the flow is nearly that of a predefined one, or none at all.",
        why="Names are compared to the letter: nobody runs it, and what it needs is not checked.",
        source="catalog-auth.md, B2: the predefined flows.",
        repair="Write the predefined name.",
        check=_is_named_well,
        example=protected_item(
            oauth2(client_credentials={"tokenUrl": _TOKEN_URL, "scopes": {"read": "Read"}})
        ),
    ),
    CatalogRule(
        id="O12",
        name="flows-empty",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_WITH_FLOWS,
        says="There is no flow in `flows`.",
        why="The scheme promises a way to get access and names none.",
        source=(
            "Authentication extension, Authentication Scheme Object: `flows` is "
            "required, the ways a client gets a token."
        ),
        repair="Describe at least one flow.",
        check=_has_flows,
        example=protected_item(oauth2()),
    ),
)
