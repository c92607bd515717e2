"""R: schemes that nothing references: R04."""

from tollgate.serve.catalog_auth.document.document import SCHEMES, Document, Kind, inputs_of
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.rules.examples.documents import KEY, LOGIN, item, scene
from tollgate.serve.catalog_auth.rules.findings import Severity
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject


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
        if scheme.name in used:
            continue
        told = f"nothing here references the scheme {shown(scheme.name)}"
        if document.kind is Kind.ITEM:
            report.add(scheme.path, f"{told}: say where it is needed, or leave it out")
        else:
            report.add(scheme.path, f"{told}: it may be for the items", severity=Severity.INFO)


RULES = (
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
)
