"""G: flows of signed URLs: the call that gives one (part C). Parameters are in
`signed_url_parameters`."""

from tollgate.serve.catalog_auth.document.document import (
    REFS,
    AccessGroup,
    Flow,
    Scheme,
    flows_of,
    parameters_of,
)
from tollgate.serve.catalog_auth.document.fields import FLOW_FIELDS
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.urls import http_url, shown_url
from tollgate.serve.catalog_auth.registries.secret_shapes import is_secret_name
from tollgate.serve.catalog_auth.rules.examples.items import (
    body_parameter,
    protected_item,
    query_parameter,
    signed,
)
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject
from tollgate.serve.catalog_auth.rules.schemes.endpoints import is_plaintext
from tollgate.serve.catalog_auth.rules.schemes.object_storage import why_no_object
from tollgate.serve.net.public_addresses import exposure_of

_SIGNED = frozenset({"signedUrl"})
# Methods that a client can be told to use (RFC 9110, 9.3, and RFC 5789).
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Where clients look for the URL when nobody says where it is (B2).
RESPONSE_FIELDS = ("signed_url", "href", "url", "signedUrl")
_CREDENTIAL_NAMES = frozenset({"authorization", "cookie", "ocp-apim-subscription-key"})


def _method_is_known(flow: Flow, report: FindingReport) -> None:
    method = flow.value.get("method")
    if not isinstance(method, str) or method in METHODS:
        return
    path = (*flow.path, "method")
    usual = method.strip().upper()
    if usual not in METHODS:
        report.add(path, f"{shown(method)} is not an HTTP method that clients use")
        return
    report.add(
        path,
        f"{shown(method)} is not {usual}: methods are case-sensitive",
        (Operation("replace", path, usual),),
        Severity.WARNING,
    )


def _response_is_located(flow: Flow, report: FindingReport) -> None:
    if flow.value.get("responseField", "") != "":
        return
    # A member of the author's own may well be what says it.
    has_own_members = not flow.value.keys() <= FLOW_FIELDS["signedUrl"]
    report.add(
        (*flow.path, "responseField") if "responseField" in flow.value else flow.path,
        f"nothing says which field of the answer has the signed URL: clients try "
        f"{', '.join(RESPONSE_FIELDS)}",
        severity=Severity.INFO if has_own_members else None,
    )


def _call_is_encrypted(flow: Flow, report: FindingReport) -> None:
    api = flow.value.get("authorizationApi")
    url = http_url(api) if isinstance(api, str) else None
    if url is not None and is_plaintext(url):
        report.add(
            (*flow.path, "authorizationApi"),
            f"{shown_url(url.geturl())} is not encrypted: whoever reads the answer has the URL",
        )


def _host_is_public(flow: Flow, report: FindingReport) -> None:
    api = flow.value.get("authorizationApi")
    url = http_url(api) if isinstance(api, str) else None
    exposure = exposure_of(url.hostname or "") if url is not None else None
    if url is not None and exposure is not None:
        report.add(
            (*flow.path, "authorizationApi"),
            f"{shown_url(url.geturl())} is {exposure.value}: readers cannot call it",
        )


def _href_is_an_object(access: AccessGroup, report: FindingReport) -> None:
    if access.references is None:
        return
    signers = [scheme for scheme in access.references.schemes if _wants_bucket_and_key(scheme)]
    if not signers:
        return
    for holder in access.holders:
        reason = why_no_object(holder, report)
        if reason is not None:
            report.add(
                (*holder.path, "href"),
                f"{shown(signers[0].name)} asks for bucket and key, which cannot be told from "
                f"{shown_url(holder.href or '')}: {reason}",
                # (of a web address clients take the host's first label, and the path: part D)
                severity=Severity.INFO if http_url(holder.href or "") is not None else None,
            )


def _wants_bucket_and_key(scheme: Scheme) -> bool:
    """Tells whether every flow of a scheme has to be told bucket and key."""
    flows = flows_of(scheme) if scheme.type == "signedUrl" else []
    return bool(flows) and all(
        {"bucket", "key"} <= {p.name for p in parameters_of(flow) if p.value.get("required")}
        for flow in flows
    )


def _has_one_flow(scheme: Scheme, report: FindingReport) -> None:
    names = [flow.name for flow in flows_of(scheme)]
    if len(names) > 1:
        listed = ", ".join(shown(name) for name in names[:5])
        report.add(
            (*scheme.path, "flows"),
            f"there are {len(names)} flows ({listed}), and nothing says which one to take",
        )


