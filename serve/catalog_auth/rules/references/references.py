"""R: references and what they name, here and in the documents above."""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    SCHEMES,
    Document,
    HolderKind,
    Kind,
    References,
    inputs_of,
)
from tollgate.serve.catalog_auth.document.near_misses import nearest
from tollgate.serve.catalog_auth.rules.examples.documents import KEY, LOGIN, collection, item, scene
from tollgate.serve.catalog_auth.rules.findings import (
    Operation,
    Severity,
    Suggestion,
    shown,
    suggestion,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject

# For so many dangling names it is asked what was meant.
NAMES_EXPLAINED_MAX = 20
# In the place of an empty list, so many schemes are suggested.
NAMES_SUGGESTED_MAX = 5


def _dangling(document: Document) -> Mapping[str, str | None]:
    """The names that are referenced and that nobody defines, each with the scheme that is meant,
    if one is like it. None where no scheme is defined at all: that is R02's."""
    known = dict.fromkeys(_known_names(document))
    if not known:
        return {}
    found: dict[str, str | None] = {}
    for references in document.references:
        for name in references.missing:
            if name not in known and name not in found:
                found[name] = nearest(name, known) if len(found) < NAMES_EXPLAINED_MAX else None
    return found


def _known_names(document: Document) -> list[str]:
    """The names of all schemes that a reference may mean, misplaced ones too."""
    names = [scheme.name for scheme in document.schemes]
    names += document.inherited
    for misplaced in document.misplaced:
        if isinstance(misplaced.value, dict) and misplaced.path[-1] != REFS:
            names += misplaced.value
    return names


def _first_places(names: tuple[str, ...]) -> dict[str, int]:
    """Where each name stands first."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        places.setdefault(name, index)
    return places


def _references_exist(references: References, report: FindingReport) -> None:
    _report_dangling(references, report, is_alternate=False)


def _references_of_alternates_exist(references: References, report: FindingReport) -> None:
    _report_dangling(references, report, is_alternate=True)


def _report_dangling(references: References, report: FindingReport, is_alternate: bool) -> None:
    if not references.missing:
        return
    dangling = report.shared(_dangling)
    places = _first_places(references.names)
    for name in references.missing:
        if name not in dangling:
            continue
        hint = "" if (meant := dangling[name]) is None else f": did you mean {shown(meant)}?"
        for holder in references.holders:
            if (holder.kind is HolderKind.ALTERNATE) is is_alternate:
                report.add(
                    (*holder.path, REFS, places[name]),
                    f"no scheme has the name {shown(name)}{hint}",
                    # The extension does not know the assets of catalogs: a dead letter is no harm.
                    severity=None if holder.is_official else Severity.WARNING,
                )


def _schemes_are_somewhere(references: References, report: FindingReport) -> None:
    document = report.document
    if not references.missing or report.shared(_known_names):
        return
    if document.schemes_value is not MISSING and document.schemes_value != {}:
        return  # (they are there, in a shape that is complained of elsewhere)
    for holder in references.holders:
        report.add(
            (*holder.path, REFS),
            f"{shown(references.missing[0])} is referenced, and there is no scheme at all, neither "
            "here nor in a document above that was given",
        )


def _references_resolve_here(references: References, report: FindingReport) -> None:
    if not references.inherited:
        return
    places = _first_places(references.names)
    holder = references.holders[0]
    for name in references.inherited:
        others = len(references.holders) - 1
        also = f" (and {others} more like it)" if others else ""
        report.add(
            (*holder.path, REFS, places[name]),
            f"the scheme {shown(name)} is defined in a document above, not here: some clients look "
            f"there, the official schema does not{also}",
        )


def _schemes_are_used(document: Document, report: FindingReport) -> None:
    if not document.schemes or document.kind in (Kind.OTHER, Kind.ITEM_COLLECTION):
        return
    used = {name for references in document.references for name in references.names}
    for scheme in document.schemes:
        if scheme.name not in used:
            break
    else:
        return
    if document.malformed:
        return  # (what they name, nobody can tell)
    for scheme in document.schemes:
        used.update(inputs_of(scheme))
    for misplaced in document.misplaced:
        if misplaced.path[-1] != SCHEMES:
            if not isinstance(misplaced.value, list):
                return
            used.update(name for name in misplaced.value if isinstance(name, str))
    for scheme in document.schemes:
        if scheme.name not in used:
            report.add(
                scheme.path,
                f"nothing here references the scheme {shown(scheme.name)}: say where it is needed, "
                "or leave it out",
                # (the items of a collection or catalog may be what uses it)
                severity=None if document.kind is Kind.ITEM else Severity.INFO,
            )


def _references_are_different(document: Document, report: FindingReport) -> None:
    lists = [
        (holder.path, references.names)
        for references in document.references
        if len(references.names) > 1 and len(set(references.names)) < len(references.names)
        for holder in references.holders
    ]
    for scheme in document.schemes:
        if REFS in scheme.value:
            names = inputs_of(scheme)
            if len(set(names)) < len(names):
                lists.append((scheme.path, names))
    for path, names in lists:
        places = _first_places(names)
        twice = next(name for index, name in enumerate(names) if places[name] != index)
        report.add(
            (*path, REFS),
            f"{shown(twice)} is referenced more than once",
            (Operation("replace", (*path, REFS), list(dict.fromkeys(names))),),
        )


def _references_are_not_empty(references: References, report: FindingReport) -> None:
    if references.names:
        return
    names = [scheme.name for scheme in report.document.schemes[:NAMES_SUGGESTED_MAX]]
    for holder in references.holders:
        path = (*holder.path, REFS)
        report.add(
            path,
            "an empty auth:refs is ambiguous: leave the member out if no authentication is needed",
            suggestions=(
                *(
                    Suggestion(f"reference {shown(name)}", (Operation("replace", path, [name]),))
                    for name in names
                ),
                *suggestion("remove it: no authentication is needed", Operation("remove", path)),
            ),
        )


def _references_are_no_near_misses(references: References, report: FindingReport) -> None:
    if not references.missing:
        return
    dangling = report.shared(_dangling)
    places = _first_places(references.names)
    for name in references.missing:
        if (meant := dangling.get(name)) is not None:
            for holder in references.holders:
                path = (*holder.path, REFS, places[name])
                report.add(
                    path,
                    f"{shown(name)} is very much like the scheme {shown(meant)}",
                    suggestions=suggestion(
                        f"reference {shown(meant)}", Operation("replace", path, meant)
                    ),
                )


RULES = (
    CatalogRule(
        id="R01",
        name="dangling-ref",
        severity=Severity.ERROR,
        subject=Subject.REFERENCES,
        says="A reference names no scheme.",
        why="A client that wants the asset finds no way to it.",
        source=(
            "Authentication extension, Fields: schemes are declared once and referenced by name."
        ),
        repair="Correct the name, or define the scheme.",
        check=_references_exist,
        example=item({"login": LOGIN}, {"data": scene("login", "staff")}),
    ),
    CatalogRule(
        id="R02",
        name="refs-but-no-schemes-anywhere",
        severity=Severity.ERROR,
        subject=Subject.REFERENCES,
        says="There are references, and no schemes at all.",
        why="A client that wants the asset finds no way to it.",
        source=(
            "Authentication extension, Fields: schemes are declared once and referenced by name."
        ),
        repair="Define the schemes, or validate together with the collection that does.",
        check=_schemes_are_somewhere,
        example=item(assets={"data": scene("login")}),
    ),
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
        id="R04",
        name="scheme-never-used",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="A scheme is defined, and nothing references it.",
        why="It was forgotten somewhere: what it should protect looks open.",
        source="Tollgate's own advice (catalog-auth.md, C); use by another scheme counts.",
        repair="Reference it where it is needed, or remove it.",
        check=_schemes_are_used,
        example=item({"login": LOGIN, "key": KEY}, {"data": scene("login")}),
    ),
    CatalogRule(
        id="R05",
        name="duplicate-ref",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="A list of references has a name twice.",
        why="It says nothing more, and comes from programs that append without looking.",
        source=(
            "Tollgate's own advice (catalog-auth.md, C); the schema does not ask for unique items."
        ),
        repair="Keep one.",
        check=_references_are_different,
        example=item({"login": LOGIN}, {"data": scene("login", "login")}),
    ),
    CatalogRule(
        id="R06",
        name="empty-refs",
        severity=Severity.WARNING,
        subject=Subject.REFERENCES,
        says="A list of references is empty.",
        why="Does it mean that the asset is open, or that nobody has filled it in?",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Remove the member, or fill it in.",
        check=_references_are_not_empty,
        example=item({"login": LOGIN}, {"data": scene("login"), "open": scene()}),
    ),
    CatalogRule(
        id="R07",
        name="near-miss",
        severity=Severity.INFO,
        subject=Subject.REFERENCES,
        says="A dangling reference is nearly the name of a scheme.",
        why="It was most probably meant.",
        source=(
            "Tollgate's own advice (catalog-auth.md, C): case, blanks, one change of a letter."
        ),
        repair="Write the scheme's name.",
        check=_references_are_no_near_misses,
        example=item({"login": LOGIN}, {"data": scene("Login ")}),
    ),
    CatalogRule(
        id="R11",
        name="alternate-ref-dangling",
        severity=Severity.ERROR,
        subject=Subject.REFERENCES,
        says="A reference of an alternate names no scheme.",
        why="The official schema never looks at the references of alternates, so nothing else "
        "finds this.",
        source="catalog-auth.md, B1: alternate assets.",
        repair="Correct the name, or define the scheme.",
        check=_references_of_alternates_exist,
        example=item(
            {"login": LOGIN},
            {"data": scene("login", alternate={"s3": scene("s3", href="s3://bucket/scene.tif")})},
        ),
    ),
)
