"""R: lists of references that say a name twice, or nothing: R05, R06."""

from tollgate.serve.catalog_auth.document.document import (
    REFS,
    Document,
    References,
    inputs_of,
)
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item, scene
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, Suggestion, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

# In the place of an empty list, so many schemes are suggested.
NAMES_SUGGESTED_MAX = 5


def first_places(names: tuple[str, ...]) -> dict[str, int]:
    """The index at which each name stands first."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        places.setdefault(name, index)
    return places


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
        places = first_places(names)
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
    if len(report.document.schemes) > NAMES_SUGGESTED_MAX:
        report.leave_out(
            f"in the place of an empty auth:refs, the first {NAMES_SUGGESTED_MAX} schemes are "
            "suggested"
        )
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


RULES = (
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
)
