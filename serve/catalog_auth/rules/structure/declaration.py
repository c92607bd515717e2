"""E: how a document declares the extension (parts A, B3)."""

from collections.abc import Iterator

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    REFS,
    SCHEMES,
    Document,
    FieldPlace,
    Kind,
    flows_of,
)
from tollgate.serve.catalog_auth.document.versions import (
    VERSIONS_BY_IDENTIFIER,
    WELL_FORMED,
    Version,
    same_identifier,
    suggested_version,
)
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, SCENE, item
from tollgate.serve.catalog_auth.rules.findings import (
    Fix,
    Operation,
    Path,
    Severity,
    Suggestion,
    shown,
    suggestion,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.verdict.schema_validity import version_1_1

_EXTENSIONS = "stac_extensions"
# The draft before the extension had a name of its own.
_DRAFT_FIELDS = ("security:schemes", "security:refs")
_DRAFT_NAME = "secure-assets"


def _use_is_declared(document: Document, report: FindingReport) -> None:
    extensions = document.root.get(_EXTENSIONS)
    if document.declared and isinstance(extensions, str):
        report.add(
            (_EXTENSIONS,),
            f"stac_extensions is the text {shown(extensions)}: it has to be a list, or nothing is "
            "declared",
            (Operation("replace", (_EXTENSIONS,), [extensions]),),
        )
        return
    if document.declared or not document.has_auth_fields or document.kind is Kind.ITEM_COLLECTION:
        return
    identifier = _needed(document).identifier
    fix: Fix | None = None
    if isinstance(extensions, list):
        fix = (Operation("add", (_EXTENSIONS, "-"), identifier),)
    elif extensions is None:
        # (to add a member that is there replaces it: RFC 6902 section 4.1)
        fix = (Operation("add", (_EXTENSIONS,), [identifier]),)
    report.add(
        (_EXTENSIONS,),
        "fields of the authentication extension are used, but it is not declared: no validator "
        f"looks at them. Add {shown(identifier)}",
        fix,
    )


def _needed(document: Document) -> Version:
    """The oldest version that knows all that is used, and knows catalogs."""
    return Version.V1_2_0 if next(_newer_features(document), None) else Version.V1_1_0


def _schemes_are_not_empty(document: Document, report: FindingReport) -> None:
    if document.versions and document.schemes_value == {}:
        report.add(
            document.schemes_path,
            "the extension is declared, and auth:schemes is empty: nothing is said of access",
        )


def _identifier_is_well_formed(document: Document, report: FindingReport) -> None:
    extensions = document.root.get(_EXTENSIONS)
    if len(document.versions) == len(document.declared) or not isinstance(extensions, list):
        return
    declared = set(document.declared)
    for index, text in enumerate(extensions):
        if not isinstance(text, str) or text not in declared or WELL_FORMED.fullmatch(text):
            continue
        path = (_EXTENSIONS, index)
        identifier = suggested_version(text).identifier
        # (the same address, written otherwise: nothing is lost, nothing is guessed)
        meant = same_identifier(text)
        if document.versions:
            remove = Operation("remove", path)
            stands_twice = meant in document.versions
            report.add(
                path,
                f"{shown(text)} is no identifier of the extension, which is declared well besides",
                (remove,) if stands_twice else None,
                Severity.WARNING,
                () if stands_twice else suggestion("remove it", remove),
            )
        else:
            replace = Operation("replace", path, identifier)
            report.add(
                path,
                f"{shown(text)} is not the identifier of the extension, which has to be given to "
                f"the letter: {identifier}",
                None if meant is None else (replace,),
                suggestions=suggestion(f"declare {identifier}", replace) if meant is None else (),
            )


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


def _draft_is_not_used(document: Document, report: FindingReport) -> None:
    extensions = document.root.get(_EXTENSIONS)
    path: Path | None = None
    if isinstance(extensions, list):
        for index, text in enumerate(extensions):
            if isinstance(text, str) and _DRAFT_NAME in text:
                path = (_EXTENSIONS, index)
    properties = document.root.get("properties")
    for name in _DRAFT_FIELDS:
        if name in document.root:
            path = (name,)
        if isinstance(properties, dict) and name in properties:
            path = ("properties", name)
    if path is not None:
        report.add(
            path,
            "this is the draft that became the authentication extension (security:schemes, "
            "security:refs): today's clients do not read it. Write auth:schemes, auth:refs and "
            f"declare {Version.V1_1_0.identifier}",
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
    for path, feature in _newer_features(document):
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


def _newer_features(document: Document) -> Iterator[tuple[Path, str]]:
    """Where v1.2.0 is used, and what of it."""
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


def _collection_of_items_has_no_fields(document: Document, report: FindingReport) -> None:
    if document.kind is not Kind.ITEM_COLLECTION:
        return
    path: Path | None = None
    if document.schemes_value is not MISSING:
        path = document.schemes_path
    elif any(misplaced.place is FieldPlace.TOP for misplaced in document.misplaced):
        path = document.misplaced[0].path
    elif document.declared:
        path = (_EXTENSIONS,)
    if path is not None:
        report.add(
            path,
            "the extension does not know collections of items, and its schema rejects all of them: "
            "each item has to declare and define what it uses",
        )


_GOOD = {"login": LOGIN}
_DRAFT = {
    "stac_extensions": ["https://stac-extensions.github.io/secure-assets/v1.0.0/schema.json"],
    "properties": {"security:schemes": _GOOD},
    "assets": {"data": {"href": SCENE}},
}
_EXCHANGE = {
    "type": "oauth2",
    "flows": {"tokenExchange": {"tokenUrl": "https://login.example.com/token", "scopes": {}}},
}

RULES = (
    CatalogRule(
        id="E01",
        name="used-but-not-declared",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="Fields of the extension are used, and it is not declared.",
        why="Validators choose their schemas by stac_extensions: nothing is ever checked.",
        source="catalog-auth.md, B1: such a document is checked by no validator.",
        repair="Append the identifier to stac_extensions.",
        check=_use_is_declared,
        example={**item(_GOOD), "stac_extensions": []},
    ),
    CatalogRule(
        id="E02",
        name="declared-but-empty",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="The extension is declared, and there is no scheme.",
        why="A reader expects protected assets and finds nothing.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Define schemes, or take the identifier out.",
        check=_schemes_are_not_empty,
        example=item({}),
    ),
    CatalogRule(
        id="E03",
        name="malformed-identifier",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="An entry of stac_extensions means this extension and is not its identifier.",
        why="Identifiers are compared to the letter: no validator takes this one for it.",
        source="catalog-auth.md, B1: identifiers are compared to the letter.",
        repair="Write the identifier as it is.",
        check=_identifier_is_well_formed,
        example={**item(_GOOD), "stac_extensions": [f"{Version.V1_1_0.identifier}#"]},
    ),
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
        id="E06",
        name="legacy-security-draft",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="The document uses the draft with the prefix security:.",
        why="No client of today reads it.",
        source="Tollgate's own advice (catalog-auth.md, C).",
        repair="Rename the fields, and declare the extension.",
        check=_draft_is_not_used,
        example={**item(), **_DRAFT},
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
    CatalogRule(
        id="E09",
        name="auth-fields-on-item-collection",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="A collection of items has fields of the extension, or declares it.",
        why="The official schema rejects it whatever it contains.",
        source="catalog-auth.md, B1: the official schema knows no item collections.",
        repair="Declare and define in each item.",
        check=_collection_of_items_has_no_fields,
        example={"type": "FeatureCollection", SCHEMES: _GOOD, "features": [item(_GOOD)]},
    ),
)
