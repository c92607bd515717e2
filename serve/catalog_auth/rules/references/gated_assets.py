"""R: assets that should be open, and others that should say they are not: R12, R18."""

from typing import Any

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    AccessGroup,
    Document,
    Holder,
    HolderKind,
    References,
)
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, SCENE, item, scene
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject

# What a catalog is found by: it has to be open to everybody.
DISCOVERY_ROLES = ("metadata", "thumbnail", "overview", "quicklook")
_DISCOVERY_ROLES = frozenset(DISCOVERY_ROLES)
_PRODUCT_ROLES = frozenset(("data", "archive"))


def _discovery_is_open(references: References, report: FindingReport) -> None:
    """Tells those who have to comply of each, all others once a document. Something that is
    data, or an archive of it, may have a second role and is not meant for finding it."""
    if not references.names:
        return
    is_each_told = report.profile is Profile.CEOS
    if not is_each_told and not report.spend(0, 0):
        return  # (it is told already)
    found = [holder for holder in references.holders if _is_for_discovery(holder)]
    if not found:
        return
    told = found if is_each_told else found[:1]
    report.spend(1, 1)
    also = f" (and {len(found) - 1} more like it)" if len(found) > len(told) else ""
    for holder in told:
        roles: Any = holder.value["roles"]
        role = next(role for role in DISCOVERY_ROLES if role in roles)
        report.add(
            (*holder.path, REFS),
            f"an asset with the role {role} is part of finding data: it should be readable without "
            f"authentication{also}",
        )


def _is_for_discovery(holder: Holder) -> bool:
    roles: Any = holder.value.get("roles")
    if not isinstance(roles, list):
        return False
    try:
        return not _DISCOVERY_ROLES.isdisjoint(roles) and _PRODUCT_ROLES.isdisjoint(roles)
    except TypeError:  # (something in it cannot be hashed)
        texts = {role for role in roles if isinstance(role, str)}
        return not _DISCOVERY_ROLES.isdisjoint(texts) and _PRODUCT_ROLES.isdisjoint(texts)


def _gated_places_are_gated_throughout(document: Document, report: FindingReport) -> None:
    gated = {_place_of(access) for access in document.accesses if _is_gated(access)}
    for access in document.accesses:
        if access.references is None and _place_of(access) in gated:
            for holder in access.holders:
                if holder.kind is not HolderKind.LINK and holder.refs is MISSING:
                    report.add(
                        holder.path,
                        "other assets at this place have auth:refs: if this one needs "
                        "authentication too, it should say so",
                    )


def _is_gated(access: AccessGroup) -> bool:
    return access.references is not None and bool(access.references.names)


def _place_of(access: AccessGroup) -> str:
    """Scheme and host of an href; a relative one stands where the document does."""
    return "/".join(access.href.split("/", 3)[:3]) if "://" in access.href else ""


RULES = (
    CatalogRule(
        id="R12",
        name="discovery-artifact-gated",
        severity=Severity.INFO,
        subject=Subject.REFERENCES,
        profiles={Profile.CEOS: Severity.ERROR},
        says="An asset for finding data needs authentication.",
        why="Metadata, thumbnails and quicklooks are what people choose data by.",
        source="CEOS-STAC-REQ-8510.",
        repair="Take the references away, and open the asset.",
        check=_discovery_is_open,
        example=item({"login": LOGIN}, {"thumb": scene("login", roles=["thumbnail"])}),
    ),
    CatalogRule(
        id="R18",
        name="gated-asset-without-refs",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        profiles={Profile.PORTOLAN: Severity.WARNING},
        is_on_by_default=False,
        says="An asset has no references, and others at the same place have.",
        why="Gated assets should carry references.",
        source="catalog-auth.md, C: profile portolan.",
        repair="Add auth:refs, if it is gated.",
        check=_gated_places_are_gated_throughout,
        example=item({"login": LOGIN}, {"data": scene("login"), "more": {"href": SCENE}}),
    ),
)
