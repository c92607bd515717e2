"""X: addresses that say too much, or send a secret too far (part C)."""

import re
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from tollgate.serve.catalog_auth.document.document import Document, HolderKind
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.urls import host_of, http_url, origin_of, shown_url
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.rules.schemes.endpoints import endpoints_of
from tollgate.serve.net.public_addresses import address_of, exposure_of

# What a client sends as it is, to whatever host a reference leads to. (A token of OAuth or OpenID
# Connect says itself whom it is for.)
_FIXED_SECRETS = frozenset({"apiKey", "http"})
# Of the domains a secret is sent to, so many are named.
NAMED_MAX = 5
# The domains of so many hosts are remembered.
HOSTS_MAX = 4_096
# Read once, when this module is: rules look things up in it, files they do not read.
_SUFFIXES = PublicSuffixList()
_PRIVATE_PATH = re.compile(
    r"(?i)file:|[a-z]:[\\/]|\\\\|~/|/(?:home|root|users|mnt|media|tmp|var|private|volumes)/"
)


def _hosts_are_public(document: Document, report: FindingReport) -> None:
    for access in document.accesses:
        host = host_of(origin_of(access.href))
        exposure = exposure_of(host) if host else None
        if exposure is None:
            continue
        for holder in access.holders:
            report.add(
                (*holder.path, "href"),
                f"{shown_url(holder.href or '')} is {exposure.value}",
            )
    for scheme in document.schemes:
        if scheme.type == "signedUrl":
            continue  # (G07 speaks of those)
        for path, text in endpoints_of(scheme):
            url = http_url(text)
            exposure = exposure_of(url.hostname or "") if url is not None else None
            if exposure is not None:
                report.add(path, f"{shown_url(text)} is {exposure.value}")


def _secret_stays_with_one(document: Document, report: FindingReport) -> None:
    domains_by_scheme = _domains(document)
    for scheme in document.schemes:
        domains = sorted(domains_by_scheme.get(scheme.name, ()))
        if len(domains) > 1:
            more = f" and {len(domains) - NAMED_MAX} more" if len(domains) > NAMED_MAX else ""
            report.add(
                scheme.path,
                f"what {shown(scheme.name)} sends goes to {len(domains)} different domains: "
                f"{', '.join(domains[:NAMED_MAX])}{more}",
            )


def _domains(document: Document) -> dict[str, set[str]]:
    """The registrable domains that clients send what a scheme asks for to, by its name."""
    found: dict[str, set[str]] = {}
    for access in document.accesses:
        secret = [
            scheme.name
            for scheme in (access.references.schemes if access.references else ())
            if scheme.type in _FIXED_SECRETS
        ]
        url = http_url(origin_of(access.href)) if secret else None
        if url is not None:
            domain = registrable_domain(url.hostname or "")
            for name in secret:
                found.setdefault(name, set()).add(domain)
    return found


@lru_cache(maxsize=HOSTS_MAX)
def registrable_domain(host: str) -> str:
    """The part of a host that one owner has registered, by the public suffix list; the host itself
    for addresses and for names that are a suffix."""
    if address_of(host) is not None:
        return host
    return _SUFFIXES.privatesuffix(host) or host


def _alternate_is_for_all(document: Document, report: FindingReport) -> None:
    for access in document.accesses:
        href = access.href
        if "://" in href and href[:5].lower() != "file:":
            continue
        for holder in access.holders:
            # (hrefs without a host are in one group, wherever they lead)
            if holder.kind is not HolderKind.ALTERNATE or holder.href is None:
                continue
            if _PRIVATE_PATH.match(holder.href):
                report.add(
                    (*holder.path, "href"),
                    f"{shown_url(holder.href)} is a path on somebody's own machine",
                )


RULES = (
    CatalogRule(
        id="X06",
        name="host-not-public",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="An address is on the reader's own machine, in a private network, or that of a "
        "cloud's metadata service.",
        why="Readers cannot reach it, reach something else, or tell it their secrets.",
        source="RFC 6761, RFC 6762 and RFC 6890.",
        repair="Give the address that readers can reach.",
        check=_hosts_are_public,
        example=protected_item(
            {
                "type": "openIdConnect",
                "openIdConnectUrl": "https://localhost:8443/.well-known/openid-configuration",
            }
        ),
    ),
    CatalogRule(
        id="X07",
        name="secret-sent-to-several-domains",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="One key or password is sent to domains of different owners.",
        why="Each of them can use it at the others.",
        source="RFC 9110, 11.5: credentials are for one protection space; the public suffix list.",
        repair="Make a scheme for each owner.",
        check=_secret_stays_with_one,
        example=protected_item(
            {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            asset={
                "alternate": {
                    "mirror": {
                        "href": "https://mirror.example.net/scene.tif",
                        "auth:refs": ["access"],
                    }
                }
            },
        ),
    ),
    CatalogRule(
        id="X08",
        name="private-path-published",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="An alternate is a path on the publisher's own machine.",
        why="Nobody else can follow it, and it tells how that machine is set up.",
        source="RFC 8089, 4: a file URI without a host is of the machine it is read on.",
        repair="Remove the alternate, or give an address that readers can reach.",
        check=_alternate_is_for_all,
        example=protected_item(
            {"type": "http", "scheme": "basic"},
            asset={"alternate": {"local": {"href": "file:///archive/scene.tif"}}},
        ),
    ),
)
