"""R: what the documents above define and promise: R03, R08, R09, R10."""

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    Document,
    Holder,
    HolderKind,
    Kind,
    References,
)
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.rules.examples.documents import (
    KEY,
    LOGIN,
    SCENE,
    collection,
    item,
    scene,
)
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.references.reference_lists import first_places
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject


def _references_resolve_here(references: References, report: FindingReport) -> None:
    if not references.inherited:
        return
    places = first_places(references.names)
    holder = references.holders[0]
    for name in references.inherited:
        others = len(references.holders) - 1
        also = f" (and {others} more like it)" if others else ""
        report.add(
            (*holder.path, REFS, places[name]),
            f"the scheme {shown(name)} is defined in a document above, not here: some clients look "
            f"there, the official schema does not{also}",
        )


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


_PROMISE = collection(
    {"login": LOGIN}, item_assets={"data": {"title": "Scene", "auth:refs": ["login"]}}
)

RULES = (
    CatalogRule(
        id="R03",
        name="ref-resolves-only-in-ancestor",
        severity=Severity.WARNING,
        subject=Subject.REFERENCES,
        profiles={Profile.STRICT: Severity.ERROR},
        says="A reference names a scheme that only a document above defines.",
        why="Some clients fall back to the collection; the extension says nothing of it, and the "
        "official schema demands schemes in each document.",
        source="catalog-auth.md, E: decided where the extension leaves a choice.",
        repair="Copy the scheme into this document.",
        check=_references_resolve_here,
        example=item(assets={"data": scene("login")}),
        example_collection=collection({"login": LOGIN}),
    ),
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
)
