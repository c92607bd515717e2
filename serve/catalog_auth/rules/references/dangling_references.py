"""R: references that name no scheme: R01, R02, R07, R11."""

from collections.abc import Mapping

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    Document,
    HolderKind,
    References,
)
from tollgate.serve.catalog_auth.document.near_misses import CANDIDATES_MAX, nearest
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item, scene
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, suggestion
from tollgate.serve.catalog_auth.rules.references.reference_lists import first_places
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

# For so many dangling names it is asked what was meant.
NAMES_EXPLAINED_MAX = 20


_CUT = (
    f"of names that no scheme has, the first {NAMES_EXPLAINED_MAX} are compared with those of the "
    f"first {CANDIDATES_MAX} schemes"
)


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


def _references_exist(references: References, report: FindingReport) -> None:
    _report_dangling(references, report, is_alternate=False)


def _references_of_alternates_exist(references: References, report: FindingReport) -> None:
    _report_dangling(references, report, is_alternate=True)


def _report_dangling(references: References, report: FindingReport, is_alternate: bool) -> None:
    if not references.missing:
        return
    dangling = report.shared(_dangling)
    places = first_places(references.names)
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


def _references_are_no_near_misses(references: References, report: FindingReport) -> None:
    if not references.missing:
        return
    dangling = report.shared(_dangling)
    if len(dangling) > NAMES_EXPLAINED_MAX or len(report.shared(_known_names)) > CANDIDATES_MAX:
        report.leave_out(_CUT)
    places = first_places(references.names)
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
