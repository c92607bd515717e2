"""H: HTTP authentication schemes, and where they are used (part C)."""

from tollgate.serve.catalog_auth.document.document import AccessGroup, Scheme
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.urls import host_of, origin_of, scheme_of, shown_url
from tollgate.serve.catalog_auth.registries.http_schemes import (
    OBSOLETE_ELSEWHERE,
    REGISTERED,
    is_token,
)
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject
from tollgate.serve.net.public_addresses import Exposure, exposure_of

_HTTP = frozenset({"http"})
_SENT_AS_IS = frozenset({"http", "apiKey"})
# Types that people write where the name of an HTTP scheme belongs.
_TYPES_MEANT = {"oauth2": "oauth2", "oidc": "openIdConnect", "openidconnect": "openIdConnect"}


def _is_registered(scheme: Scheme, report: FindingReport) -> None:
    name = scheme.value.get("scheme")
    if not isinstance(name, str) or name.lower() in REGISTERED:
        return
    path = (*scheme.path, "scheme")
    if not is_token(name):
        report.add(
            path,
            f"{shown(name)} cannot be the name of an HTTP authentication scheme: that is one word, "
            f"such as bearer, without what is sent after it",
            severity=Severity.ERROR,
        )
        return
    hint = ""
    if meant := _TYPES_MEANT.get(name.lower()):
        hint = f'; a scheme for that has "type": "{meant}"'
    elif name.lower() == "token":
        hint = "; tokens are usually sent with bearer"
    report.add(path, f"{shown(name)} is not in IANA's registry of HTTP schemes{hint}")


def _is_in_lower_case(scheme: Scheme, report: FindingReport) -> None:
    name = scheme.value.get("scheme")
    if isinstance(name, str) and name != name.lower() and name.lower() in REGISTERED:
        path = (*scheme.path, "scheme")
        usual = REGISTERED[name.lower()].name
        report.add(
            path,
            f"{shown(name)} is listed as {usual}; the letters' case means nothing",
            (Operation("replace", path, usual),),
        )


def _is_current(scheme: Scheme, report: FindingReport) -> None:
    name = scheme.value.get("scheme")
    if not isinstance(name, str):
        return
    registered = REGISTERED.get(name.lower())
    reason = registered.obsolete if registered else OBSOLETE_ELSEWHERE.get(name.lower())
    if reason is not None:
        report.add((*scheme.path, "scheme"), f"{shown(name)} is {reason}: few clients can do it")


def _is_encrypted(access: AccessGroup, report: FindingReport) -> None:
    if access.href[:7].lower() != "http://" or access.references is None:
        return
    origin = origin_of(access.href)
    if exposure_of(host_of(origin) or "") is Exposure.LOOPBACK:
        return
    sent = [s for s in access.references.schemes if s.type in _SENT_AS_IS]
    if not sent:
        return
    is_basic = any(_http_name(scheme) == "basic" for scheme in sent)
    names = ", ".join(shown(scheme.name) for scheme in sent)
    for holder in access.holders:
        report.add(
            (*holder.path, "href"),
            f"{shown_url(holder.href or '')} is not encrypted: everybody on the way can read what "
            f"{names} sends",
            severity=None if is_basic else Severity.WARNING,
        )


def _is_over_http(access: AccessGroup, report: FindingReport) -> None:
    scheme = scheme_of(access.href)
    if scheme in ("", "http", "https") or access.references is None:
        return
    for each in access.references.schemes:
        if each.type == "http":
            for holder in access.holders:
                report.add(
                    (*holder.path, "href"),
                    f"{shown_url(holder.href or '')} is not fetched over HTTP, and "
                    f"{shown(each.name)} is an HTTP authentication scheme",
                )


def _http_name(scheme: Scheme) -> str | None:
    name = scheme.value.get("scheme") if scheme.type == "http" else None
    return name.lower() if isinstance(name, str) else None


RULES = (
    CatalogRule(
        id="H01",
        name="http-scheme-unregistered",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        types=_HTTP,
        says="The name of the HTTP authentication scheme is not registered, or cannot be one.",
        why="Clients know the registered names; another one they cannot send.",
        source=(
            "Authentication extension, Authentication Scheme Object: `scheme` should "
            "be registered. RFC 9110, 11.1: it is a token."
        ),
        repair="Take a registered name (basic, bearer, digest, …), or a type that fits better.",
        check=_is_registered,
        example=protected_item({"type": "http", "scheme": "Bearer token"}),
    ),
    CatalogRule(
        id="H02",
        name="http-scheme-letter-case",
        severity=Severity.INFO,
        subject=Subject.SCHEME,
        types=_HTTP,
        says="The name of the HTTP authentication scheme is not written as it is listed.",
        why="The case means nothing, but some clients compare names to the letter.",
        source="RFC 9110, 11.1: names of schemes are case-insensitive.",
        repair="Write it in lower case.",
        check=_is_in_lower_case,
        example=protected_item({"type": "http", "scheme": "Bearer"}),
    ),
    CatalogRule(
        id="H03",
        name="http-scheme-obsolete",
        severity=Severity.INFO,
        subject=Subject.SCHEME,
        types=_HTTP,
        says="The HTTP authentication scheme is registered, but nobody should start with it.",
        why="Few clients can do it, and none are being written.",
        source="IANA's registry of HTTP authentication schemes; RFC 6331 and RFC 6749.",
        repair="Offer a scheme in use, such as bearer.",
        check=_is_current,
        example=protected_item({"type": "http", "scheme": "hoba"}),
    ),
    CatalogRule(
        id="H04",
        name="credentials-over-plaintext",
        severity=Severity.WARNING,
        subject=Subject.GATED_ACCESS,
        profiles={Profile.STRICT: Severity.ERROR},
        says="A password or key is sent to an address that is not encrypted.",
        why="Everybody on the way can read it and use it.",
        source="RFC 7617, 4 and RFC 6750, 5.2: only over TLS.",
        repair="Serve it over https.",
        check=_is_encrypted,
        example=protected_item(
            {"type": "http", "scheme": "basic"}, "http://data.example.com/scene.tif"
        ),
    ),
    CatalogRule(
        id="H05",
        name="http-scheme-without-http",
        severity=Severity.WARNING,
        subject=Subject.GATED_ACCESS,
        says="An HTTP authentication scheme protects something that is not fetched over HTTP.",
        why="Such a request has no Authorization header to put it in.",
        source="RFC 9110, 11: HTTP authentication belongs to HTTP.",
        repair="Refer to a scheme that fits the address (s3 for s3://), or give an https one.",
        check=_is_over_http,
        example=protected_item(
            {"type": "http", "scheme": "bearer"}, "ftp://data.example.com/scene.tif"
        ),
    ),
)
