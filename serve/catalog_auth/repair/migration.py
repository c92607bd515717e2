"""Moving a document to another version of the extension, as a JSON Patch (parts A and B3).

    v1.0.0 -> v1.1.0    schemes move to the one place they have now; fields that no type of theirs
                        has any more go when they are empty; the rest is checked, strictly
    v1.1.0 -> v1.2.0    a token exchange has to say where its input comes from
    v1.2.0 -> v1.1.0    refused where it would lose a chain: exchanges, and what schemes refer to
    v1.1.0 -> v1.0.0    refused for catalogs, which v1.0.0 does not know

A document that the official schema of its version takes is taken by that of the new one, or the
migration is refused with the reasons. Nothing is invented: what only the author knows is a reason.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tollgate.actors.kernel.json_value import JsonValue
from tollgate.serve.catalog_auth.document.document import (
    MISSING,
    NO_ANCESTORS,
    REFS,
    SCHEMES,
    Ancestors,
    Document,
    HolderKind,
    Kind,
    flows_of,
)
from tollgate.serve.catalog_auth.document.fields import FIELDS_BY_TYPE, TYPED_FIELDS
from tollgate.serve.catalog_auth.document.locator import locate
from tollgate.serve.catalog_auth.document.paths import Path
from tollgate.serve.catalog_auth.document.shown_values import shown
from tollgate.serve.catalog_auth.document.versions import Version
from tollgate.serve.catalog_auth.registries.oauth_flows import SUBJECT_TOKEN_TYPE
from tollgate.serve.catalog_auth.repair.json_patch import patched
from tollgate.serve.catalog_auth.rules.findings import Fix, Operation, Severity, steps_below
from tollgate.serve.catalog_auth.rules.rule import FINDINGS_LENGTH_MAX
from tollgate.serve.catalog_auth.schema_validity.official import is_schema_valid
from tollgate.serve.catalog_auth.verdict.report import Options, Verdict, validate

_EXTENSIONS = "stac_extensions"
# Names that the schema of v1.0.0 takes for fields of a scheme, where schemes have their names.
_FIRST_RESERVED = ("type", "description", "name", "in", "scheme", "openConnectUrl", "flows")
# The field as the schema of v1.0.0 spells it by mistake.
_MISSPELLED = "openConnectUrl"
_EMPTY: tuple[object, ...] = ({}, [], "", None)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why a document cannot be migrated, and its place."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """The document in its new version; `patch` makes it of the one that came in."""

    version: Version
    document: JsonValue
    patch: Fix
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class NotMigrated:
    """Nothing was changed."""

    version: Version
    obstacles: tuple[Obstacle, ...]


def migrate(
    root: JsonValue,
    to: Version,
    ancestors: Ancestors = NO_ANCESTORS,
    length_max: int = FINDINGS_LENGTH_MAX,
) -> Migrated | NotMigrated:
    """The document, or all features of an item collection, declaring version `to` and no other.
    `length_max`: of what is found in the result (see `Options`)."""
    document = locate(root, ancestors)
    if document.kind is Kind.ITEM_COLLECTION:
        answer = _migrated_features(document, to)
    else:
        answer = _migrated(document, to)
    if isinstance(answer, list):
        return NotMigrated(to, tuple(answer))
    moved = patched(root, answer)
    return Migrated(to, moved, answer, validate(moved, Options(length_max=length_max), ancestors))


def _migrated_features(collection: Document, to: Version) -> Fix | list[Obstacle]:
    steps: list[Operation] = []
    obstacles: list[Obstacle] = []
    if collection.versions:
        steps += _declaration(collection, to)
    features = collection.root.get("features")
    for index, feature in enumerate(features if isinstance(features, list) else ()):
        document = locate(feature, collection.ancestors)
        if not document.declared:
            continue
        answer = _migrated(document, to)
        below: Path = ("features", index)
        if isinstance(answer, list):
            obstacles += [Obstacle((*below, *each.path), each.message) for each in answer]
        else:
            steps += steps_below(below, answer)
    if not steps and not obstacles:
        return [Obstacle((), "neither it nor any of its features declares a version")]
    return obstacles or tuple(steps)


def _migrated(document: Document, to: Version) -> Fix | list[Obstacle]:
    version = document.version
    if not isinstance(document.root.get(_EXTENSIONS), list) or version is None:
        return [_undeclared(document)]
    obstacles = list(_obstacles(document, version, to))
    if obstacles:
        return obstacles
    steps = [*_declaration(document, to)]
    if version is Version.V1_0_0 and to is not version:
        moves = _moves_to_the_top(document)
        if isinstance(moves, Obstacle):
            return [moves]
        steps += [*moves, *_tidied_schemes(document, moves)]
    patch = tuple(steps)
    return _refused(document, patched(document.root, patch), to) or patch  # type: ignore[arg-type]


def _undeclared(document: Document) -> Obstacle:
    if document.declared:
        listed = ", ".join(shown(text) for text in document.declared)
        message = f"{listed} is no version of the extension: repair it first"
    else:
        message = "it declares no version of the extension: declare one first"
    return Obstacle((_EXTENSIONS,), message)


def _declaration(document: Document, to: Version) -> Iterator[Operation]:
    """The first identifier becomes that of the new version, all others of the extension go."""
    extensions = document.root.get(_EXTENSIONS)
    if not isinstance(extensions, list):
        return
    declared = set(document.declared)
    at = [i for i, text in enumerate(extensions) if isinstance(text, str) and text in declared]
    for index in reversed(at[1:]):
        yield Operation("remove", (_EXTENSIONS, index))
    if at and extensions[at[0]] != to.identifier:
        yield Operation("replace", (_EXTENSIONS, at[0]), to.identifier)


def _obstacles(document: Document, version: Version, to: Version) -> Iterator[Obstacle]:
    """All that the new version cannot say, or wants to know."""
    if to is Version.V1_0_0 and document.kind is Kind.CATALOG:
        yield Obstacle(("type",), "v1.0.0 knows no catalogs: it rejects every one")
    is_down = to.rank < Version.V1_2_0.rank <= version.rank
    for scheme in document.schemes:
        if is_down and REFS in scheme.value:
            yield Obstacle(
                (*scheme.path, REFS),
                f"before v1.2.0 schemes refer to nothing: what {shown(scheme.name)} needs first "
                f"would be lost",
            )
        for flow in flows_of(scheme) if scheme.type == "oauth2" else ():
            if is_down and flow.name == "tokenExchange":
                yield Obstacle(flow.path, "before v1.2.0 there is no token exchange")
            elif is_down and SUBJECT_TOKEN_TYPE in flow.value:
                yield Obstacle(
                    (*flow.path, SUBJECT_TOKEN_TYPE), f"{SUBJECT_TOKEN_TYPE} is new in v1.2.0"
                )
            has_input = flow.name != "tokenExchange" or bool(scheme.value.get(REFS))
            if to is Version.V1_2_0 and not has_input:
                yield Obstacle(
                    scheme.path,
                    f"in v1.2.0 {shown(scheme.name)} has to name, in its own {REFS}, the schemes "
                    f"that give the token it exchanges",
                )


def _moves_to_the_top(document: Document) -> Fix | Obstacle:
    """v1.0.0 took schemes in summaries, assets and item assets: they move to where they belong."""
    places: list[tuple[Path, object]] = [
        ((*holder.path, SCHEMES), holder.value[SCHEMES])
        for holder in document.holders
        if holder.kind in (HolderKind.ASSET, HolderKind.ITEM_ASSET) and SCHEMES in holder.value
    ]
    summaries = document.root.get("summaries") if document.kind is Kind.COLLECTION else None
    if document.schemes_value is MISSING and isinstance(summaries, dict) and SCHEMES in summaries:
        places.append((("summaries", SCHEMES), summaries[SCHEMES]))
    known = dict(document.schemes_value) if isinstance(document.schemes_value, dict) else {}
    steps: list[Operation] = []
    if places and document.schemes_value is MISSING:
        steps.append(Operation("add", document.schemes_path, {}))
    for path, schemes in places:
        if not isinstance(schemes, dict):
            return Obstacle(path, f"{shown(schemes)} are no schemes")
        for name, scheme in schemes.items():
            if known.setdefault(name, scheme) != scheme:
                return Obstacle(
                    (*path, name), f"there is another scheme {shown(name)} in the place it moves to"
                )
            steps.append(Operation("add", (*document.schemes_path, name), scheme))
        steps.append(Operation("remove", path))
    return tuple(steps)


def _tidied_schemes(document: Document, moves: Fix) -> Iterator[Operation]:
    """Drops what v1.1.0 forbids and says nothing; gives the misspelled field its name."""
    moved = locate(patched(document.root, moves))  # type: ignore[arg-type]
    for scheme in moved.schemes:
        lacks_url = scheme.type == "openIdConnect" and "openIdConnectUrl" not in scheme.value
        if lacks_url and _MISSPELLED in scheme.value:
            target = (*scheme.path, "openIdConnectUrl")
            yield Operation("move", target, None, (*scheme.path, _MISSPELLED))
        for field in TYPED_FIELDS:
            is_own = field in FIELDS_BY_TYPE.get(scheme.type or "", ())
            if not is_own and field in scheme.value and scheme.value[field] in _EMPTY:
                yield Operation("remove", (*scheme.path, field))


def _refused(before: Document, root: JsonValue, to: Version) -> list[Obstacle]:
    """Tells why the new version's schema would not take what the old one's did, if so."""
    after = locate(root, before.ancestors)
    if not is_schema_valid(before) or is_schema_valid(after):
        return []
    if to is Version.V1_0_0:
        names = [s for s in after.schemes if s.name in _FIRST_RESERVED]
        reasons = [
            Obstacle(s.path, f"v1.0.0 has no scheme by the name {shown(s.name)}") for s in names
        ]
        needed = [f for f in ("assets", "links") if after.kind is Kind.ITEM and f not in after.root]
        reasons += [Obstacle((), f"in v1.0.0 an item has {field}") for field in needed]
    else:
        findings = validate(root, Options(), before.ancestors).findings
        reasons = [
            Obstacle(finding.path, finding.message)
            for finding in findings
            if finding.severity is Severity.ERROR and finding.rule[0] in "SR"
        ]
    return reasons or [Obstacle((), f"the official schema of v{to} does not take it")]
