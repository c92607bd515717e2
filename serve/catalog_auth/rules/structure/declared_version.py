"""E: the version that a document declares (part B3): E04, E05, E07, E08."""

from collections.abc import Iterator

from tollgate.serve.catalog_auth.document.document import REFS, Document, flows_of
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.versions import (
    VERSIONS_BY_IDENTIFIER,
    WELL_FORMED,
    Version,
)
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, item
from tollgate.serve.catalog_auth.rules.findings import Operation, Severity, Suggestion, suggestion
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.schema_validity import version_1_1

_EXTENSIONS = "stac_extensions"


def _version_is_current(document: Document, report: FindingReport) -> None:
    if set(document.versions) != {Version.V1_0_0}:
        return
    path = _place_of(document, Version.V1_0_0)
    if version_1_1.is_valid_since_v1_1(document, Version.V1_1_0):
        report.add(
            path,
            "v1.0.0 is outdated: its schema checks next to nothing. This document is fine under "
            "v1.1.0 as it is",
            suggestions=suggestion(
                "declare v1.1.0", Operation("replace", path, Version.V1_1_0.identifier)
            ),
        )
    else:
        report.add(
            path,
            "v1.0.0 is outdated: its schema checks next to nothing. Under v1.1.0 what is warned of "
            "here would be wrong; planetaryComputer and earthdata are no longer predefined, and "
            "summaries do not count",
        )


def _place_of(document: Document, version: Version) -> Path:
    extensions = document.root.get(_EXTENSIONS)
    if isinstance(extensions, list):
        return (_EXTENSIONS, extensions.index(version.identifier))
    return (_EXTENSIONS,)


def _version_is_one(document: Document, report: FindingReport) -> None:
    extensions = document.root.get(_EXTENSIONS)
    if len(document.versions) < 2 or not isinstance(extensions, list):
        return
    newest = max(document.versions, key=lambda version: version.rank).identifier
    kept = extensions.index(newest)
    extra = [
        index
        for index, text in enumerate(extensions)
        if index != kept and isinstance(text, str) and text in VERSIONS_BY_IDENTIFIER
    ]
    # From the end, so that each index still holds when its turn comes.
    steps = tuple(Operation("remove", (_EXTENSIONS, index)) for index in reversed(extra))
    is_repeated = len(set(document.versions)) == 1
    report.add(
        (_EXTENSIONS, extra[0]),
        "the extension is declared more than once: a document has to meet the schemas of all that "
        f"it declares. Keep {newest}",
        steps if is_repeated else None,
        suggestions=() if is_repeated else suggestion(f"keep {newest} alone", *steps),
    )


def _version_exists(document: Document, report: FindingReport) -> None:
    extensions = document.root.get(_EXTENSIONS)
    if len(document.versions) == len(document.declared) or not isinstance(extensions, list):
        return
    declared = set(document.declared)
    for index, text in enumerate(extensions):
        if not isinstance(text, str) or text not in declared or text in VERSIONS_BY_IDENTIFIER:
            continue
        if (found := WELL_FORMED.fullmatch(text)) is not None:
            known = ", ".join(f"v{version}" for version in Version)
            report.add(
                (_EXTENSIONS, index), f"there is no v{found[1]} of the extension: there are {known}"
            )


def _version_knows_what_is_used(document: Document, report: FindingReport) -> None:
    version = document.version
    if version is None or version is Version.V1_2_0:
        return
    suggestions: tuple[Suggestion, ...] | None = None
    for path, feature in newer_features(document):
        if suggestions is None:
            suggestions = _declaring_newer(document, version)
        report.add(
            path,
            f"{feature} has a meaning since v1.2.0; v{version} is declared: clients of that "
            "version ignore it. Declare v1.2.0",
            suggestions=suggestions,
        )


def _declaring_newer(document: Document, version: Version) -> tuple[Suggestion, ...]:
    """To declare v1.2.0, where its schema takes the document."""
    extensions = document.root.get(_EXTENSIONS)
    if version not in document.versions or not isinstance(extensions, list):
        return ()
    if not version_1_1.is_valid_since_v1_1(document, Version.V1_2_0):
        return ()
    place = _place_of(document, version)
    return suggestion("declare v1.2.0", Operation("replace", place, Version.V1_2_0.identifier))


def newer_features(document: Document) -> Iterator[tuple[Path, str]]:
    """The places where v1.2.0 is used, and what of it."""
    for scheme in document.schemes:
        if REFS in scheme.value:
            yield (*scheme.path, REFS), "auth:refs of a scheme"
        if scheme.type != "oauth2":
            continue
        for flow in flows_of(scheme):
            if flow.name == "tokenExchange":
                yield flow.path, "the flow tokenExchange"
            if "subjectTokenType" in flow.value:
                yield (*flow.path, "subjectTokenType"), "subjectTokenType"


_GOOD = {"login": LOGIN}
_EXCHANGE = {
    "type": "oauth2",
    "flows": {"tokenExchange": {"tokenUrl": "https://login.example.com/token", "scopes": {}}},
}

RULES = (
    CatalogRule(
        id="E04",
        name="outdated",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="v1.0.0 is declared.",
        why="Its schema looks into no scheme, rejects all catalogs, and takes some schemes for "
        "fields by their names.",
        source="catalog-auth.md, B3.",
        repair="Declare v1.1.0, and correct what that finds.",
        check=_version_is_current,
        example=item(_GOOD, version=Version.V1_0_0),
    ),
    CatalogRule(
        id="E05",
        name="several-versions",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="The extension is declared more than once.",
        why="The schemas of all that is declared have to take the document.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Keep the newest.",
        check=_version_is_one,
        example={
            **item(_GOOD),
            "stac_extensions": [Version.V1_1_0.identifier, Version.V1_2_0.identifier],
        },
    ),
    CatalogRule(
        id="E07",
        name="unknown-version",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="The declared version does not exist.",
        why="There is no schema to check against.",
        source="catalog-auth.md, B3: the versions that there are.",
        repair="Declare a version that exists.",
        check=_version_exists,
        example={
            **item(_GOOD),
            "stac_extensions": [Version.V1_1_0.identifier.replace("1.1.0", "1.3.0")],
        },
    ),
    CatalogRule(
        id="E08",
        name="feature-newer-than-declared",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="Something of v1.2.0 is used under an older version.",
        why="Clients of the declared version ignore it, so the chain ends there.",
        source="catalog-auth.md, B3: references of schemes came with v1.2.0.",
        repair="Declare v1.2.0.",
        check=_version_knows_what_is_used,
        example=item({"login": LOGIN, "exchange": {**_EXCHANGE, "auth:refs": ["login"]}}),
    ),
)