def _credentials_have_a_source(flow: Flow, report: FindingReport) -> None:
    if flow.scheme.value.get(REFS):
        return
    for parameter in parameters_of(flow):
        if parameter.value.get("required") is True and _is_credential(parameter.name):
            schema = parameter.value.get("schema")
            if isinstance(schema, dict) and ("default" in schema or "const" in schema):
                continue
            report.add(
                parameter.path,
                f"{shown(parameter.name)} is a credential, and nothing says where clients get it",
            )


def _is_credential(name: str) -> bool:
    return name.lower() in _CREDENTIAL_NAMES or is_secret_name(name)


RULES = (
    CatalogRule(
        id="G01",
        name="signing-method-unknown",
        severity=Severity.ERROR,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED,
        says="The method of the call for a signed URL is no HTTP method.",
        why="Clients cannot make the call, or the server refuses it.",
        source="RFC 9110, 9.1: methods are tokens, and case-sensitive.",
        repair="Write GET or POST, in capitals.",
        check=_method_is_known,
        example=protected_item(signed(method="FETCH IT")),
    ),
    CatalogRule(
        id="G04",
        name="response-field-missing",
        severity=Severity.WARNING,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED,
        says="Nothing says where in the answer the signed URL is.",
        why="There is no default: clients have to guess.",
        source="catalog-auth.md, B2: `responseField` has no default.",
        repair="Name the field in responseField.",
        check=_response_is_located,
        example=protected_item(signed(responseField="")),
    ),
    CatalogRule(
        id="G06",
        name="signing-call-plaintext",
        severity=Severity.WARNING,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED,
        profiles={Profile.STRICT: Severity.ERROR},
        says="The call for a signed URL is not encrypted.",
        why="Everybody on the way can read the credentials and the signed URL.",
        source="RFC 6750, 5.2; RFC 9110, 17.",
        repair="Give the https URL.",
        check=_call_is_encrypted,
        example=protected_item(signed(authorizationApi="http://sign.example.com/v1")),
    ),
    CatalogRule(
        id="G07",
        name="signing-host-not-public",
        severity=Severity.WARNING,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED,
        says="The API for signed URLs is on the reader's own machine, or in a private network.",
        why="Whoever reads the document cannot call it, or calls something else.",
        source="RFC 6761, 6.3; RFC 6890.",
        repair="Give the address that readers can reach.",
        check=_host_is_public,
        example=protected_item(signed(authorizationApi="https://localhost:8443/sign")),
    ),
    CatalogRule(
        id="G10",
        name="object-not-derivable",
        severity=Severity.WARNING,
        subject=Subject.GATED_ACCESS,
        says="A flow asks for bucket and key, and the href is not that of an object in a store.",
        why="Clients derive both from the href.",
        source="catalog-auth.md, D: bucket and key come from an object's URL.",
        repair="Give the object's own URL, describe the store in storage:schemes, or ask for href.",
        check=_href_is_an_object,
        example=protected_item(
            signed({"bucket": body_parameter(), "key": body_parameter()}, method="POST"),
            "https://data.example.com/scene.tif",
        ),
    ),
    CatalogRule(
        id="G12",
        name="signing-flows-ambiguous",
        severity=Severity.INFO,
        subject=Subject.SCHEME,
        types=_SIGNED,
        says="There is more than one flow, and no way to choose.",
        why="Names of flows mean nothing here: a client takes any one.",
        source="catalog-auth.md, B2: signedUrl has no predefined flows.",
        repair="Make one scheme of each flow, and let auth:refs list them.",
        check=_has_one_flow,
        example=protected_item(
            {
                "type": "signedUrl",
                "flows": {
                    name: {
                        "method": "GET",
                        "authorizationApi": f"https://sign.example.com/{name}",
                        "parameters": {"href": query_parameter()},
                        "responseField": "href",
                    }
                    for name in ("read", "preview")
                },
            }
        ),
    ),
    CatalogRule(
        id="G13",
        name="signing-credentials-unexplained",
        severity=Severity.WARNING,
        subject=Subject.SIGNED_FLOW,
        types=_SIGNED,
        says="The call for a signed URL needs credentials, and nothing says where they come from.",
        why="Clients cannot make the call.",
        source=(
            "catalog-auth.md, B2: auth:refs of a scheme name where its input comes from (v1.2.0)."
        ),
        repair="Declare v1.2.0 and name the scheme that gives the credential in the scheme's own "
        "auth:refs.",
        check=_credentials_have_a_source,
        example=protected_item(
            signed(
                {
                    "href": query_parameter(),
                    "Authorization": query_parameter(**{"in": "header"}),
                }
            )
        ),
    ),
)
