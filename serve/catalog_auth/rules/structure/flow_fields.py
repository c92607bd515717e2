"""S: what flows and parameters have to look like (part B2)."""

import jsonschema_rs

from tollgate.serve.catalog_auth.document.document import Flow, Parameter, Scheme
from tollgate.serve.catalog_auth.document.fields import FLOW_URLS, lost_fields
from tollgate.serve.catalog_auth.document.paths import Path, forward_path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import item
from tollgate.serve.catalog_auth.rules.findings import Fix, Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject
from tollgate.serve.catalog_auth.schema_validity.metaschema import inner_schemas, offences
from tollgate.serve.catalog_auth.schema_validity.version_1_1 import needed_urls

_OAUTH2 = frozenset({"oauth2"})
_SIGNED_URL = frozenset({"signedUrl"})
_BOTH = _OAUTH2 | _SIGNED_URL
# Of one schema, so many offences are told.
OFFENCES_MAX = 20
_CUT = f"of the mistakes in a parameter's schema, no more than {OFFENCES_MAX} are told"
# OpenAPI's own words, which draft-07 does not have: they are read by nobody.
_OPENAPI_WORDS = ("nullable", "example", "discriminator", "xml", "externalDocs", "deprecated")

_is_pattern = jsonschema_rs.Draft7Validator({"format": "regex"}, validate_formats=True).is_valid


def _explained_elsewhere(scheme: Scheme, report: FindingReport) -> list[str]:
    """Fields of a flow in the place of a flow: they have a rule of their own (O10), which says how
    to repair it. The official schema sees flows that are none."""
    flows = scheme.value.get("flows")
    if report.profile is Profile.SCHEMA or not isinstance(flows, dict):
        return []
    return lost_fields(scheme.type or "", flows)


def _flows_are_objects(scheme: Scheme, report: FindingReport) -> None:
    flows = scheme.value.get("flows")
    if not isinstance(flows, dict):
        return
    wrong = [name for name, flow in flows.items() if not isinstance(flow, dict)]
    elsewhere = _explained_elsewhere(scheme, report) if wrong else []
    for name in wrong:
        if name not in elsewhere:
            report.add(
                (*scheme.path, "flows", name),
                f"the flow {shown(name)} is {shown(flows[name])}: it has to be an object",
            )


def _urls_are_there(flow: Flow, report: FindingReport) -> None:
    version = report.document.version
    needed = FLOW_URLS.get(flow.name, ())
    if flow.name == "tokenExchange" and version in (Version.V1_0_0, Version.V1_1_0):
        needed = ()
    slip = ""
    if not needed and version is not None and version is not Version.V1_0_0:
        needed = needed_urls(flow.name, version)
        slip = " (the official schema takes this key for a predefined one)"
    for field in needed:
        if field not in flow.value:
            report.add((*flow.path, field), f"the flow {shown(flow.name)} has no {field}{slip}")


def _scopes_are_there(flow: Flow, report: FindingReport) -> None:
    if flow.name == "scopes" and "scopes" in _explained_elsewhere(flow.scheme, report):
        return
    path = (*flow.path, "scopes")
    if "scopes" not in flow.value:
        report.add(
            path,
            f"the flow {shown(flow.name)} has no scopes: they have to be there, as {{}} where "
            "clients need none",
            # (that they need none is a statement, and who left them out has not made it)
            suggestions=suggestion(
                'write "scopes": {}, if clients need none', Operation("add", path, {})
            ),
        )
        return
    scopes = flow.value["scopes"]
    if not isinstance(scopes, dict):
        names = scopes if isinstance(scopes, list) else []
        fix: Fix | None = None
        if isinstance(scopes, list) and all(isinstance(name, str) for name in names):
            fix = (Operation("replace", path, dict.fromkeys(names, "")),)
        report.add(
            path,
            "scopes has to be an object, the meaning of each scope under its name, not "
            f"{shown(scopes)}",
            fix,
        )
        return
    for name, meaning in scopes.items():
        if not isinstance(meaning, str):
            report.add(
                (*path, name),
                f"the meaning of the scope {shown(name)} has to be a text, not {shown(meaning)}",
            )


def _signed_flow_is_complete(flow: Flow, report: FindingReport) -> None:
    for field in ("method", "authorizationApi"):
        if field not in flow.value:
            report.add((*flow.path, field), f"the flow {shown(flow.name)} has no {field}")


def _parameters_are_formed(flow: Flow, report: FindingReport) -> None:
    if "parameters" not in flow.value:
        return
    parameters = flow.value["parameters"]
    path = (*flow.path, "parameters")
    if not isinstance(parameters, dict):
        report.add(
            path,
            "parameters has to be an object, each parameter under its name, not "
            f"{shown(parameters)}",
        )
        return
    for name, value in parameters.items():
        if isinstance(value, dict):
            _parameter_is_formed((*path, name), name, value, report)
        else:
            report.add(
                (*path, name),
                f"the parameter {shown(name)} is {shown(value)}: it has to be an object with in "
                "and required",
            )


def _parameter_is_formed(
    path: Path, name: str, value: dict[str, object], report: FindingReport
) -> None:
    parameter = f"the parameter {shown(name)}"
    if "in" not in value:
        report.add((*path, "in"), f"{parameter} has no in: query, header or body")
    elif not isinstance(value["in"], str):
        report.add((*path, "in"), f"in of {parameter} has to be a text, not {shown(value['in'])}")
    required = value.get("required")
    here = (*path, "required")
    if "required" not in value:
        report.add(here, f"{parameter} does not say whether it is required")
    elif not isinstance(required, bool):
        fix: Fix | None = None
        if isinstance(required, str) and required.lower() in ("true", "false"):
            fix = (Operation("replace", here, required.lower() == "true"),)
        report.add(
            here, f"required of {parameter} has to be true or false, not {shown(required)}", fix
        )
    if "description" in value and not isinstance(value["description"], str):
        report.add(
            (*path, "description"),
            f"the description of {parameter} has to be a text, not {shown(value['description'])}",
        )


