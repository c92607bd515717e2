"""S: where the fields may stand (part B1)."""

from collections.abc import Mapping

import msgspec

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    PREFIX,
    REFS,
    SCHEMES,
    Document,
    FieldPlace,
    Kind,
    MisplacedField,
    flows_of,
    inputs_of,
)
from tollgate.serve.catalog_auth.document.fields import FIELDS_BY_TYPE, FLOW_FIELDS, TYPED_FIELDS
from tollgate.serve.catalog_auth.document.misplaced_fields import MISPLACED_MAX
from tollgate.serve.catalog_auth.document.near_misses import nearest
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.positions import (
    REPEATED_MAX,
    repeated_members,
    repeats_members,
)
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.rules.examples.documents import LOGIN, collection, item, scene
from tollgate.serve.catalog_auth.rules.findings import (
    Fix,
    Operation,
    Severity,
    Suggestion,
    suggestion,
)
from tollgate.serve.catalog_auth.rules.rule import CatalogRule, FindingReport, Profile, Subject

_KINDS = (Kind.ITEM, Kind.COLLECTION, Kind.CATALOG)
# Of so many unknown members the names are told.
NAMES_SHOWN_MAX = 5
# Schemes that are larger than this together are not copied from a document above.
COPIED_BYTES_MAX = 16 * 1024
_SCHEME_FIELDS = frozenset({"type", "description", REFS, *TYPED_FIELDS})
# Where the official schema rejects a member with the prefix that it does not know.
_CHECKED = (FieldPlace.PROPERTIES, FieldPlace.TOP, FieldPlace.HOLDER, FieldPlace.ALTERNATE_MAP)


def _has_schemes(document: Document, report: FindingReport) -> None:
    """S01. Clients do fall back to the collection of an item, so an item that relies on it is
    warned; whoever wants to pass the official schema, or is strict, is told the whole truth."""
    if not document.versions or document.kind not in _KINDS:
        return
    owner = document.root.get("properties") if document.kind is Kind.ITEM else document.root
    if document.schemes_value is not MISSING or not isinstance(owner, dict | None):
        return
    relies = document.kind is Kind.ITEM and bool(document.inherited)
    is_strict = report.profile in (Profile.STRICT, Profile.SCHEMA)
    fix: Fix | None = None
    why_not = ""
    if relies and isinstance(owner, dict):
        copied = _used_from_above(document)
        # (features share their collection's schemes: copied into each, they could fill the memory)
        if copied and len(msgspec.json.encode(copied)) <= COPIED_BYTES_MAX:
            fix = (Operation("add", document.schemes_path, copied),)
        elif copied:
            why_not = f" (those from above are more than {COPIED_BYTES_MAX:,} bytes: no repair)"
    report.add(
        document.schemes_path,
        "the extension is declared here, but this document defines no auth:schemes: define here "
        f"what is used here, or do not declare the extension{why_not}",
        fix,
        Severity.WARNING if relies and not is_strict else None,
    )


def _used_from_above(document: Document) -> dict[str, JsonValue]:
    """The inherited schemes that are referenced here, with those that give them their input."""
    used: dict[str, JsonValue] = {}
    rest = [name for references in document.references for name in references.inherited]
    while rest:
        scheme = document.inherited.get(rest.pop())
        if scheme is not None and scheme.name not in used:
            used[scheme.name] = dict(scheme.value)  # type: ignore[arg-type]
            rest += inputs_of(scheme)
    return {name: used[name] for name in document.inherited if name in used}


def _schemes_are_an_object(document: Document, report: FindingReport) -> None:
    value = document.schemes_value
    if value is not MISSING and not isinstance(value, dict):
        report.add(
            document.schemes_path,
            f"auth:schemes is {shown(value)}: it has to be an object, each scheme under its name",
        )


def _fields_are_in_place(document: Document, report: FindingReport) -> None:
    if len(document.misplaced) >= MISPLACED_MAX:
        report.leave_out(
            f"of members with the prefix auth: where they mean nothing, {MISPLACED_MAX:,} are told"
        )
    for misplaced in document.misplaced:
        name = misplaced.path[-1]
        if name not in (SCHEMES, REFS) or misplaced.place is FieldPlace.SUMMARIES:
            continue
        has_copy = name == SCHEMES and document.schemes_value is not MISSING
        is_checked = misplaced.place in _CHECKED and not (
            misplaced.place is FieldPlace.ALTERNATE_MAP and name == REFS
        )
        # The official schema takes references on the map of alternates, and no client reads them.
        is_unread = misplaced.place is FieldPlace.ALTERNATE_MAP and (
            report.profile is not Profile.SCHEMA
        )
        is_lost = misplaced.place is FieldPlace.ITEM_TOP and name == SCHEMES and not has_copy
        report.add(
            misplaced.path,
            f"{name} means nothing in {misplaced.place.value}: "
            f"{_where_to(document, name, misplaced)}",
            _moved(document, misplaced, has_copy),
            None if is_checked or is_lost or is_unread else Severity.WARNING,
        )
    if document.kind is Kind.CATALOG:
        for holder in document.holders:
            if not holder.is_official and holder.refs is not MISSING:
                report.add(
                    (*holder.path, REFS),
                    "auth:refs means nothing in an asset of a catalog, which the extension does "
                    "not know: catalogs have links alone",
                    severity=Severity.WARNING,
                )


