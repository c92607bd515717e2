"""O: the URLs that schemes send clients to: OAuth endpoints, discovery, signing (part C)."""

from collections.abc import Iterator
from urllib.parse import SplitResult

from tollgate.serve.catalog_auth.document.document import Scheme, flows_of
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.urls import http_url, shown_url
from tollgate.serve.catalog_auth.registries.oauth_flows import OAUTH_URLS
from tollgate.serve.catalog_auth.rules.examples.items import (
    client_credentials,
    protected_item,
    signed,
)
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject
from tollgate.serve.net.public_addresses import Exposure, exposure_of

_LOGINS = frozenset({"oauth2", "openIdConnect"})
_WITH_URLS = _LOGINS | {"signedUrl"}
DISCOVERY = "/.well-known/openid-configuration"
_DISCOVERY_URL = f"https://login.example.com{DISCOVERY}"


def endpoints_of(scheme: Scheme) -> Iterator[tuple[Path, str]]:
    """The URLs of a scheme of a standard type that are texts, and where they are."""
    if scheme.type == "openIdConnect":
        url = scheme.value.get("openIdConnectUrl")
        if isinstance(url, str):
            yield (*scheme.path, "openIdConnectUrl"), url
        return
    fields = OAUTH_URLS if scheme.type == "oauth2" else ("authorizationApi",)
    for flow in flows_of(scheme):
        for field in fields:
            url = flow.value.get(field)
            if isinstance(url, str):
                yield (*flow.path, field), url


def is_plaintext(url: SplitResult) -> bool:
    """Tells whether others can read what is sent there; nobody reads along on the way to
    oneself."""
    return url.scheme == "http" and exposure_of(url.hostname or "") is not Exposure.LOOPBACK


def _is_encrypted(scheme: Scheme, report: FindingReport) -> None:
    for path, text in endpoints_of(scheme):
        url = http_url(text)
        if url is not None and is_plaintext(url):
            report.add(path, f"{shown_url(text)} is not encrypted, and secrets are sent there")


def _is_discovery(scheme: Scheme, report: FindingReport) -> None:
    for path, text in endpoints_of(scheme):
        url = http_url(text)
        if url is not None and not url.path.endswith(DISCOVERY):
            report.add(
                path,
                f"{shown_url(text)} does not end with {DISCOVERY}, where clients find the "
                f"provider's configuration",
            )


def _is_absolute(scheme: Scheme, report: FindingReport) -> None:
    for path, text in endpoints_of(scheme):
        if http_url(text) is None:
            report.add(path, f"{shown(text)} is not an absolute http or https URL")


def _has_no_fragment(scheme: Scheme, report: FindingReport) -> None:
    for path, text in endpoints_of(scheme):
        before, mark, _ = text.partition("#")
        if mark and http_url(text) is not None:
            report.add(
                path,
                f"{shown_url(before)} is followed by a fragment, which is never sent",
                suggestions=suggestion("drop the fragment", Operation("replace", path, before)),
            )


RULES = (
    CatalogRule(
        id="O02",
        name="plaintext-endpoint",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        types=_LOGINS,
        profiles={Profile.STRICT: Severity.ERROR},
        says="An endpoint for logging in is not encrypted.",
        why="Everybody on the way can read the passwords and tokens, or change the page.",
        source="RFC 6749, 3.1 and 3.2: endpoints require TLS; OpenID Connect Discovery, 7.1.",
        repair="Give the https URL.",
        check=_is_encrypted,
        example=protected_item(client_credentials(tokenUrl="http://login.example.com/token")),
    ),
    CatalogRule(
        id="O07",
        name="discovery-url-unusual",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        types=frozenset({"openIdConnect"}),
        says="`openIdConnectUrl` is not the address of a provider's configuration.",
        why="Clients expect the discovery document there, and get a page or nothing.",
        source="OpenID Connect Discovery 1.0, 4: the issuer, followed by "
        "/.well-known/openid-configuration.",
        repair="Append /.well-known/openid-configuration to the issuer's URL.",
        check=_is_discovery,
        example=protected_item(
            {"type": "openIdConnect", "openIdConnectUrl": "https://login.example.com/realms/eo"}
        ),
    ),
    CatalogRule(
        id="O08",
        name="endpoint-not-absolute",
        severity=Severity.ERROR,
        subject=Subject.SCHEME,
        types=_WITH_URLS,
        says="An endpoint is not an absolute http or https URL.",
        why="Clients cannot call it: there is nothing that it could be relative to.",
        source="RFC 6749, 3.1 and 3.2: absolute URIs; the official schemas: format uri.",
        repair="Write the whole URL, with https:// and the host.",
        check=_is_absolute,
        example=protected_item(signed(authorizationApi="<sign-url>")),
    ),
    CatalogRule(
        id="O09",
        name="endpoint-with-fragment",
        severity=Severity.WARNING,
        subject=Subject.SCHEME,
        types=_LOGINS,
        says="The URL of an endpoint has a fragment.",
        why="Fragments are never sent; some clients fail on them.",
        source="RFC 6749, 3.1 and 3.2: endpoints must not have a fragment.",
        repair="Remove everything from the # on.",
        check=_has_no_fragment,
        example=protected_item(
            {"type": "openIdConnect", "openIdConnectUrl": f"{_DISCOVERY_URL}#top"}
        ),
    ),
)