def _schema_is_one(parameter: Parameter, report: FindingReport) -> None:
    if "schema" not in parameter.value:
        return
    schema = parameter.value["schema"]
    path = (*parameter.path, "schema")
    if isinstance(schema, bool):
        report.add(
            path,
            f"the schema is {shown(schema)}: draft-07 takes that, the extension asks for an object",
            severity=Severity.WARNING,
            suggestions=suggestion(
                "write {}, which takes all values too", Operation("replace", path, {})
            )
            if schema
            else (),
        )
        return
    count = 0
    for inner, message in offences(schema):
        report.add((*path, *inner), message)
        count += 1
        if count == OFFENCES_MAX:
            report.leave_out(_CUT)
            return
    if count == 0:
        _words_can_be_used(path, schema, report)


def _words_can_be_used(path: Path, schema: object, report: FindingReport) -> None:
    """Reports what the metaschema lets pass and no client can work with."""
    count = 0
    for reverse_path, value in inner_schemas(schema):
        patterns: list[tuple[Path, object]] = []
        if "pattern" in value:
            patterns.append((("pattern",), value["pattern"]))
        properties = value.get("patternProperties")
        if isinstance(properties, dict):
            patterns += [(("patternProperties", name), name) for name in properties]
        for step, pattern in patterns:
            if not _is_pattern(pattern):
                report.add(
                    (*path, *forward_path(reverse_path), *step),
                    f"{shown(pattern)} is no regular expression (ECMA 262)",
                )
                count += 1
        for word in _OPENAPI_WORDS:
            if word in value:
                report.add(
                    (*path, *forward_path(reverse_path), word),
                    f"{word} is a word of OpenAPI: JSON Schema draft-07 does not know it",
                    severity=Severity.WARNING,
                )
                count += 1
        if count >= OFFENCES_MAX:
            report.leave_out(_CUT)
            return


def _example(parameter: dict[str, object]) -> dict[str, object]:
    flow = {
        "method": "GET",
        "authorizationApi": "https://sign.example.com/sign",
        "parameters": {"href": parameter},
        "responseField": "href",
    }
    return item({"signed": {"type": "signedUrl", "flows": {"sign": flow}}})


_TOKEN_URL = "https://login.example.com/token"

RULES = (
    CatalogRule(
        id="S09",
        name="flow-not-object",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_BOTH,
        says="A flow is no object.",
        why="It says nothing of how access is obtained.",
        source=(
            "Authentication extension, Authentication Scheme Object: `flows` is a map "
            "of names to flow objects."
        ),
        repair="Write an object with the fields of a flow.",
        check=_flows_are_objects,
        example=item({"login": {"type": "oauth2", "flows": {"clientCredentials": _TOKEN_URL}}}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S10",
        name="flow-url-missing",
        severity=Severity.ERROR,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="A predefined OAuth 2.0 flow lacks a URL.",
        why="The client has nowhere to send the user, or nowhere to get the token.",
        source="Authentication extension, OAuth2 Flow Object; RFC 6749, 4.1 to 4.4.",
        repair="Add authorizationUrl (authorizationCode, implicit) or tokenUrl (authorizationCode, "
        "password, clientCredentials, tokenExchange).",
        check=_urls_are_there,
        example=item(
            {"login": {"type": "oauth2", "flows": {"clientCredentials": {"scopes": {"read": ""}}}}}
        ),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S11",
        name="scopes-missing-or-not-string-map",
        severity=Severity.ERROR,
        subject=Subject.FLOW,
        types=_OAUTH2,
        says="A flow has no scopes, or they are no map of texts.",
        why="The client does not know what to ask for.",
        source=(
            "Authentication extension, OAuth2 Flow Object: scopes is required and may be empty."
        ),
        repair='Write an object of names and meanings; "scopes": {} where clients need none.',
        check=_scopes_are_there,
        example=item(
            {"login": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": _TOKEN_URL}}}}
        ),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S12",
        name="signed-flow-incomplete",
        severity=Severity.ERROR,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED_URL,
        says="A signed-URL flow lacks its method or its authorizationApi.",
        why="The client cannot make the request.",
        source="Authentication extension, Signed URL Object.",
        repair="Add the field.",
        check=_signed_flow_is_complete,
        example=item({"signed": {"type": "signedUrl", "flows": {"sign": {"method": "GET"}}}}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S13",
        name="parameter-malformed",
        severity=Severity.ERROR,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED_URL,
        says="A parameter lacks in or required, or one of them has the wrong type.",
        why="The client does not know where to put it, or whether it has to.",
        source="Authentication extension, Parameter Object.",
        repair="Write in (query, header or body) and required (true or false).",
        check=_parameters_are_formed,
        example=_example({"in": "query"}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S14",
        name="parameter-schema-invalid",
        severity=Severity.ERROR,
        subject=Subject.PARAMETER,
        types=_SIGNED_URL,
        says="The schema of a parameter is no JSON Schema of draft-07, has a pattern that is no "
        "regular expression; or, as a warning, is a boolean or uses OpenAPI's own words.",
        why="Clients that check what they send, or make a form of it, fail.",
        source="Authentication extension, Parameter Object; JSON Schema draft-07, metaschema.",
        repair="Write a schema that the metaschema of draft-07 takes.",
        check=_schema_is_one,
        example=_example({"in": "query", "required": True, "schema": {"type": "url"}}),
        since=Version.V1_1_0,
    ),
)
