"""T: schemes for object stores, and the addresses they are used for (part C)."""

from collections.abc import Iterable

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    AccessGroup,
    Document,
    Holder,
    HolderKind,
    Scheme,
    flows_of,
)
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.urls import host_of, origin_of, scheme_of, shown_url
from tollgate.serve.catalog_auth.objects.hosts import Provider, known_host
from tollgate.serve.catalog_auth.objects.storage_schemes import (
    SCHEMES_MAX,
    STORAGE_REFS,
    STORAGE_SCHEMES,
    described_storages,
    named_storages,
)
from tollgate.serve.catalog_auth.objects.urls import (
    URI_PROVIDERS,
    ObjectLocation,
    Reason,
    parse_object_url,
)
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN
from tollgate.serve.catalog_auth.rules.examples.items import protected_item
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

_S3_URIS = frozenset({"s3", "s3a", "s3n"})
_SENT_OVER_HTTP = frozenset({"http", "oauth2", "openIdConnect"})
# What says no more than that one object's name is missing.
_STILL_A_STORE = frozenset({Reason.NO_KEY, Reason.API_CALL, Reason.HAS_USER})
# Hosts of stores that speak S3 without being AWS: by their owners, and by what they are called.
_S3_SPEAKERS = (
    *(".cloudferro.com", ".digitaloceanspaces.com", ".wasabisys.com", ".r2.cloudflarestorage.com"),
    *(".backblazeb2.com", ".linodeobjects.com", ".scw.cloud", ".exo.io", ".aliyuncs.com"),
    *(".myhuaweicloud.com", ".otc.t-systems.com", ".appdomain.cloud", ".your-objectstorage.com"),
)
_S3_LABELS = frozenset({"s3", "minio", "objectstore", "objectstorage", "object-store", "obs"})


def why_no_object(holder: Holder, report: FindingReport) -> str | None:
    """Tells why the href of a holder is not in an object store; None when it is, or when nobody can
    tell: a relative one may be anywhere."""
    href = holder.href
    scheme = scheme_of(href) if href is not None else ""
    if href is None or not scheme or scheme in URI_PROVIDERS:
        return None
    described = report.shared(described_storages)
    found = parse_object_url(href, named_storages(holder, described) or described)
    if isinstance(found, ObjectLocation):
        if not found.is_guess or _speaks_s3(href):
            return None
        return "its host is that of no object store that is known or in storage:schemes"
    return None if found.reason in _STILL_A_STORE else str(found.reason)


def _speaks_s3(href: str) -> bool:
    host = host_of(origin_of(href)) or ""
    labels = host.split(".")[:2]
    return host.endswith(_S3_SPEAKERS) or any(
        label in _S3_LABELS or label.startswith(("s3-", "s3.")) for label in labels
    )


def _of_type(access: AccessGroup, type_: str) -> list[Scheme]:
    schemes = access.references.schemes if access.references is not None else ()
    return [scheme for scheme in schemes if scheme.type == type_]


def _is_an_object(access: AccessGroup, report: FindingReport) -> None:
    if scheme_of(access.href) in _S3_URIS:
        return
    schemes = _of_type(access, "s3")
    if not schemes:
        return
    if len(report.shared(described_storages)) > SCHEMES_MAX:
        report.leave_out(f"of storage:schemes, the first {SCHEMES_MAX} are read")
    for holder in access.holders:
        reason = why_no_object(holder, report)
        if reason is not None:
            report.add(
                (*holder.path, "href"),
                f"{shown_url(holder.href or '')} is no object of a store, as "
                f"{shown(schemes[0].name)} needs it: {reason}",
            )


def _request_is_signed(access: AccessGroup, report: FindingReport) -> None:
    if access.references is not None or scheme_of(access.href) not in _S3_URIS:
        return
    holders = [holder for holder in access.holders if holder.refs is MISSING]
    if not holders:
        return
    more = f" (and {len(holders) - 1} more there)" if len(holders) > 1 else ""
    report.add(
        (*holders[0].path, "href"),
        f"{shown_url(holders[0].href or '')}{more} has no auth:refs: clients send requests "
        f"that are not signed",
    )


def _endpoint_is_known(access: AccessGroup, report: FindingReport) -> None:
    if scheme_of(access.href) not in ("http", "https") or not _of_type(access, "s3"):
        return
    host = known_host(origin_of(access.href).partition("://")[2].lower())
    if host is not None and host.provider is Provider.AWS:
        return
    for holder in access.holders:
        if STORAGE_REFS not in holder.value and not _is_described(holder, report):
            report.add(
                (*holder.path, "href"),
                f"{shown_url(holder.href or '')} is not at AWS, and no storage:refs says which "
                f"endpoint and region to sign for",
            )
            return


def _is_described(holder: Holder, report: FindingReport) -> bool:
    found = parse_object_url(holder.href or "", report.shared(described_storages))
    return isinstance(found, ObjectLocation) and not found.is_guess and found.region is not None


