"""E: how a document declares the extension (part B1): E01, E02, E03, E06, E09."""

from collections.abc import Iterator

from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    SCHEMES,
    Document,
    FieldPlace,
    Kind,
)
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import (
    WELL_FORMED,
    Version,
    is_nearly_meant,
    same_identifier,
    suggested_version,
)
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, SCENE, item
from tollgate.serve.catalog_auth.rules.findings import (
    Fix,
    Operation,
    Severity,
    Suggestion,
    suggestion,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Subject
from tollgate.serve.catalog_auth.rules.structure.declared_version import newer_features

_EXTENSIONS = "stac_extensions"
NEAR_MISSES_SUGGESTED_MAX = 3
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
    suggestions: tuple[Suggestion, ...] = ()
    told = f"Add {shown(identifier)}"
    if isinstance(extensions, list):
        add = Operation("add", (_EXTENSIONS, "-"), identifier)
        near = _near_misses(extensions)
        if not near:
            fix = (add,)
        else:
            # (which of the two it is, a person knows: the other's schema would go)
            told = f"{shown(near[0][1])} is nearly its identifier: is it meant?"
            suggestions = (
                *_corrections(document, near[:NEAR_MISSES_SUGGESTED_MAX]),
                Suggestion(f"add {identifier}, and keep what is there", (add,)),
            )
    elif extensions is None:
        # (to add a member that is there replaces it: RFC 6902 section 4.1)
        fix = (Operation("add", (_EXTENSIONS,), [identifier]),)
    report.add(
        (_EXTENSIONS,),
        "fields of the authentication extension are used, but it is not declared: no validator "
        f"looks at them. {told}",
        fix,
        suggestions=suggestions,
    )


def _near_misses(extensions: list[object]) -> list[tuple[int, str]]:
    """The entries that may have been meant for this extension, and where they stand."""
    return [
        (index, text)
        for index, text in enumerate(extensions)
        if isinstance(text, str) and is_nearly_meant(text)
    ]


def _corrections(document: Document, near: list[tuple[int, str]]) -> Iterator[Suggestion]:
    """This extension's identifier in the place of each."""
    for index, text in near:
        identifier = _meant(document, text).identifier
        replace = Operation("replace", (_EXTENSIONS, index), identifier)
        yield Suggestion(f"write {identifier} in the place of {shown(text)}", (replace,))


def _meant(document: Document, text: str) -> Version:
    """The version that an entry speaks of, if that knows all that is used."""
    return max(suggested_version(text), _needed(document), key=lambda version: version.rank)


def _needed(document: Document) -> Version:
    """The oldest version that knows all that is used, and knows catalogs."""
    return Version.V1_2_0 if next(newer_features(document), None) else Version.V1_1_0


def _schemes_are_not_empty(document: Document, report: FindingReport) -> None:
    if document.versions and document.schemes_value == {}:
        report.add(
            document.schemes_path,
            "the extension is declared, and auth:schemes is empty: nothing is said of access",
        )


def _identifier_is_well_formed(document: Document, report: FindingReport) -> None:
    extensions = document.root.get(_EXTENSIONS)
    if not isinstance(extensions, list):
        return
    if not document.declared:
        _mention_near_misses(document, extensions, report)
    if len(document.versions) == len(document.declared):
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


def _mention_near_misses(
    document: Document, extensions: list[object], report: FindingReport
) -> None:
    """An extension of somebody else may be called so: nothing is repaired here."""
    for index, text in _near_misses(extensions):
        report.add(
            (_EXTENSIONS, index),
            f"{shown(text)} is another extension's identifier, and nearly that of this one: if "
            f"this one is meant, it is {_meant(document, text).identifier}",
            severity=Severity.INFO,
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
RULES = (
    CatalogRule(
        id="E01",
        name="used-but-not-declared",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="Fields of the extension are used, and it is not declared.",
        why="Validators choose their schemas by stac_extensions: nothing is ever checked.",
        source="catalog-auth.md, B1: such a document is checked by no validator.",
        repair="Append the identifier to stac_extensions, or correct an entry that is nearly it.",
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
        says="An entry of stac_extensions means this extension and is not its identifier; or, for "
        "information, is nearly one.",
        why="Identifiers are compared to the letter: no validator takes this one for it.",
        source="catalog-auth.md, B1: identifiers are compared to the letter.",
        repair="Write the identifier to the letter.",
        check=_identifier_is_well_formed,
        example={**item(_GOOD), "stac_extensions": [f"{Version.V1_1_0.identifier}#"]},
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