def _where_to(document: Document, name: str | int, misplaced: MisplacedField) -> str:
    if name == REFS:
        if misplaced.place is FieldPlace.ALTERNATE_MAP:
            return "it belongs into each alternate"
        return "it belongs into assets, their alternates, item_assets and links"
    if document.schemes_value is not MISSING:
        return "what counts is the one in its place"
    if document.kind is Kind.ITEM:
        return "it belongs into the item's properties"
    return "it belongs to the top level"


def _moved(document: Document, misplaced: MisplacedField, has_copy: bool) -> Fix | None:
    """Mechanical for schemes that stand beside an item's properties instead of inside them."""
    if misplaced.path != (SCHEMES,) or document.kind is not Kind.ITEM:
        return None
    if has_copy:
        same = misplaced.value == document.schemes_value
        return (Operation("remove", misplaced.path),) if same else None
    if isinstance(document.root.get("properties"), dict):
        return (Operation("move", document.schemes_path, source=misplaced.path),)
    return None


def _fields_are_known(document: Document, report: FindingReport) -> None:
    _members_are_known(document, report)
    for misplaced in document.misplaced:
        name = str(misplaced.path[-1])
        if name in (SCHEMES, REFS):
            continue
        candidates = [SCHEMES, REFS]
        if misplaced.place in (FieldPlace.HOLDER, FieldPlace.ALTERNATE):
            candidates = [REFS, SCHEMES]
        meant = nearest(name, candidates)
        hint = "" if meant is None else f": did you mean {meant}?"
        report.add(
            misplaced.path,
            f"the extension has no field {shown(name)}{hint}",
            severity=None if misplaced.place in _CHECKED else Severity.WARNING,
            suggestions=_renamed(document, misplaced, meant),
        )


def _members_are_known(document: Document, report: FindingReport) -> None:
    """Members without the prefix are free; one that clients will not understand is mentioned."""
    for scheme in document.schemes:
        if scheme.type not in FIELDS_BY_TYPE:
            continue  # (a type of one's own has fields of its own)
        if not scheme.value.keys() <= _SCHEME_FIELDS:
            _mention(scheme.path, scheme.value, _SCHEME_FIELDS, report)
        if scheme.type in ("oauth2", "signedUrl"):
            for flow in flows_of(scheme):
                if not flow.value.keys() <= FLOW_FIELDS[scheme.type]:
                    _mention(flow.path, flow.value, FLOW_FIELDS[scheme.type], report)


def _mention(
    path: Path, value: Mapping[str, object], known: frozenset[str], report: FindingReport
) -> None:
    names = [name for name in value if name not in known and not name.startswith(PREFIX)]
    if names:
        listed = ", ".join(shown(name) for name in names[:NAMES_SHOWN_MAX])
        listed += ", …" if len(names) > NAMES_SHOWN_MAX else ""
        report.add(
            path, f"the extension has no {listed}: clients will not read it", None, Severity.INFO
        )


def _renamed(
    document: Document, misplaced: MisplacedField, meant: str | None
) -> tuple[Suggestion, ...]:
    """The field meant, where it belongs right there, and is not there already."""
    if meant is None:
        return ()
    target = (*misplaced.path[:-1], meant)
    owner: object = document.root
    for step in misplaced.path[:-1]:
        owner = owner[step]  # type: ignore[index]  # (it was found on this way)
    assert isinstance(owner, dict)
    fits = target == document.schemes_path or (
        meant == REFS and misplaced.place in (FieldPlace.HOLDER, FieldPlace.ALTERNATE)
    )
    if not fits or meant in owner:
        return ()
    return suggestion(f"rename it {meant}", Operation("move", target, source=misplaced.path))


def _summaries_have_no_schemes(document: Document, report: FindingReport) -> None:
    for misplaced in document.misplaced:
        if misplaced.place is FieldPlace.SUMMARIES and misplaced.path[-1] in (SCHEMES, REFS):
            report.add(
                misplaced.path,
                "what summaries say of authentication is not read: a client looks at the top level "
                "of the collection, and at the items",
            )