def _token_can_be_sent(access: AccessGroup, report: FindingReport) -> None:
    if scheme_of(access.href) not in _S3_URIS or access.references is None:
        return
    schemes = access.references.schemes
    if not schemes or not all(_is_sent_over_http(scheme) for scheme in schemes):
        return
    names = ", ".join(shown(scheme.name) for scheme in schemes)
    for holder in access.holders:
        report.add(
            (*holder.path, "href"),
            f"{shown_url(holder.href or '')} is read with signed requests, which cannot carry what "
            f"{names} gives",
        )


def _is_sent_over_http(scheme: Scheme) -> bool:
    """Tells whether a scheme ends in a header of HTTP. (A token exchange may end in keys.)"""
    if scheme.type not in _SENT_OVER_HTTP:
        return False
    return not any(flow.name == "tokenExchange" for flow in flows_of(scheme))


def _paying_is_authenticated(document: Document, report: FindingReport) -> None:
    paying = {
        name
        for name, scheme in report.shared(described_storages).items()
        if isinstance(scheme, dict) and scheme.get("requester_pays") is True
    }
    if not paying:
        return
    for holder in document.holders:
        if holder.refs is not MISSING:
            continue
        refs = holder.value.get(STORAGE_REFS)
        if isinstance(refs, list) and _may_be_fetched(holder):
            found = sorted(paying & {ref for ref in refs if isinstance(ref, str)})
            if found and len(found) == len(refs):
                report.add(
                    holder.path,
                    f"{_listed(found)} makes the reader pay, which needs a signed request, and "
                    f"there are no auth:refs",
                )


def _may_be_fetched(holder: Holder) -> bool:
    return holder.href is not None or holder.kind is HolderKind.ITEM_ASSET


def _listed(names: Iterable[str]) -> str:
    return ", ".join(shown(name) for name in names)


RULES = (
    CatalogRule(
        id="T01",
        name="s3-scheme-without-object",
        severity=Severity.WARNING,
        subject=Subject.GATED_ACCESS,
        says="A scheme for object stores protects something that is in none.",
        why="Clients cannot sign a request for it.",
        source="catalog-auth.md, B2: s3 means signed requests to an object store.",
        repair="Give the object's own URL, describe the store in storage:schemes, or refer to a "
        "scheme that fits.",
        check=_is_an_object,
        example=protected_item({"type": "s3"}, "https://data.example.com/scene.tif"),
    ),
    CatalogRule(
        id="T02",
        name="object-without-refs",
        severity=Severity.INFO,
        subject=Subject.ACCESS,
        says="An object of an object store has no references to schemes.",
        why="Clients read it without signing their requests, which only public objects allow.",
        source="catalog-auth.md, B2: without a reference, <CLOUD>_NO_SIGN_REQUEST is YES.",
        repair="Nothing, when it is public; else refer to a scheme of type s3.",
        check=_request_is_signed,
        example=protected_item({"type": "s3"}, "s3://bucket/scene.tif", has_refs=False),
    ),
    CatalogRule(
        id="T03",
        name="endpoint-unknown",
        severity=Severity.INFO,
        subject=Subject.GATED_ACCESS,
        says="Nothing says which endpoint to sign requests for, at a store that is not AWS.",
        why="Clients sign for AWS unless they are told otherwise.",
        source="Storage extension, v2: storage:schemes and storage:refs.",
        repair="Describe the store in storage:schemes, and refer to it with storage:refs.",
        check=_endpoint_is_known,
        example=protected_item({"type": "s3"}, "https://s3.store.example.com/bucket/scene.tif"),
    ),
    CatalogRule(
        id="T04",
        name="token-for-signed-requests",
        severity=Severity.WARNING,
        subject=Subject.GATED_ACCESS,
        says="An s3:// address is protected only by schemes that end in a header of HTTP.",
        why="Requests to it are signed with keys; a token has no place in them.",
        source="catalog-auth.md, B2: s3 means signed requests to an object store.",
        repair="Refer to a scheme of type s3 or signedUrl, or give an https address.",
        check=_token_can_be_sent,
        example=protected_item(LOGIN, "s3://bucket/scene.tif"),
    ),
    CatalogRule(
        id="T05",
        name="requester-pays-without-refs",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="The reader pays for the requests, and nothing says how to authenticate them.",
        why="A request that nobody signs cannot be billed, so it is refused.",
        source="Storage extension, v2: requester_pays.",
        repair="Refer to a scheme of type s3.",
        check=_paying_is_authenticated,
        example=protected_item(
            {"type": "s3"},
            "s3://bucket/scene.tif",
            has_refs=False,
            asset={STORAGE_REFS: ["aws"]},
            properties={
                STORAGE_SCHEMES: {
                    "aws": {
                        "type": "aws-s3",
                        "platform": "https://{bucket}.s3.{region}.amazonaws.com",
                        "region": "us-west-2",
                        "requester_pays": True,
                    }
                }
            },
        ),
    ),
)
