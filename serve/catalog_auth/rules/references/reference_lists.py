"""R: lists of references that say a name twice, or nothing: R05, R06."""

from tollgate.serve.catalog_auth.document.document import REFS, Document, References
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item, scene
from tollgate.serve.catalog_auth.rules.findings import (
    Fix,
    Operation,
    Severity,
    Suggestion,
    suggestion,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject

# In the place of an empty list, so many schemes are suggested.
NAMES_SUGGESTED_MAX = 5
# So many entries of lists are taken out one by one.
REMOVALS_MAX = 10_000


def first_places(names: tuple[str, ...]) -> dict[str, int]:
    """The index at which each name stands first."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        places.setdefault(name, index)
    return places


def _references_are_different(document: Document, report: FindingReport) -> None:
    lists = [
        (holder.path, holder.refs)
        for references in document.references
        if len(references.names) > 1 and len(set(references.names)) < len(references.names)
        for holder in references.holders
    ]
    lists += [
        (scheme.path, scheme.value[REFS]) for scheme in document.schemes if REFS in scheme.value
    ]
    for path, refs in lists:
        again = _repetitions(refs)
        if again:
            report.add(
                (*path, REFS),
                f"{shown(again[0][1])} is referenced more than once",
                _without(refs, [index for index, _ in again], (*path, REFS), report),
            )


def _repetitions(refs: object) -> list[tuple[int, str]]:
    """The names that stand before, each with its index."""
    found = []
    known: set[str] = set()
    for index, name in enumerate(refs if isinstance(refs, list) else ()):
        if isinstance(name, str):
            if name in known:
                found.append((index, name))
            known.add(name)
    return found


def _without(refs: object, again: list[int], path: Path, report: FindingReport) -> Fix:
    """Takes these entries out, so that all others stay as they are written; where that would be
    very many steps, the list is written anew."""
    if report.spend(len(again), REMOVALS_MAX):
        return tuple(Operation("remove", (*path, index)) for index in reversed(again))
    assert isinstance(refs, list), "it has entries"
    gone = set(again)
    kept = [name for index, name in enumerate(refs) if index not in gone]
    return (Operation("replace", path, kept),)


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
                    Suggestion(f"reference {shown(name)}", (Operation("add", (*path, "-"), name),))
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