def _is_of_a_known_kind(document: Document, report: FindingReport) -> None:
    if document.kind is not Kind.OTHER:
        return
    for place in document.misshapen:
        if not place.path:
            report.add((), f"a document is an object, not {shown(place.value)}")
            return
    type_ = document.root.get("type", MISSING)
    said = "there is none" if type_ is MISSING else f"it is {shown(type_)}"
    report.add(
        ("type",),
        f'the type has to be "Feature", "Collection" or "Catalog": {said}',
    )


def _is_about_something_else(document: Document) -> bool:
    """Tells whether nothing in it is about access, and nothing of that kind was lost."""
    is_one = document.kind is not Kind.ITEM_COLLECTION and document.is_exact
    return is_one and not document.declared and not document.has_auth_fields


def _members_are_not_repeated(document: Document, report: FindingReport) -> None:
    raw = report.raw
    if raw is None or _is_about_something_else(document):
        return
    if not repeats_members(raw, document.root):
        return
    repeated = repeated_members(raw)
    if len(repeated) == REPEATED_MAX:
        report.leave_out(f"of members that stand more than once, {REPEATED_MAX} are told")
    for path in repeated:
        report.add(
            path,
            f"the member {shown(path[-1])} stands more than once in its object: only the last one "
            "counts, the others are lost without a word",
        )


RULES = (
    CatalogRule(
        id="S01",
        name="schemes-missing-where-declared",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A document declares the extension and has no auth:schemes.",
        why="The official schema requires them in each document that declares the extension, even "
        "if a parent defines them; clients look into the document at hand.",
        source="catalog-auth.md, B1: required once the extension is declared.",
        repair="Define the schemes that are used, in the properties of an item or at the top level "
        "of a collection or catalog; or take the identifier out of stac_extensions.",
        check=_has_schemes,
        example=item(assets={}),
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S02",
        name="schemes-not-object",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="auth:schemes is no object.",
        why="Schemes are referenced by name; only a map gives them names.",
        source="Authentication extension, Fields: a map of names to schemes.",
        repair="Write an object whose members are the schemes.",
        check=_schemes_are_an_object,
        example=item([LOGIN], assets={}),
    ),
    CatalogRule(
        id="S16",
        name="auth-field-misplaced",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="auth:schemes or auth:refs stands where the extension gives it no meaning.",
        why="Nobody reads it there: what looks protected by it is not.",
        source="catalog-auth.md, B1: where fields may appear.",
        repair="Move it to its place: schemes into an item's properties or to the top level of a "
        "collection or catalog, references into assets, alternates, item_assets and links.",
        check=_fields_are_in_place,
        example={**item(assets={"data": scene("login")}), SCHEMES: {"login": LOGIN}},
        since=Version.V1_1_0,
    ),
    CatalogRule(
        id="S17",
        name="unknown-auth-field",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="A field has the prefix auth: and is none of the extension's; or, for information, a "
        "scheme or flow has a member that the extension does not know.",
        why="It is most often a slip of the pen, and then the real field is missing.",
        source="catalog-auth.md, B1: any other auth: member is refused.",
        repair="Write auth:schemes or auth:refs, or choose another prefix.",
        check=_fields_are_known,
        example=item({"login": LOGIN}, {"data": {"href": "./a.tif", "auth:ref": ["login"]}}),
    ),
    CatalogRule(
        id="S18",
        name="summaries-carry-schemes",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="The summaries of a collection have fields of the extension.",
        why="Since v1.1.0 they are ignored there, by the schema and by clients.",
        source="catalog-auth.md, B1: summaries.",
        repair="Move the schemes to the top level of the collection.",
        check=_summaries_have_no_schemes,
        example=collection({"login": LOGIN}, summaries={"auth:schemes": [{"login": LOGIN}]}),
    ),
    CatalogRule(
        id="S19",
        name="not-a-catalog-collection-item",
        severity=Severity.ERROR,
        subject=Subject.DOCUMENT,
        says="The document is no catalog, collection or item.",
        why="The place of every field depends on which of the three it is.",
        source="catalog-auth.md, B1: the place of each field depends on the type.",
        repair='Write "type": "Feature", "Collection" or "Catalog".',
        check=_is_of_a_known_kind,
        example={"id": "scene", "links": []},
    ),
    CatalogRule(
        id="S21",
        name="duplicate-json-keys",
        severity=Severity.WARNING,
        subject=Subject.DOCUMENT,
        says="An object has a member twice.",
        why="Readers take the last one without a word: a second definition of a scheme wins.",
        source="RFC 8259, 4: names within an object should be unique.",
        repair="Keep one of them.",
        check=_members_are_not_repeated,
        example=item({"login": LOGIN}),
        example_text=b'{"type": "Catalog", "links": [], "auth:schemes": {'
        b'"login": {"type": "http", "scheme": "basic"}, "login": {"type": "s3"}}}',
    ),
)
