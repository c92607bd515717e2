"""R: what the documents above, and the assets beside, make one expect."""

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    AccessGroup,
    Document,
    Holder,
    HolderKind,
    Kind,
    References,
)
from tollgate.serve.catalog_auth.rules.examples.documents import (
    KEY,
    LOGIN,
    SCENE,
    collection,
    item,
    scene,
)
from tollgate.serve.catalog_auth.rules.findings import Severity, shown
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject

# What a catalog is found by: it has to be open to everybody.
DISCOVERY_ROLES = ("metadata", "thumbnail", "overview", "quicklook")
_DISCOVERY_ROLES = frozenset(DISCOVERY_ROLES)
_PRODUCT_ROLES = ("data", "archive")


def _parents_schemes_stay(document: Document, report: FindingReport) -> None:
    if not document.inherited:
        return
    for scheme in document.schemes:
        above = document.inherited.get(scheme.name)
        if above is not None and above.value != scheme.value:
            report.add(
                scheme.path,
                f"a document above defines {shown(scheme.name)} differently: a client that has "
                "read that one may use it here",
            )


def _promised(document: Document) -> list[tuple[Holder, list[object]]]:
    """The assets of an item that its collection promises, with the references promised."""
    above = document.ancestors.collection
    if above is None or document.kind is not Kind.ITEM:
        return []
    promised = above.get("item_assets")
    if not isinstance(promised, dict):
        return []
    found = []
    for holder in document.holders:
        definition = promised.get(holder.name) if holder.kind is HolderKind.ASSET else None
        refs = definition.get(REFS) if isinstance(definition, dict) else None
        if isinstance(refs, list):
            found.append((holder, refs))
    return found


def _references_are_as_promised(document: Document, report: FindingReport) -> None:
    for holder, refs in _promised(document):
        if isinstance(holder.refs, list) and not _are_equal_sets(holder.refs, refs):
            report.add(
                (*holder.path, REFS),
                f"the collection promises {_listed(refs)} for this asset in item_assets; here it "
                f"is {_listed(holder.refs)}",
            )


def _references_are_not_lost(document: Document, report: FindingReport) -> None:
    for holder, refs in _promised(document):
        if refs and holder.refs is MISSING:
            report.add(
                holder.path,
                f"the collection promises {_listed(refs)} for this asset in item_assets; here it "
                "has no auth:refs, as if it were open",
            )


def _are_equal_sets(one: list[object], other: list[object]) -> bool:
    return {n for n in one if isinstance(n, str)} == {n for n in other if isinstance(n, str)}


def _listed(names: list[object]) -> str:
    return ", ".join(shown(name) for name in names[:5]) + (", …" if len(names) > 5 else "")


def _discovery_is_open(references: References, report: FindingReport) -> None:
    """Whoever has to comply is told of each; everybody else once a document. Something that is
    data, or an archive of it, may have a second role and is not meant for finding it."""
    if not references.names:
        return
    found: list[tuple[Holder, str]] = []
    for holder in references.holders:
        roles = holder.value.get("roles", ())
        try:
            if _DISCOVERY_ROLES.isdisjoint(roles):  # type: ignore[arg-type]
                continue
        except TypeError:
            pass  # (no list, or with something in it that cannot be hashed: looked at below)
        if isinstance(roles, list) and not any(role in roles for role in _PRODUCT_ROLES):
            found += [(holder, role) for role in DISCOVERY_ROLES if role in roles][:1]
    told = found
    if found and report.profile is not Profile.CEOS:
        told = found[:1] if report.spend(1, 1) else []
    also = f" (and {len(found) - 1} more like it)" if len(found) > len(told) > 0 else ""
    for holder, role in told:
        report.add(
            (*holder.path, REFS),
            f"an asset with the role {role} is part of finding data: it should be readable without "
            f"authentication{also}",
        )


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


_PROMISE = collection(
    {"login": LOGIN}, item_assets={"data": {"title": "Scene", "auth:refs": ["login"]}}
)

RULES = (
    CatalogRule(
        id="R08",
        name="child-redefines-parent-scheme-differently",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="A document above defines a scheme of the same name differently.",
        why="Which of the two a client uses depends on which one it has read.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Use another name, or the same definition.",
        check=_parents_schemes_stay,
        example=item({"login": KEY}),
        example_collection=collection({"login": LOGIN}),
    ),
    CatalogRule(
        id="R09",
        name="asset-refs-differ-from-item-assets",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="An asset has other references than its collection promises in item_assets.",
        why="Clients plan by the promise.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Make them equal.",
        check=_references_are_as_promised,
        example=item({"login": LOGIN, "key": KEY}, {"data": scene("key"), "map": scene("login")}),
        example_collection=_PROMISE,
    ),
    CatalogRule(
        id="R10",
        name="promised-refs-missing",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="An asset has no references, and its collection promises some in item_assets.",
        why="A client takes it for open and is refused.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Add the references, or take back the promise.",
        check=_references_are_not_lost,
        example=item({"login": LOGIN}, {"data": {"href": SCENE}, "map": scene("login")}),
        example_collection=_PROMISE,
    ),
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
